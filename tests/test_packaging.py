"""What is handed to users: the wheel and the source, the manual page, the bill of materials, what shells complete, the workflows."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hansard._version import __version__
from hansard.cli import VERBS
from tests.test_project import PYPROJECT, ROOT, installed_with, locked, tracked_files
from tools.generate_packaged import FILES

MAN = ROOT / "packaging/man/hansard.1"
BOM = json.loads((ROOT / "packaging/hansard.cdx.json").read_text())

# ---------------------------------------------------------------------------------------------------------------------
# The wheel and the source


def build(folder: Path, out: Path, *targets: str, **surroundings: Any) -> list[Path]:
    """What the build backend makes of a folder, by name."""
    chosen = [part for target in targets for part in ("--target", target)]
    command = [sys.executable, "-m", "hatchling", "build", *chosen, "--directory", str(out)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, **surroundings)
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The same files, built in two folders, under other names, times, rights, languages and hash seeds; and the wheel of the source."""
    found: dict[str, list[Path]] = {}
    base = tmp_path_factory.mktemp("built")
    surroundings = {
        "here": {"umask": 0o022, "env": os.environ | {"PYTHONHASHSEED": "1", "TZ": "UTC"}},
        "elsewhere": {"umask": 0o077, "env": os.environ | {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C"}},
    }
    for name, around in surroundings.items():
        folder = base / name / ("a" if name == "here" else "a-longer-name")
        for path in tracked_files():
            if not path.startswith(("tests/", "docs/", "benchmarks/")):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, folder / path)
                os.utime(folder / path, (len(name), len(name)))
        found[name] = build(folder, base / f"{name}-out", **around)
    with tarfile.open(next(path for path in found["here"] if path.suffix == ".gz")) as source:
        source.extractall(base / "source", filter="data")
    found["source"] = build(base / f"source/hansard-{__version__}", base / "source-out", "wheel")
    return found


def hashes(paths: list[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.slow
def test_the_same_commit_gives_the_same_wheel_and_the_same_source(built: dict[str, list[Path]]) -> None:
    here = hashes(built["here"])
    assert sorted(here) == [f"hansard-{__version__}-py3-none-any.whl", f"hansard-{__version__}.tar.gz"]
    assert hashes(built["elsewhere"]) == here


@pytest.mark.slow
def test_the_source_gives_the_same_wheel(built: dict[str, list[Path]]) -> None:
    assert hashes(built["source"]).items() <= hashes(built["here"]).items()


@pytest.mark.slow
def test_the_wheel_has_all_that_is_needed_and_nothing_else(built: dict[str, list[Path]]) -> None:
    with zipfile.ZipFile(built["source"][0]) as wheel:
        names = set(wheel.namelist())
        about = f"hansard-{__version__}.dist-info"
        data = f"hansard-{__version__}.data/data/share/man/man1/hansard.1"
        ours = {name.removeprefix("src/") for name in tracked_files() if name.startswith("src/")}
        assert {name for name in names if name.startswith("hansard/")} == ours
        assert ours > {"hansard/projections/page/static/index.html", "hansard/py.typed", "hansard/demo/claude_permission.jsonl.gz"}
        rest = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "sboms/hansard.cdx.json"}
        assert names - ours == {data, *(f"{about}/{name}" for name in rest)}
        assert wheel.read(data) == MAN.read_bytes()
        for name, stated, _ in csv.reader(io.StringIO(wheel.read(f"{about}/RECORD").decode())):
            if stated:
                assert stated == "sha256=" + urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip("="), name


def test_what_an_extra_brings_is_not_installed_without_it() -> None:
    plain = installed_with("hansard")
    for extra, needs in PYPROJECT["project"]["optional-dependencies"].items():
        assert not plain & {canonicalize_name(Requirement(need).name) for need in needs}, extra


# ---------------------------------------------------------------------------------------------------------------------
# The manual page and the bill of materials


@pytest.mark.parametrize("name", FILES)
def test_what_is_made_for_the_wheel_is_current(name: str) -> None:
    assert (ROOT / name).read_text() == FILES[name](), "stale; run `make docs`"


def test_the_manual_has_every_command_and_is_plain_ascii() -> None:
    page = MAN.read_text()
    assert page.isascii()
    assert re.findall(r"^\.SS (.+)$", page, re.MULTILINE) == list(VERBS)


@pytest.mark.parametrize(
    "reader",
    [
        ["mandoc", "-Tlint", "-Wstyle"],
        ["groff", "-ww", "-man", "-Tutf8", "-z"],
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"],
    ],
    ids=lambda reader: reader[0],
)
def test_whoever_formats_the_manual_has_nothing_to_complain_of(reader: list[str]) -> None:
    if shutil.which(reader[0]) is None:
        pytest.skip(f"{reader[0]} is not here")
    ran = subprocess.run([*reader, str(MAN)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert reader[0] != "mandoc" or ran.stdout == ""


def test_the_bill_lists_what_is_installed_in_the_locked_version() -> None:
    pinned = {name: re.search(r"==([^ ;]+)", entry) for name, entry in locked().items()}
    listed = {one["name"]: one["version"] for one in BOM["components"] if one["purl"].startswith("pkg:pypi/")}
    assert set(listed) >= installed_with("hansard") - {"hansard"}
    assert {name: found.group(1) for name, found in pinned.items() if found and name in listed} == listed
    assert BOM["metadata"]["component"]["version"] == __version__


def test_the_bill_has_every_file_of_the_libraries_of_the_page_by_its_hash() -> None:
    vendor = ROOT / "src/hansard/projections/page/static/vendor"
    inside = {file["name"]: file["hashes"][0]["content"] for one in BOM["components"] for file in one.get("components", [])}
    there = [path for path in vendor.rglob("*") if path.is_file() and path.name != "VENDOR.toml"]
    assert inside == {f"hansard/{path.relative_to(ROOT / 'src/hansard')}": hashlib.sha256(path.read_bytes()).hexdigest() for path in there}


def test_the_bill_is_in_order() -> None:
    """What CycloneDX asks of it; `make release-check` holds it to the schema."""
    assert (BOM["bomFormat"], BOM["specVersion"], BOM["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", BOM["serialNumber"])
    assert "timestamp" not in BOM["metadata"]
    refs = [BOM["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in BOM["components"])]
    assert len(set(refs)) == len(refs)
    assert sorted(one["ref"] for one in BOM["dependencies"]) == sorted(refs)
    assert {need for one in BOM["dependencies"] for need in one["dependsOn"]} == set(refs[1:])
    assert all(one["licenses"] for one in BOM["components"])


# ---------------------------------------------------------------------------------------------------------------------
# Shells

ASKED = {
    "hansard ses": {"sessions"},
    "hansard show demo-c": {"demo-codex", "demo-claude"},
    "hansard copy --from $PWD/other oth": {"other-one"},
    "hansard export --to open": {"openai-messages", "openai-responses"},
    "hansard normalize --from codex-": {"codex-app-server", "codex-exec-json", "codex-rollout"},
    "hansard run gem": {"gemini", "gemini-oneshot"},
    "hansard events demo-codex --type turn_": {"turn_end", "turn_start"},
    "hansard sessions --lim": {"--limit"},
}
"""What is typed before Tab, and what is offered then."""
BASH = r"""
eval "$(hansard completion bash)"
while read -r line; do
    COMP_WORDS=($(eval echo "$line")); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
    _hansard_completion hansard
    echo "${COMPREPLY[@]}"
done
"""
ZSH = r"""
autoload -U compinit && compinit -u -d "$PWD/dump"
eval "$(hansard completion zsh)"
_path_files() { :; }
_describe() { local name=$3; for one in ${(P)name}; do print -rn -- " ${one%%:*}"; done; }
compadd() { local name=$5; print -rn -- " ${(P)name}"; }
while read -r line; do
    words=($(eval echo "$line")); CURRENT=${#words}
    _hansard_completion
    print
done
"""
FISH = r"""
hansard completion fish | source
while read -l line
    echo (complete -C (eval echo "$line") | string split -f 1 \t)
end
"""


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_sessions_formats_forms_agents_and_types(shell: str, tmp_path: Path) -> None:
    from hansard.store import open_store

    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    for place, names in (("store", ["demo-codex", "demo-claude", "mine"]), ("other", ["other-one"])):
        with open_store(tmp_path / place) as store:
            for name in names:
                store.create(name)
    (tmp_path / "hansard").write_text(f'#!/bin/sh\nexec {sys.executable} -m hansard "$@"\n')
    (tmp_path / "hansard").chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "HANSARD_STORE": str(tmp_path / "store"),
        "TERM": "dumb",
    }
    script = {"bash": ["--norc", "-c", BASH], "zsh": ["-f", "-c", ZSH], "fish": ["--no-config", "-c", FISH]}[shell]
    ran = subprocess.run(
        [shell, *script], input="\n".join(ASKED) + "\n", capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    offered = [set(line.split()) for line in ran.stdout.splitlines()]
    assert dict(zip(ASKED, offered, strict=False)) == ASKED, ran.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Workflows

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_secret_no_right_by_default_and_pins_what_it_uses(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    assert "\npermissions: {}\n" in text
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


def test_only_the_job_that_publishes_may_ask_for_an_identity_and_only_after_the_tests() -> None:
    jobs = re.split(r"\n  (?=\w+:\n)", (ROOT / ".github/workflows/release.yml").read_text().partition("\njobs:\n")[2])
    named = {job.strip().partition(":")[0]: job for job in jobs}
    assert [name for name, job in named.items() if "id-token: write" in job] == ["publish"]
    assert "needs: build" in named["publish"] and "needs: test" in named["build"]
    assert "attestations: true" in named["publish"]
    assert not any(": write" in job for name, job in named.items() if name != "publish")


def test_the_version_is_in_one_place() -> None:
    assert "version" not in PYPROJECT["project"]
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["path"] == "src/hansard/_version.py"
