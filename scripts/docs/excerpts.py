"""Code in pages: `<!-- code: package.module:Class.method -->` becomes the lines themselves, numbered."""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from operator import attrgetter

MARK = re.compile(r"^<!-- code: ([\w.]+):([\w.]+) -->$", re.MULTILINE)


def with_code(page: str) -> str:
    """The page with every mark replaced."""
    return MARK.sub(lambda found: _block(*found.groups()), page)


def _block(module: str, name: str) -> str:
    thing = attrgetter(name)(import_module(module))
    lines, first = inspect.getsourcelines(thing)
    file = "src/" + module.replace(".", "/") + ".py"
    code = textwrap.dedent("".join(lines)).rstrip()
    head = ["```{code-block} python", f":lineno-start: {first}", f":caption: {file}, from line {first}", ""]
    return "\n".join([*head, code, "```"])
