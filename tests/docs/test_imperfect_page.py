"""The example on the page of the imperfect world is executed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "imperfect.md"


def test_the_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
