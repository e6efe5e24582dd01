"""Modules of a user's own: where they are found, and which files they are made of."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from rumormill.errors import InputError
from rumormill.text import one_line

# The own modules that were imported, with the checksum that their file had then.
_loaded: dict[str, tuple[ModuleType, str]] = {}


def import_own(name: str, folder: str | Path | None, where: str) -> ModuleType:
    """A user's module: from the folder if it is there, else from wherever Python looks."""
    home = None if folder is None else Path(folder).resolve()
    if home is not None:
        if str(home) not in sys.path:
            sys.path.insert(0, str(home))
        top = name.split(".")[0]
        here = (home / f"{top}.py").exists() or (home / top).is_dir()
        loaded = sys.modules.get(top)
        # A module of the same name from another folder would silently stand in for this one.
        if here and loaded is not None and not _is_at(loaded, home / top):
            for each in [each for each in sys.modules if each == top or each.startswith(f"{top}.")]:
                del sys.modules[each]
            importlib.invalidate_caches()
            sys.path.remove(str(home))
            sys.path.insert(0, str(home))
    try:
        module = importlib.import_module(name)
    except Exception as error:  # whatever a user's file may raise
        looked = "where Python looks" if home is None else f"{home} and where Python looks"
        raise InputError(
            f"{where} cannot be imported: {type(error).__name__}: {one_line(str(error))} (looked in {looked})"
        ) from error
    if _loaded.get(name, (None, ""))[0] is not module:
        _loaded[name] = (module, _sha256(module))
    return module


def _sha256(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def _is_at(module: ModuleType, place: Path) -> bool:
    """Whether a module is the file `place.py`, or the package in the folder `place`."""
    file = getattr(module, "__file__", None)
    if file is None:  # a package without a file of its own
        return any(Path(each).resolve() == place for each in getattr(module, "__path__", []))
    return Path(file).resolve() == place.with_suffix(".py") or Path(file).resolve().parent == place


def sources(names: Iterable[str], folder: str | Path | None = None) -> dict[str, str]:
    """Checksums of the files in which own classes stand, by module, with what they use beside them.

    Only what has been imported is found: a name that means nothing has no file. A file that was changed
    after its import is refused: what would be noted is not what runs.
    """
    found = _files(names, folder)
    sums = {module: hashlib.sha256(file.read_bytes()).hexdigest() for module, file in found.items()}
    for module, file in found.items():
        if module in _loaded and _loaded[module][1] != sums[module]:
            raise InputError(f"{file} was changed after it was loaded: start Python again to use it")
    return sums


def files_in(folder: str | Path, names: Iterable[str]) -> dict[str, Path]:
    """The files in the folder that own classes need, by their names in it; packages come whole."""
    home = Path(folder).resolve()
    found: dict[str, Path] = {}
    for top in {module.split(".")[0] for module in _files(names, folder)}:
        places = [home / f"{top}.py", *(home / top).rglob("*.py")]
        found.update({str(path.relative_to(home)): path for path in places if path.is_file()})
    return found


def _files(names: Iterable[str], folder: str | Path | None) -> dict[str, Path]:
    """The file of every module in which own classes stand, or that these use."""
    found: dict[str, Path] = {}
    home = None if folder is None else Path(folder).resolve()
    for name in names:
        module, _, path = name.partition(":")
        if hasattr(sys.modules.get(module), path.split(".")[0]):
            _add_sources(module, home, found)
    return found


def _add_sources(module: str, home: Path | None, found: dict[str, Path]) -> None:
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if module in found or not file:
        return
    found[module] = Path(file)
    for value in vars(loaded).values():
        used = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(used, str) and _is_beside(used, module, home):
            _add_sources(used, home, found)


def _is_beside(used: str, module: str, home: Path | None) -> bool:
    """Whether a module is of the same package, or lies directly in the folder."""
    top = used.split(".")[0]
    if top == module.split(".")[0]:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    return home is not None and file is not None and home in list(Path(file).resolve().parents)[:2]
