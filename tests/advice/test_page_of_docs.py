"""The example on the page about advice is executed."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "advice.md"


def test_the_example_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(block, "advice.md", "exec"), {"__name__": "advice"})
