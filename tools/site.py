"""Build the site of docs/: stage every page, also those beside the code, and give them to MkDocs, which must not warn. `make site`.

The site is plain files without a network: no web font, no CDN, and search works where it is opened from a folder.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ADAPTERS = "src/hansard/adapters"
SITE = ROOT / "build" / "site"
PICTURES = (".gif", ".png", ".svg")

NAV: dict[str, list[str]] = {
    "Start": [
        "index.md",
        "start/your-sessions.md",
        "start/record-an-agent.md",
        "start/build-a-ui.md",
        "start/notebook.md",
        "start/team-server.md",
    ],
    "Guides": [
        "questions.md",
        "how-it-works.md",
        "page.md",
        "edits.md",
        "agents.md",
        "debugging.md",
        "replay.md",
        "moving.md",
        "tools.md",
        "messages.md",
        "plugins.md",
        "integrations.md",
    ],
    "Reference": ["events.md", "log-format.md", "cli.md", "protocol.md", "projections.md", "features.md", "glossary.md", "adapters/"],
    "Operate": ["security.md", "deployment.md", "scale.md", "performance.md"],
    "Proof": ["truth.md", "scorecard.md", "reliability.md", "drops.md"],
    "Project": ["code.md", "contributing.md", "changelog.md", "code-of-conduct.md", "decisions/"],
}
"""The navigation. A folder stands for all of its pages. A page of docs/ that is in none of these comes last among the guides."""
LATECOMERS = "Guides"


def outside() -> dict[str, Path]:
    """The pages that are not in docs/: their place on the site, and the file."""
    found = {f"{path.stem.lower().replace('_', '-')}.md": path for path in ROOT.glob("*.md") if path.name != "README.md"}
    for path in sorted((ROOT / ADAPTERS).glob("*/README*.md")):
        found[f"adapters/{path.parent.name}{path.stem.removeprefix('README')}.md"] = path
    return found


@cache
def sources() -> dict[str, Path]:
    """Every page that is a file: its place on the site, and the file."""
    docs = ROOT / "docs"
    return {str(path.relative_to(docs)): path for path in sorted(docs.rglob("*.md"))} | outside()


# --------------------------------------------------------------------------------------------------------------------
# Pages


def stage(place: str, path: Path, places: dict[Path, str]) -> str:
    """The text of a page with links as the site has them."""
    parts = re.split(r"(^ *```.*?^ *```$)", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.lstrip().startswith("```") else _linked(part, place, path, places) for part in parts)


def _linked(text: str, place: str, path: Path, places: dict[Path, str]) -> str:
    def link(found: re.Match[str]) -> str:
        target, hash, anchor = found["target"].partition("#")
        if not target or "://" in target:
            return found[0]
        file = (path.parent / target).resolve()
        if file in places:
            return f"[{found['words']}]({_relative(places[file], place)}{hash}{anchor})"
        if file.is_dir() and f"{file.name}/index.md" in places.values():
            return f"[{found['words']}]({_relative(f'{file.name}/index.md', place)})"
        if not file.exists():
            raise SystemExit(f"{path.relative_to(ROOT)}: there is no {target}")
        return found[0] if found["picture"] else found["words"]  # what is only in the repository is no page

    def mention(found: re.Match[str]) -> str:
        file = ROOT / found[0]
        return f"[{title(file.read_text())}]({_relative(places[file], place)})" if file in places else found[0]

    linked = re.sub(r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)(?P<picture>)", link, text)
    return re.sub(r"(?<![\w/\[(`])(?:docs/)[\w-]+\.md(?![\w`\])])", mention, linked)


def _relative(target: str, place: str) -> str:
    return os.path.relpath(target, Path(place).parent)


def title(text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit("a page has no title")
    return found[1]


def index(name: str, about: str, pages: Iterable[str]) -> str:
    """The first page of a folder: what is in it."""
    rows = [f"- [{title(sources()[page].read_text())}]({Path(page).name})" for page in pages]
    return "\n".join([f"# {name}", "", about, "", *rows, ""])


FOLDERS = {
    "adapters": (
        "Wire notes",
        "One page for each family of wires: the program and its version, how it is started, every type on its wire with the event it "
        "becomes, and its quirks with their sources. What no table names becomes `raw`: kept, counted, shown. "
        "[What each wire has](../features.md) compares them.",
    ),
    "decisions": ("Decisions", "What others will ask about, one screen each: context, decision, price."),
}


# --------------------------------------------------------------------------------------------------------------------
# The site


def write(staged: Path) -> None:
    """Put every page and picture where MkDocs reads them."""
    known = {path.resolve(): place for place, path in sources().items()}
    known |= {(ROOT / "docs" / folder).resolve(): f"{folder}/index.md" for folder in FOLDERS}
    known[ROOT / "README.md"] = "index.md"
    for place, path in sources().items():
        target = staged / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(stage(place, path, known))
    for folder, (name, about) in FOLDERS.items():
        (staged / folder / "index.md").write_text(index(name, about, _inside(f"{folder}/", sources())))
    for picture in (path for path in (ROOT / "docs").rglob("*") if path.suffix in PICTURES):
        target = staged / picture.relative_to(ROOT / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    shutil.copytree(ROOT / "tools" / "site", staged / "assets")
    shutil.copy(ROOT / "src/hansard/projections/page/static/icons/quiet.svg", staged / "assets")


def navigation(places: Iterable[str]) -> list[dict[str, Any]]:
    """The navigation, with every page there is. One that is listed and is not there is an error."""
    left = dict.fromkeys(places)
    made: dict[str, list[str]] = {}
    for section, listed in NAV.items():
        made[section] = [page for name in listed for page in (_inside(name, left) if name.endswith("/") else [name])]
        missing = [page for page in made[section] if page not in left]
        if missing:
            raise SystemExit(f"the navigation lists {' '.join(missing)}, and there is no such page")
        for page in made[section]:
            del left[page]
    made[LATECOMERS] += left
    return [{section: _entries(pages)} for section, pages in made.items()]


def _inside(folder: str, places: Iterable[str]) -> list[str]:
    return sorted(place for place in places if place.startswith(folder))


def _entries(pages: list[str]) -> list[dict[str, Any]]:
    """Pages by their titles; those of a folder together, after the folder's first page."""
    entries: list[dict[str, Any]] = []
    folders: dict[str, list[Any]] = {}
    for page in pages:
        folder = page.partition("/")[0]
        if folder not in FOLDERS:
            entries.append({_title_of(page): page})
            continue
        if folder not in folders:
            folders[folder] = [f"{folder}/index.md"]
            entries.append({FOLDERS[folder][0]: folders[folder]})
        folders[folder].append({_title_of(page).partition(":")[0]: page})
    return entries


def _title_of(page: str) -> str:
    return title(sources()[page].read_text()).replace("`", "")


def make(site: Path) -> None:
    """Build the site there; MkDocs raises `Abort` where it has warned."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # the theme speaks of a version of MkDocs that is not this one
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    with TemporaryDirectory() as staged:
        write(Path(staged))
        build(load_config(str(ROOT / "mkdocs.yml"), docs_dir=staged, site_dir=str(site), nav=navigation(sources()), strict=True))


def main() -> int:
    """Build it; what MkDocs warns of is said, and ends it."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    make(SITE)
    print(f"the site is in {SITE.relative_to(ROOT)}: open index.html, or `python -m http.server -d {SITE.relative_to(ROOT)}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
