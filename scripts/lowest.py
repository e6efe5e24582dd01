"""The declared lower bounds as constraints: `python scripts/lowest.py lab node > lowest.txt`.

`make test-lowest` installs exactly these versions and runs scripts/smoke.py with them, so that the bounds in
pyproject.toml are tested and not wished for.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)>=([0-9][0-9A-Za-z.]*)")


def floors(extras: Sequence[str]) -> dict[str, str]:
    """Package → lowest version, of the core and of the extras named."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    unknown = sorted(set(extras) - set(project["optional-dependencies"]))
    if unknown:
        raise SystemExit(f"{PROJECT.name} has no extra {', '.join(unknown)}")
    listed = [*project["dependencies"]]
    for extra in extras:
        listed += project["optional-dependencies"][extra]
    found: dict[str, str] = {}
    for requirement in listed:
        matched = REQUIREMENT.match(requirement)
        if matched is None:
            raise SystemExit(f"{requirement!r} declares no lower bound: write NAME>=VERSION")
        found[matched[1]] = matched[2]
    return found


if __name__ == "__main__":
    for name, version in floors(sys.argv[1:]).items():
        print(f"{name}=={version}")
