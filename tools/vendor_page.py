"""Copies the page's libraries from tests/node/node_modules into the page's static/vendor folder, and records their versions.

The one file that is not an ES module gets two lines around it. `tests/page/test_renderer.py` compares the copies with the packages.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "tests" / "node" / "node_modules"
VENDOR = ROOT / "src" / "hansard" / "projections" / "page" / "static" / "vendor"

LANGUAGES = (
    *("bash", "c", "cpp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json"),
    *("makefile", "markdown", "python", "ruby", "rust", "sql", "typescript", "xml", "yaml"),
)
FILES = {
    "markdown-it": {
        "dist/browser/markdown-it.esm.min.mjs": "markdown-it.js",
        "LICENSE": "markdown-it.LICENSE",
    },
    "highlight.js": {
        "lib/core.js": "highlight.js",
        "LICENSE": "highlight.LICENSE",
        **{f"es/languages/{name}.js": f"languages/{name}.js" for name in LANGUAGES},
    },
}
"""Package, its file, and the name of the copy."""


def copies() -> dict[str, dict[str, bytes]]:
    """What every copy has to be, by package."""
    return {package: {copy: copied(package, name) for name, copy in files.items()} for package, files in FILES.items()}


def copied(package: str, name: str) -> bytes:
    """A file as an ES module."""
    data = (PACKAGES / package / name).read_bytes()
    if b"\nmodule.exports = " in data:
        return b"const module = { exports: {} };\n" + data + b"\nexport default module.exports;\n"
    return data


def table(made: dict[str, dict[str, bytes]]) -> str:
    """VENDOR.toml: what there is, where it comes from, under which licence, and the hash of each file."""
    lines = ["# Made by tools/vendor_page.py.\n"]
    for package, files in made.items():
        about = json.loads((PACKAGES / package / "package.json").read_bytes())
        lines += [f'[{json.dumps(package)}]\nversion = "{about["version"]}"\nlicence = "{about["license"]}"']
        lines += [f'source = "{source(about)}"\n\n[{json.dumps(package)}.sha256]']
        lines += [f'"{name}" = "{hashlib.sha256(data).hexdigest()}"' for name, data in sorted(files.items())] + [""]
    return "\n".join(lines)


def source(about: dict[str, Any]) -> str:
    """Where its code is kept."""
    kept = about["repository"]
    address = kept if isinstance(kept, str) else kept["url"]
    return "https://github.com/" + "/".join(address.removesuffix(".git").split("/")[-2:])


def main() -> None:
    """Write them all."""
    made = copies()
    for files in made.values():
        for name, data in files.items():
            path = VENDOR / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (VENDOR / "VENDOR.toml").write_text(table(made))


if __name__ == "__main__":
    main()
