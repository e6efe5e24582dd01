"""Names of the public API on the site: where each is described, links to it, Sphinx' inventory of them."""

from __future__ import annotations

import inspect
import re
from pathlib import PurePosixPath
from typing import Any

from scripts.docs.api_pages import GROUPS

import rumormill

# Inline code that begins with a name, outside of links: rm.compare(...), or a class alone.
NAME = re.compile(r"(?<!\[)`(?:rm\.|(?=[A-Z]))(\w+)(?:[.(][^`]*)?`(?!\]\()")


def places() -> dict[str, tuple[str, str]]:
    """Name → page without its suffix, and the anchor of its heading there."""
    rooms = rumormill._ROOM_OF
    page_of = {room: file for file, (_, listed) in GROUPS.items() for room in listed.split()}
    return {
        name: (f"reference/api/{page_of[room]}", f"rm{name.lower()}")
        for name, room in rooms.items()
        if room in page_of
    }


def with_links(text: str, page: str) -> str:
    """The page with names of the API linked to their description; headings are left alone."""
    known = places()
    up = "../" * (len(PurePosixPath(page).parts) - 1)

    def linked(found: re.Match[str]) -> str:
        if found[1] not in known:
            return found[0]
        file, anchor = known[found[1]]
        return f"[{found[0]}]({up}{file}.md#{anchor})"

    lines = (line if line.startswith("#") else NAME.sub(linked, line) for line in text.split("\n"))
    return "\n".join(lines)


def register(app: Any, env: Any) -> list[str]:
    """Enter all names into the Python domain: `objects.inv` has them, and other projects can link here."""
    domain = env.get_domain("py")
    for name, (page, anchor) in places().items():
        thing = getattr(rumormill, name)
        kind = "class" if inspect.isclass(thing) else "function"
        kind = "exception" if inspect.isclass(thing) and issubclass(thing, BaseException) else kind
        env.current_document.docname = page
        domain.note_object(f"rumormill.{name}", kind, anchor)
    env.current_document.docname = ""
    return []
