"""Debian's chromium, for the pages that the project makes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install -e .[dev]"
)

_CHROMIUM = shutil.which("chromium")
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
needs_chromium = pytest.mark.skipif(
    _CHROMIUM is None, reason="chromium is not installed: apt-get install chromium (CI tries to, as root)"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window, closed at the end."""
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        try:
            yield running
        finally:
            running.close()
