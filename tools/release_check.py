"""What a release would be, tried: built, its metadata read by those who judge them, installed into an empty environment, used.

`make release-check`. It needs a package index. What it measures it prints; nothing here depends on a time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
DIST = ROOT / "dist"
MOST_PACKAGES = 12
JUDGES = ["twine==7.0.0", "cyclonedx-python-lib[json-validation]==11.12.0", "zizmor==1.32.0"]
"""Who judges the metadata, the bill of materials and the workflows. Not locked: they are in no environment but that of this check."""
VALID = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(f"{sys.argv[1]}: {wrong}" if wrong else 0)
"""


def main() -> int:
    """Build, judge, install, use."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "--directory", DIST, cwd=ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    judge(wheel, sdist)
    use(wheel)
    return 0


def judge(wheel: Path, sdist: Path) -> None:
    """Ask the judges."""
    python = environment(BUILD / "judges")
    pip(python, *JUDGES)
    run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    run(python, "-c", VALID, ROOT / "packaging/hansard.cdx.json")
    print("the bill of materials is valid CycloneDX 1.6")
    run(python.parent / "zizmor", "--offline", "--persona", "pedantic", "--quiet", ROOT / ".github/workflows")
    print("zizmor finds nothing in the workflows")


def use(wheel: Path) -> None:
    """Install it where nothing is, as somebody new would, and see the demo."""
    python = environment(BUILD / "fresh")
    began = time.perf_counter()
    pip(python, wheel)
    print(f"installed in {time.perf_counter() - began:.1f} s")
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check", quiet=True))
    names = sorted(one["name"] for one in listed if one["name"] not in ("pip", "setuptools"))
    print(f"{len(names)} packages: {', '.join(names)}")
    if len(names) > MOST_PACKAGES:
        sys.exit(f"more than {MOST_PACKAGES}")
    if not (python.parent.parent / "share/man/man1/hansard.1").is_file():
        sys.exit("the manual page is not where man looks")
    hansard = python.parent / "hansard"
    print(run(hansard, "--version", quiet=True).strip())
    shown = run(hansard, "demo", "--terminal", "--speed", "0", quiet=True)
    print(f"the demo says {len(shown.splitlines())} lines")
    run(hansard, "schema", quiet=True)


def environment(place: Path) -> Path:
    """An empty environment: its Python."""
    venv.create(place, clear=True, with_pip=True)
    return place / "bin/python"


def pip(python: Path, *what: object) -> None:
    """Install something."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def run(*command: object, cwd: Path = BUILD, quiet: bool = False) -> str:
    """Run a program away from the source, so that it finds what is installed. Its failure is ours."""
    BUILD.mkdir(exist_ok=True)
    apart = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HANSARD_STORE")}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=apart, text=True, stdout=subprocess.PIPE if quiet else None)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(str(part) for part in command[:4])} …")
    return done.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
