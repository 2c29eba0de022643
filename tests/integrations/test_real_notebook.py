"""Three lines in a notebook that is run by Jupyter's own kernel. `make test-integrations`."""

from __future__ import annotations

from pathlib import Path

import pytest

import hansard
from hansard.events import assistant_done, user_message
from tests.documents import block

nbclient = pytest.importorskip("nbclient", reason="`make test-integrations` brings it")
nbformat = pytest.importorskip("nbformat")


def test_a_session_and_a_store_show_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hansard.open(tmp_path) as store:
        store.create("greeting", title="A <b>greeting</b>")
        store["greeting"].append([user_message(text="Hello <script>alert(1)</script>"), assistant_done(text="Good morning.")])
    monkeypatch.setenv("HANSARD_STORE", str(tmp_path))
    cells = [block("integrations.md", "store = hansard.open()\nstore\n"), block("integrations.md", 'store["greeting"]\n')]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    ran = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    listing, session = (cell.outputs[0].data["text/html"] for cell in ran.cells)
    assert "greeting</td>" in listing and "<b>greeting" not in listing
    assert "Good morning." in session and "&lt;script&gt;" in session and "<script" not in session
