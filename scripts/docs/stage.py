"""The sources of the site: the pages of docs/, those beside it, and the generated ones, in one folder."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path, PurePosixPath

from scripts.docs import api_pages, commands_page, gallery_page, notebook_pages, spec_page
from scripts.docs.excerpts import with_code
from scripts.docs.names import with_links
from scripts.docs.pictures import with_pictures

ROOT = Path(__file__).parents[2]
# Pages that lie beside docs/ because whoever opens the repository looks for them there.
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
FOLDERS = {"docs/decisions": "decisions/index.md"}
LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Write all sources into the folder, which is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = ROOT / "docs"
    shutil.copytree(docs, folder)
    pages = [*(path.relative_to(ROOT) for path in docs.rglob("*.md")), *map(Path, BESIDE)]
    for page in pages:
        text = (ROOT / page).read_text("utf-8")
        target = folder / place(page.as_posix())
        pieces = FENCE.split(linked(text, page.as_posix()))
        named = (
            each if each.startswith("```") else with_links(each, place(page.as_posix())) for each in pieces
        )
        ready = with_code("".join(named))
        target.write_text(with_pictures(ready, target.parent / "drawn"), "utf-8")
    notebook_pages.pages(folder)
    for name, text in {**generated(), "gallery.md": gallery_page.page(folder)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def generated() -> dict[str, str]:
    """The pages that are made from the code."""
    decisions = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("*.md"))
    listed = "\n".join(["```{toctree}", ":maxdepth: 1", "", *decisions, "```"])
    return {
        "reference/spec.md": spec_page.page(),
        "reference/commands.md": commands_page.page(),
        "decisions/index.md": f"# Decisions\n\nWhy things are as they are, half a page each.\n\n{listed}\n",
        **{f"reference/api/{name}.md": text for name, text in api_pages.pages().items()},
    }


def place(path: str) -> str:
    """Where a file of the repository stands in the site."""
    if path in BESIDE:
        return BESIDE[path]
    return FOLDERS.get(path.rstrip("/"), path.removeprefix("docs/"))


def linked(text: str, page: str) -> str:
    """The page with its links as they are in the site; those in blocks of code are left alone."""
    here = PurePosixPath(place(page)).parent.as_posix()

    def changed(found: re.Match[str]) -> str:
        target, anchor = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found.group()
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        return posixpath.relpath(place(meant), here) + anchor

    pieces = FENCE.split(text)
    return "".join(piece if piece.startswith("```") else LINK.sub(changed, piece) for piece in pieces)
