"""What ``import hansard`` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hansard
from hansard.events import TYPES
from hansard.events.content import BLOCKS

VOCABULARY = [kind.__name__ for kind in (*TYPES.values(), *BLOCKS.values())]


@pytest.mark.parametrize("name", [*hansard.__all__, *VOCABULARY])
def test_every_name_is_there(name):
    assert getattr(hansard, name) is not None


def test_there_are_about_fifty_names_beside_the_vocabulary():
    assert 40 <= len(hansard.__all__) <= 60


def test_a_name_that_is_not_there_is_an_attribute_error():
    for name in ("Nonsense", "nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(hansard, name)


def test_a_function_is_not_hidden_by_the_module_it_lives_in():
    code = (
        "import hansard.adapters.normalize, hansard.adapters.detection, hansard;"
        " print(callable(hansard.normalize), callable(hansard.detect))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True True\n"


def test_importing_it_imports_nothing_else():
    code = "import sys; before = set(sys.modules); import hansard; print(sorted(m for m in set(sys.modules) - before if 'hansard' in m))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['hansard', 'hansard._version']\n"
