"""The generated pages say something about everything that there is."""

from __future__ import annotations

import re
import sys
import typing
from pathlib import Path

import msgspec
import pytest

from rumormill import catalogue
from rumormill.cli.app import COMMANDS
from rumormill.experiments.spec import schema

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the scripts are no part of the package

from scripts.docs import api_pages, commands_page, spec_page  # noqa: E402
from scripts.docs.excerpts import MARK, with_code  # noqa: E402
from scripts.docs.settings import described  # noqa: E402
from scripts.docs.stage import linked  # noqa: E402

CLASSES = [
    (kind.name, name, cls)
    for kind in catalogue.KINDS.values()
    for name, cls in kind.classes.items()
    if catalogue.settings_of(kind.name, cls)
]
FORMS = [
    each
    for each in vars(schema).values()
    if isinstance(each, type) and issubclass(each, schema.Form) and msgspec.structs.fields(each)
]


@pytest.mark.parametrize(("kind", "name", "cls"), CLASSES, ids=lambda value: str(value))
def test_every_setting_is_described_under_its_field(kind: str, name: str, cls: type) -> None:
    said = described(cls)
    assert [one.name for one in catalogue.settings_of(kind, cls) if not said.get(one.name)] == []


@pytest.mark.parametrize("form", FORMS)
def test_every_key_of_a_spec_is_described(form: typing.Any) -> None:
    said = described(form)
    names = [field.name for field in msgspec.structs.fields(form) if field.name not in ("settings", "folder")]
    assert [name for name in names if not said.get(name)] == []


def test_every_name_of_the_catalogue_is_on_the_page_of_specs() -> None:
    page = spec_page.page()
    for kind in catalogue.KINDS.values():
        tag = "estimator" if kind.name == "estimator" else kind.tag
        for name in kind.classes:
            assert f'### {tag} = "{name}"\n' in page


def test_every_command_and_option_is_on_its_page() -> None:
    page = commands_page.page()
    for name in COMMANDS:
        assert f"## rumormill {name}\n" in page
    assert "| `--json` |  |  | Print JSON instead of tables. |" in page
    assert "| `--minimise/--maximise` |" in page
    assert "| `--executor` | `threads`, `processes`, `ray` | `threads` |" in page


def test_every_public_name_is_on_a_page() -> None:
    import rumormill

    pages = api_pages.pages()
    headings = set(re.findall(r"^##? (rm\.[\w.]+)$", "\n".join(pages.values()), re.MULTILINE))
    assert {f"rm.{name}" for name in rumormill.__all__} <= headings


def test_links_lead_to_where_pages_stand_in_the_site() -> None:
    text = (
        "[a](decisions) [b](../CONTRIBUTING.md#x) [c](semantics.md) [d](https://e.f/g.md)\n```\n[a](b)\n```\n"
    )
    assert linked(text, "docs/architecture.md") == (
        "[a](decisions/index.md) [b](contributing.md#x) [c](semantics.md) [d](https://e.f/g.md)\n"
        "```\n[a](b)\n```\n"
    )
    assert linked("[a](docs/live.md)", "CONTRIBUTING.md") == "[a](live.md)"


def test_code_beside_the_pseudo_code_is_found() -> None:
    page = (ROOT / "docs" / "algorithms.md").read_text("utf-8")
    marks = len(MARK.findall(page))
    shown = with_code(page)
    assert marks > 10
    assert shown.count(":lineno-start:") == marks
    assert "def upper_index(" in shown
