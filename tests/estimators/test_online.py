"""Online equals definition, to 1e-12 relative, on long streams that hurt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from rumormill.arms import AlphaStable
from rumormill.arms.base import Moments
from rumormill.estimators import (
    Catoni,
    ClippedMean,
    EmpiricalMean,
    Estimator,
    MedianOfMeans,
    OnlineMean,
    TrimmedMean,
)
from rumormill.estimators.trimmed import OnlineTrimmed

Level = Callable[[int], float]
LEVELS: dict[str, Level] = {
    "2 ln t": lambda t: 2 * math.log(t),
    "3 ln t + ln 50": lambda t: 3 * math.log(t) + math.log(50),
}
SPECS: list[Estimator] = [
    TrimmedMean(),
    TrimmedMean(variant="literal"),
    MedianOfMeans(),
    Catoni(),
    EmpiricalMean(),
]


def assert_close(spec: Estimator, got: float, samples: list[float], L: float, moments: Moments) -> None:
    """Equal to 1e-12 of the value, or of the terms that add up to it where they cancel."""
    want = spec.of(samples, L, moments)
    if want == math.inf:
        assert got == math.inf
        return
    size = abs(want)
    if isinstance(spec, TrimmedMean):
        size = max(size, spec.of([abs(x) for x in samples], L, moments))
    elif isinstance(spec, EmpiricalMean):
        size = max(size, math.fsum(map(abs, samples)) / len(samples))
    elif isinstance(spec, Catoni):
        size = max(size, float(np.median(np.abs(np.array(samples) - want))))
    assert abs(got - want) <= 1e-12 * size, (spec, len(samples), L, got, want)


def checkpoints(length: int) -> set[int]:
    return {*range(1, 40), *np.geomspace(40, length, 40).astype(int).tolist()}


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_one_sample_per_round(spec: Estimator, level: Level, stream: tuple[list[float], Moments]) -> None:
    samples, moments = stream
    if isinstance(spec, Catoni):
        samples = samples[:2_500]  # a question costs O(n)
    online = spec.online(moments, last_L=level(len(samples)))
    check_at = checkpoints(len(samples))
    for t, x in enumerate(samples, 1):
        online.update(x)
        got = online.mean(level(t))
        if t in check_at:
            assert online.count == t
            assert_close(spec, got, samples[:t], level(t), moments)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_rounds_with_many_or_no_samples(spec: Estimator, stream: tuple[list[float], Moments]) -> None:
    """Samples of several agents arrive in bursts; some rounds bring none, some are not asked."""
    samples, moments = stream
    rng = np.random.default_rng(5)
    online = spec.online(moments)
    level = LEVELS["3 ln t + ln 50"]
    seen = 0
    for t in range(1, 250):
        burst = int(rng.choice([0, 0, 1, 7, 30]))
        for x in samples[seen : seen + burst]:
            online.update(x)
        seen += burst
        if rng.random() < 0.7:
            assert_close(spec, online.mean(level(t)), samples[:seen], level(t), moments)
    assert online.count == seen > 1_000


@pytest.mark.parametrize("spec", [MedianOfMeans(), Catoni(), EmpiricalMean()], ids=repr)
def test_merged_streams(spec: Estimator, stream: tuple[list[float], Moments]) -> None:
    """Several sources, each asked before the merge; the merged one goes on."""
    samples, moments = stream
    cuts = [0, 900, 900, 901, 1_700, 2_400]
    merged = spec.online(moments)
    for source, (start, stop) in enumerate(pairwise(cuts)):
        part = spec.online(moments)
        for x in samples[start:stop]:
            part.update(x)
        part.mean(4.0)
        merged.merge(part)
        assert merged.count == stop
        assert_close(spec, merged.mean(5.0 + source), samples[:stop], 5.0 + source, moments)
        assert part.count == stop - start  # the source is left as it was
        assert_close(spec, part.mean(4.0), samples[start:stop], 4.0, moments)
    for x in samples[2_400:2_500]:
        merged.update(x)
    assert_close(spec, merged.mean(12.0), samples[:2_500], 12.0, moments)


@pytest.mark.parametrize("spec", [MedianOfMeans(), Catoni(), EmpiricalMean()], ids=repr)
def test_a_stream_merged_into_itself(spec: Estimator) -> None:
    moments = Moments(eps=1.0, u=5.0, rho=3.0)
    samples = AlphaStable(alpha=1.9, loc=1.0).sample(np.random.default_rng(1), 100).tolist()
    online = spec.online(moments)
    for x in samples:
        online.update(x)
    online.merge(online)
    assert online.count == 200
    assert_close(spec, online.mean(3.0), samples + samples, 3.0, moments)


def test_trimmed_streams_of_several_sources_are_interleaved(stream: tuple[list[float], Moments]) -> None:
    """What to do instead of merging: one stream, ranked in order of arrival."""
    samples, moments = stream
    sources = [samples[i * 600 : (i + 1) * 600] for i in range(4)]
    order = [x for arrivals in zip(*sources, strict=True) for x in arrivals]
    online = TrimmedMean().online(moments, last_L=2 * math.log(600))
    for t in range(1, 601):
        for source in sources:
            online.update(source[t - 1])
        got = online.mean(2 * math.log(t))
        if t % 20 == 0 or t < 10:
            assert_close(TrimmedMean(), got, order[: 4 * t], 2 * math.log(t), moments)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_state_goes_through_json_and_continues_bit_for_bit(
    spec: Estimator, stream: tuple[list[float], Moments]
) -> None:
    samples, moments = stream
    first = spec.online(moments, last_L=20.0)
    for t, x in enumerate(samples[:700], 1):
        first.update(x)
        if t % 3 == 0:
            first.mean(math.log(t))
    second = type(first).from_state(json.loads(json.dumps(first.state(), allow_nan=False)))
    assert second.state() == first.state()
    for t, x in enumerate(samples[700:1000], 701):
        first.update(x)
        second.update(x)
        assert second.mean(2 * math.log(t)) == first.mean(2 * math.log(t))
    assert second.count == first.count == 1000
    assert second.state() == first.state()


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_state_of_a_fresh_stream(spec: Estimator) -> None:
    moments = Moments(eps=0.5, u=1.0, rho=1.0)
    fresh = spec.online(moments)
    again = type(fresh).from_state(json.loads(json.dumps(fresh.state(), allow_nan=False)))
    for stream in (fresh, again):
        stream.update(0.0)
        stream.update(np.float64(0.25))
    assert again.state() == fresh.state()
    json.dumps(again.state(), allow_nan=False)
    assert again.mean(0.0) == fresh.mean(0.0)


def feed(online: OnlineMean, samples: list[float], level: Level) -> list[int]:
    sizes = []
    for t, x in enumerate(samples, 1):
        online.update(x)
        online.mean(level(t))
        sizes.append(online.stored)  # type: ignore[attr-defined]
    return sizes


def test_trimmed_stores_few_samples() -> None:
    """Samples that can never leave are not kept: a handful of 50,000, rather than all."""
    law = AlphaStable(alpha=1.9, loc=0.5)
    moments = Moments(eps=0.8, u=law.moment(1.8), rho=law.moment(1.8, central=True))
    samples = law.sample(np.random.default_rng(2), 50_000).tolist()
    level = LEVELS["2 ln t"]
    sizes = feed(TrimmedMean().online(moments, last_L=level(50_000)), samples, level)
    # A sample is ever stored iff L_t <= u i / |x|^p < last_L. By Markov P(h_i < last_L) <= last_L / i, so the
    # mean storage is at most last_L (1 + ln n) = 256; a Poisson-like count is far below twice that.
    assert max(sizes) <= 2 * 256
    assert sizes[-1] == 0  # at last_L nothing can leave any more


def test_storage_shrinks_with_the_horizon() -> None:
    law = AlphaStable(alpha=1.5, loc=0.5)
    moments = Moments(eps=0.4, u=law.moment(1.4), rho=law.moment(1.4, central=True))
    samples = law.sample(np.random.default_rng(3), 3_000).tolist()
    level = LEVELS["2 ln t"]
    horizons = [3_000, 10**6, 10**12, None]
    sizes = [
        feed(TrimmedMean().online(moments, last_L=level(T) if T else math.inf), samples, level)
        for T in horizons
    ]
    for shorter, longer in pairwise(sizes):
        assert all(a <= b for a, b in zip(shorter, longer, strict=True))
    assert sum(sizes[0]) < sum(sizes[-1])


def test_last_L_changes_no_bit_of_the_mean() -> None:
    law = AlphaStable(alpha=1.3, loc=0.5)
    moments = Moments(eps=0.2, u=law.moment(1.2), rho=law.moment(1.2, central=True))
    streams = [TrimmedMean().online(moments, last_L=last) for last in (2 * math.log(2_000), 100.0, math.inf)]
    for t, x in enumerate(law.sample(np.random.default_rng(4), 2_000).tolist(), 1):
        for online in streams:
            online.update(x)
        assert len({online.mean(2 * math.log(t)) for online in streams}) == 1


def test_a_stream_that_nobody_asks_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnlineTrimmed, "_PATIENCE", 100)
    law = AlphaStable(alpha=1.9, loc=0.5)
    moments = Moments(eps=0.8, u=law.moment(1.8), rho=law.moment(1.8, central=True))
    samples = law.sample(np.random.default_rng(6), 20_000).tolist()
    online = TrimmedMean().online(moments, last_L=10.0)
    largest = 0
    for x in samples:
        online.update(x)
        largest = max(largest, online.stored)
    # Uncertain samples number at most 10 (1 + ln n) = 110 in the mean; twice that, doubled once, plus 100.
    assert largest <= 2 * 2 * 110 + 100
    restored = OnlineTrimmed.from_state(json.loads(json.dumps(online.state(), allow_nan=False)))
    for L in (1.0, 4.0, 10.0):
        got = online.mean(L)
        assert_close(TrimmedMean(), got, samples, L, moments)
        assert restored.mean(L) == got


def test_the_order_of_the_additions_is_kept() -> None:
    """Bit for bit: leave first (smallest h, then rank), then enter in order of arrival, in plain floats."""
    law = AlphaStable(alpha=1.5, loc=0.3)
    u, p = law.moment(1.4), 1.4
    moments = Moments(eps=0.4, u=u, rho=u)
    samples = law.sample(np.random.default_rng(7), 3_000).tolist()
    online = TrimmedMean().online(moments, last_L=2 * math.log(1_000))
    total, inside = 0.0, []  # type: ignore[var-annotated]
    for t in range(1, 1_001):
        L = 2 * math.log(t)
        batch = range(3 * t - 2, 3 * t + 1)
        for i in batch:
            online.update(samples[i - 1])
        leaving = sorted(entry for entry in inside if entry[0] < L)
        inside = [entry for entry in inside if entry[0] >= L]
        for _, i in leaving:
            total -= samples[i - 1]
        for i in batch:
            h = u * i / math.pow(abs(samples[i - 1]), p)
            if h >= L:
                total += samples[i - 1]
                inside.append((h, i))
        assert online.mean(L) == total / (3 * t)


def test_clipped_samples_are_counted_so_that_ties_are_ties() -> None:
    """Samples of one sign pattern, all of them clipped, in any order and size: the same mean to the bit."""
    rng = np.random.default_rng(5)
    law = Moments(eps=0.7, u=0.1, rho=0.1)
    for n in (3, 7, 20, 90):
        signs = rng.permuted(np.where(np.arange(n) < n * 2 // 3, 1.0, -1.0))
        means = set()
        for _ in range(20):
            stream = ClippedMean().online(law)
            for x in rng.permuted(signs) * rng.uniform(1e3, 1e9, n):
                stream.update(float(x))
            means.add(stream.mean(3.7))
        assert len(means) == 1


def test_nothing_is_clipped_at_level_zero() -> None:
    stream = ClippedMean().online(Moments(eps=1.0, u=1.0, rho=1.0))
    for x in (1e9, -3.0, 5e8):
        stream.update(x)
    assert stream.mean(0.0) == pytest.approx(math.fsum((1e9, -3.0, 5e8)) / 3)
