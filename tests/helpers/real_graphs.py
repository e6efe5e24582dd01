"""The two published graphs, which are not part of the project: where they are, if they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("RUMORMILL_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = ("facebook_combined.txt", "p2p-Gnutella04.txt")
needs_real_graphs = pytest.mark.skipif(
    not all((FOLDER / name).is_file() for name in FILES),
    reason="the published graphs are not there: `rumormill data` fetches them into RUMORMILL_DATA",
)
