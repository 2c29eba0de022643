"""What the repository brings along: locked packages and their licences, no secret in any file, and nothing that bandit would stop at.

`make audit` asks for known vulnerabilities; that needs a network.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, distribution, metadata
from pathlib import Path
from typing import cast

import pytest
from packaging.utils import canonicalize_name

from hansard.projections.redaction.matching import Patterns
from tests.proof import Figures, amount, proves
from tests.test_project import ROOT, installed_with, tracked_files

pytestmark = [proves("S-10"), pytest.mark.slow]

LOCKS = ("requirements-dev.lock", "requirements-agents.lock", "requirements-integrations.lock")
NODE_LOCKS = ("tests/node/package-lock.json", "tests/agents/package-lock.json")

# ---------------------------------------------------------------------------------------------------------------------
# What is locked


@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_locked_comes_by_name_version_and_hash(lock: str) -> None:
    entries = re.sub(r"#.*", "", (ROOT / lock).read_text()).replace("\\\n", " ").split("\n")
    found = [entry for entry in entries if entry.strip()]
    assert len(found) > 5
    assert [
        entry for entry in found if not re.fullmatch(r"[a-z0-9.-]+(\[[a-z,]+\])?==[^ ]+( ;[^-]*)?( +--hash=sha256:[0-9a-f]{64})+ *", entry)
    ] == []


@pytest.mark.parametrize("lock", NODE_LOCKS)
def test_what_node_installs_comes_with_a_hash(lock: str) -> None:
    """Some optional packages of Qwen Code's have none: npm could not resolve them when the lock was made, and does not install them."""
    packages = json.loads((ROOT / lock).read_text())["packages"]
    bare = [name for name, about in packages.items() if name and not about.get("link") and "sha512-" not in about.get("integrity", "")]
    assert [name for name in bare if not (packages[name].get("optional") and "clipboard" in name)] == []


PERMISSIVE = re.compile(r"Apache|BSD|MIT|ISC|PSF|Python Software Foundation|MPL|Mozilla|0BSD|Unlicense", re.IGNORECASE)
OTHERS = {
    "atheris": "Apache 2.0 by the file in its wheel; its metadata say nothing",
    "psycopg": "LGPL 3: an extra that is installed and loaded as it is, and no part of ours",
    "psycopg-binary": "LGPL 3, as psycopg",
}
"""Packages for development, and extras, whose metadata name another licence or none, and why that does no harm."""


def licence(about: PackageMetadata) -> str:
    """What a package says of its licence, in whichever of the three places."""
    said = about.json
    named = [name for name in said.get("classifier", []) if name.startswith("License ::")]
    return " ".join([str(said.get("license_expression", "")), *named, str(said.get("license", ""))[:200]]).strip()


@pytest.mark.parametrize("name", sorted(installed_with("hansard") - {"hansard"}))
def test_what_a_user_installs_has_a_permissive_licence(name: str) -> None:
    assert PERMISSIVE.search(licence(metadata(name)))
    assert distribution(name).files


def test_every_locked_package_that_is_here_says_its_licence(figure: Figures) -> None:
    names = {
        canonicalize_name(line.partition("==")[0])
        for lock in LOCKS
        for line in (ROOT / lock).read_text().split("\n")
        if re.match(r"[a-z]", line)
    }
    unknown: dict[str, str] = {}
    for name in names:
        try:
            said = licence(metadata(name.partition("[")[0]))
        except ModuleNotFoundError:
            continue  # for another system
        figure("packages", 1)
        if not PERMISSIVE.search(said) and name not in OTHERS:
            unknown[name] = said
    assert unknown == {}


def test_every_library_of_the_page_says_its_licence() -> None:
    about = tomllib.loads((ROOT / "src/hansard/projections/page/static/vendor/VENDOR.toml").read_text())
    assert about
    assert all(PERMISSIVE.search(one["licence"]) for one in about.values())


# ---------------------------------------------------------------------------------------------------------------------
# Secrets

MADE_UP = {
    "sk-ant-api03-dummy": "what the recorded agents were told, and the driven ones are",
    "sk-ant-oat01-dummy": "likewise",
    "dummy-key": "likewise",
    "scripted": "likewise",
    "secret": "a word in a test",
    "password": "a variable: OpenCode's is made when it is started",
    "hansard.token": "the name of a field",
    "hansard.secrets": "the name of a field",
    "/run/secrets/admin_password": "where the compose file finds one",
    "owner_password": "the name of a variable in deploy/roles.sql",
    "server_password": "likewise",
    "reader_password": "likewise",
    "hunter2EXAMPLE": "of bad-input/secrets",
    "p@ss": "a password in an address, in tests/test_workspaces.py",
    "-----BEGIN RSA " + "PRIVATE KEY-----\\nTUlJRXhhbXBsZQ==": "of bad-input/secrets",
}
"""What looks like a secret and is none, reviewed. tests/bad-input/secrets.jsonl keeps its own in pieces."""


def secrets_of(text: str, patterns: Patterns) -> Iterator[str]:
    """What an export would mask. A long file is looked at line by line, which is faster."""
    for part in [text] if len(text) < 100_000 else text.split("\n"):
        if patterns.possible(part):
            yield from (part[found.first : found.last] for found in patterns.find(part))


@pytest.mark.slow
def test_no_file_has_a_secret_in_it(figure: Figures) -> None:
    """In its short form one recording in eight."""
    patterns, looked, known = Patterns(), 0, 0
    for number, name in enumerate(tracked_files()):
        if name.startswith("tests/recordings/") and number % amount(8, 1):
            continue
        looked += 1
        for found in secrets_of((ROOT / name).read_bytes().decode("utf-8", "surrogateescape"), patterns):
            known += 1
            assert found in MADE_UP, name
    assert known > 0
    figure("files", looked)
    figure("made-up secrets", known)


@pytest.mark.parametrize(
    "text", ["KEY=" + "ghp_" + "a1B2c3D4e5" * 4, "sk-ant-" + "api03-" + "EXAMPLE0" * 12, "-----BEGIN " + "PRIVATE KEY-----\nMIIE\n"]
)
@pytest.mark.parametrize("around", [0, 200_000], ids=["short", "long"])
def test_a_secret_would_be_found(text: str, around: int) -> None:
    assert list(secrets_of("x\n" * around + text + "\n" + "x\n" * around, Patterns()))


# ---------------------------------------------------------------------------------------------------------------------
# bandit


def bandit(*what: Path) -> dict[str, list[dict[str, str]]]:
    command = [
        sys.executable,
        "-m",
        "bandit",
        "--quiet",
        "--format",
        "json",
        "--configfile",
        "pyproject.toml",
        "--recursive",
        *map(str, what),
    ]
    return cast("dict[str, list[dict[str, str]]]", json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout))


@pytest.mark.slow
def test_bandit_would_find_what_is_wrong(tmp_path: Path) -> None:
    """`make lint` has it look at the source itself."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import subprocess, pickle\nsubprocess.run('ls', shell=True)\npickle.loads(b'')\neval('1')\n")
    assert {found["test_id"] for found in bandit(wrong)["results"]} >= {"B602", "B301", "B307"}
