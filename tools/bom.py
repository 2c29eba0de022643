"""The bill of materials: what is in the wheel and what is installed with it, as CycloneDX 1.6 (PEP 770 says where it goes).

Made of pyproject.toml, the lock and the list of the page's libraries, and of nothing else: the same commit, the same file. So it has no
time and no random name.
"""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import metadata, requires
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hansard._version import __version__

ROOT = Path(__file__).parent.parent
VENDORED = "src/hansard/projections/page/static/vendor"
ENVIRONMENT = {"extra": "", "python_version": "3.11", "python_full_version": "3.11.0", "platform_system": "Linux", "sys_platform": "linux"}
"""For whom the dependencies are listed: the oldest Python, which needs the most."""


def bom() -> str:
    """The bill, as JSON."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs, pinned = tree(project["dependencies"]), versions()
    installed = [library(name, pinned[name]) for name in sorted(needs.keys() - {"hansard"})]
    vendored = [
        vendored_library(name, about) for name, about in sorted(tomllib.loads((ROOT / VENDORED / "VENDOR.toml").read_text()).items())
    ]
    refs = {"hansard": ref("hansard", __version__)} | {name: ref(name, pinned[name]) for name in needs if name != "hansard"}
    depends = [{"ref": refs[name], "dependsOn": sorted(refs[need] for need in needs[name])} for name in sorted(needs)]
    inside = [{"ref": one["bom-ref"], "dependsOn": []} for one in vendored]
    depends = [
        one if one["ref"] != refs["hansard"] else one | {"dependsOn": sorted([*one["dependsOn"], *(v["ref"] for v in inside)])}
        for one in depends
    ]
    made: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": refs["hansard"],
                "name": "hansard",
                "version": __version__,
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": refs["hansard"],
            }
        },
        "components": installed + vendored,
        "dependencies": sorted(depends + inside, key=lambda one: one["ref"]),
    }
    made["serialNumber"] = f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(made, sort_keys=True))}"
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def tree(direct: list[str]) -> dict[str, list[str]]:
    """Every package that a plain install brings, with those that it needs itself. Who needs whom the packages say that are here."""
    found = {"hansard": named(direct)}
    wanted = list(found["hansard"])
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = named(requires(name) or [])
            wanted += found[name]
    return found


def named(needs: list[str]) -> list[str]:
    """The names of the requirements that hold for `ENVIRONMENT`."""
    read = [Requirement(need) for need in needs]
    return sorted({canonicalize_name(need.name) for need in read if need.marker is None or need.marker.evaluate(ENVIRONMENT)})


def versions() -> dict[str, str]:
    """The version of every locked package: the one that the tests of this commit ran with."""
    lines = [line.split(" ")[0] for line in (ROOT / "requirements-dev.lock").read_text().splitlines() if line[:1].isalnum()]
    return {canonicalize_name(name.partition("[")[0]): version for name, _, version in (line.partition("==") for line in lines)}


def library(name: str, version: str) -> dict[str, Any]:
    """A package from the index, beside hansard."""
    said = metadata(name).json
    licence = said.get("license_expression")
    about = {
        "type": "library",
        "bom-ref": ref(name, version),
        "name": name,
        "version": version,
        "purl": ref(name, version),
        "scope": "required",
    }
    return about | {"licenses": [{"expression": licence} if licence else {"license": {"name": said.get("license") or "see the package"}}]}


def vendored_library(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """A library of the page, inside the wheel: each of its files by its hash."""
    purl = f"pkg:npm/{name}@{about['version']}"
    files = [
        {"type": "file", "name": f"hansard/projections/page/static/vendor/{path}", "hashes": [{"alg": "SHA-256", "content": sha256}]}
        for path, sha256 in sorted(about["sha256"].items())
    ]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": about["version"],
        "purl": purl,
        "licenses": [{"license": {"id": about["licence"]}}],
        "externalReferences": [{"type": "vcs", "url": about["source"]}],
        "components": files,
    }


def ref(name: str, version: str) -> str:
    """The name of a package of the index, for machines."""
    return f"pkg:pypi/{name}@{version}"
