"""The drawing on the architecture page is the import contract, and the files it names exist."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def drawn() -> list[str]:
    block = re.search(r"<!-- layers -->\n```\n(.*?)```\n<!-- end -->", PAGE, re.DOTALL)
    assert block is not None
    return [re.split(r" {2,}", line)[0] for line in block[1].splitlines()]


def test_the_drawing_is_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [each["layers"] for each in contracts if each["type"] == "layers"]
    assert drawn() == layers


def test_files_and_rooms_on_the_page_exist() -> None:
    named = re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py|(?:[a-z_0-9]+/)+)`", PAGE)
    assert len(named) > 30
    missing = [
        each
        for each in named
        if not any((base / each).exists() for base in (ROOT / "src" / "rumormill", ROOT))
    ]
    assert missing == []
