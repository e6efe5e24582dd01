"""The user's own classes that a spec names, and what they raise."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rumormill import catalogue
from rumormill.errors import ContractError, RumormillError
from rumormill.experiments.spec.schema import Spec
from rumormill.experiments.spec.tables import PARTS, flat
from rumormill.text import one_line


def own_names(spec: Spec) -> list[str]:
    """All words of a spec that may name an own class: "module:Class"."""
    plain = flat(spec)
    return [word for part in (*PARTS, "sweep") for word in _words(plain[part]) if catalogue.is_own(word)]


def _words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [value] if isinstance(value, str) else []


@contextmanager
def own_errors(spec: Spec) -> Iterator[None]:
    """What an own class raises is reported as its own, with the line it comes from."""
    try:
        yield
    except RumormillError:
        raise
    except Exception as error:
        modules = {name.partition(":")[0] for name in own_names(spec)}
        frames = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals.get("__name__") in modules
        ]
        if not frames:
            raise
        file, line = frames[-1]
        said = f"{type(error).__name__}: {one_line(str(error))}"
        raise ContractError(f"{file}, line {line}: {said} (raised by a class of your own)") from error
