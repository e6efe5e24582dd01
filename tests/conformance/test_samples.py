"""The conformance tests read the catalogue: what enters it without a sample is an error, not an omission."""

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import rumormill as rm
from helpers.catalogue_samples import NEEDED, VALUES, every, samples
from rumormill import catalogue


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_every_name_and_setting_is_tried(kind: str) -> None:
    tried = {param.values[0] for param in every(kind)}
    assert tried == set(catalogue.KINDS[kind].classes)


@pytest.mark.parametrize("kind", catalogue.KINDS)
def test_no_sample_is_left_over(kind: str) -> None:
    classes = catalogue.KINDS[kind].classes
    assert set(NEEDED[kind]) <= set(classes)
    taken = {setting.name for cls in classes.values() for setting in catalogue.settings(cls)}
    assert set(VALUES[kind]) <= taken


def test_a_newcomer_without_samples_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Needy(rm.Estimator):
        depth: int

    @dataclass(frozen=True, kw_only=True)
    class Choosy(rm.Estimator):
        depth: int = 3

    newcomers = ModuleType("rumormill.estimators.newcomers")
    vars(newcomers).update(Needy=Needy, Choosy=Choosy)
    monkeypatch.setitem(sys.modules, newcomers.__name__, newcomers)
    for name in ("needy", "choosy"):
        monkeypatch.setitem(catalogue.ESTIMATORS._places, name, f"newcomers:{name.capitalize()}")
    with pytest.raises(LookupError, match="the estimator needy needs depth"):
        samples("estimator", "needy")
    with pytest.raises(LookupError, match="the estimator choosy takes depth"):
        samples("estimator", "choosy")
    with pytest.raises(LookupError):
        every("estimator")
