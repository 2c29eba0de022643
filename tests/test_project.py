"""Promises of the repository itself: what it leaves out, what it imports, what it installs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements-dev.lock").read_text()

# Recorded bytes are what they are; how they were recorded is ours.
VERBATIM = re.compile(r"tests/recordings/(?!.*/record\.py$)|tests/bad-input/")
# Spelled in two halves, or this file would be the first to break its own rule.
FOLDERS = ["/wo" + "rk/", "/ro" + "ot/", "/tm" + "p/v/"]
HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "debian" + ".org"]
FORBIDDEN = re.compile("|".join([*(r"(?<![\w.-])" + re.escape(name) for name in FOLDERS), *map(re.escape, HOSTS)]).encode())


def tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listing.decode().split("\0") if name and (ROOT / name).is_file()]


def imported_by(*arguments: str) -> set[str]:
    """The modules that a Python process imports, by its own account."""
    run = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def locked() -> dict[str, str]:
    """Every entry of the lock file by its package."""
    entries = re.sub(r"#.*", "", LOCK).replace("\\\n", " ").splitlines()
    return {canonicalize_name(Requirement(entry.partition(" --hash")[0]).name): entry for entry in entries if entry.strip()}


def installed_with(name: str) -> set[str]:
    """The packages that a plain install of one brings, itself included."""
    found: set[str] = set()
    wanted = [name]
    while wanted:
        package = canonicalize_name(wanted.pop())
        if package not in found:
            found.add(package)
            needs = [Requirement(need) for need in distribution(package).requires or []]
            wanted += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What is in the repository


def test_no_file_names_a_machine_or_a_registry():
    found = [
        f"{name}:{number}: {line[:100]!r}"
        for name in tracked_files()
        if not VERBATIM.match(name)
        for number, line in enumerate((ROOT / name).read_bytes().split(b"\n"), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []


def test_readme_is_under_100_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) < 100


def test_changelog_speaks_of_the_log_format():
    unreleased = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]
    assert unreleased.startswith("[Unreleased]")
    assert "### Log format" in unreleased


# ---------------------------------------------------------------------------------------------------------------------
# What is imported


def test_importing_hansard_imports_no_terminal_and_no_server():
    modules = imported_by("-c", "import hansard")
    assert not packages(modules) & {"rich", "click", "starlette", "uvicorn", "websockets", "psycopg"}
    assert not [module for module in modules if module.startswith(("hansard.cli", "hansard.server", "hansard.agents"))]


JOBS = {
    "reading": (
        "import hansard; list(hansard.normalize(b'{}', 'claude-control'))",
        "store importing projections agents server",
    ),
    "keeping": (
        "import hansard, hansard.importing.run, hansard.store.transfer.copy; hansard.open('.')",
        "agents server",
    ),
    "passing on": ("import hansard; list(hansard.project([], 'html'))", "store importing agents server"),
    "driving": ("import hansard, hansard.agents.hub; hansard.execute, hansard.Session", "server"),
}
"""Each job, and the parts of hansard that it must not import."""


@pytest.mark.parametrize("job", JOBS)
def test_a_job_imports_only_what_it_needs(job: str):
    work, without = JOBS[job]
    modules = imported_by("-c", work)
    assert not {f"hansard.{name}" for name in without.split()} & modules
    assert not packages(modules) & {"starlette", "uvicorn", "websockets"}


def test_types_are_checked_strictly():
    settings = PYPROJECT["tool"]["pyright"]
    assert settings["strict"] == ["src"] and {"src", "tests", "tools"} <= set(settings["include"])
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    assert "pyright --warnings" in lint
    assert "lint" in (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n")[0]


def test_version_imports_nothing_but_the_version():
    modules = imported_by("-m", "hansard", "--version")
    assert not packages(modules) & {"click", "rich", "msgspec", "asyncio"}, "hansard/__init__.py must import its names on use"
    ours = {module for module in modules if module.startswith("hansard.")}
    assert ours <= {"hansard._version", "hansard.cli", "hansard.__main__"}


def test_help_imports_no_verb_and_nothing_heavy():
    modules = imported_by("-m", "hansard", "--help")
    assert "hansard.cli" in modules
    assert not packages(modules) & {"click", "rich", "msgspec", "asyncio", "typing"}
    assert not {module for module in modules if module.startswith("hansard.cli.")}


# ---------------------------------------------------------------------------------------------------------------------
# What is installed


def test_the_lock_has_no_address():
    assert "://" not in LOCK
    assert "--index-url" not in LOCK
    assert "--find-links" not in LOCK


def test_every_locked_package_has_a_version_and_a_hash():
    assert len(locked()) > 20
    assert [name for name, entry in locked().items() if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_the_lock_covers_what_pyproject_asks_for():
    asked = [Requirement(text) for text in [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["dev"]]]
    for need in asked:
        entry = locked()[canonicalize_name(need.name)]
        pinned = re.search(r"==([^ ;]+)", entry)
        assert pinned
        assert pinned.group(1) in need.specifier, f"{need} is locked at {pinned.group(1)}; run `make lock`"


def test_a_plain_install_stays_small():
    assert len(PYPROJECT["project"]["dependencies"]) <= 7
    assert len(installed_with("hansard")) <= 12
