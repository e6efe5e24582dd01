"""Which value of a tuned constant is best, by the trials that may choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumormill.experiments.spec.schema import Spec
from rumormill.experiments.spec.tuning import CONSTANT, PRINTED, THEORY, n_choosing

SLACK = 1.25

if TYPE_CHECKING:
    import polars as pl


def best_constants(spec: Spec, frame: pl.DataFrame) -> dict[tuple[Any, ...], float]:
    """By policy and sweep point the best value; policies without a knob have none.

    The mean decides, not the median: a value that loses one trial in ten is a bad one. Too small a constant
    loses a trial now and then, which a few trials that choose may not see, and too large a one costs a little
    in all of them: so the largest value counts whose mean is within SLACK of the least.
    """
    import polars as pl

    assert spec.tune is not None
    choosing, place = n_choosing(spec.tune, spec.size.trials), ["policy", *spec.sweep]
    best = (
        frame.filter(
            (pl.col("trial") < choosing)
            & (pl.col("t") == pl.col("t").max())
            & ~pl.col(CONSTANT).is_in([PRINTED, THEORY])
        )
        .with_columns(pl.col(CONSTANT).cast(pl.Float64))
        .group_by(*place, CONSTANT)
        .agg(pl.col("regret").mean())
        .filter(pl.col("regret") <= SLACK * pl.col("regret").min().over(place))
        .group_by(*place)
        .agg(pl.col(CONSTANT).max())
    )
    return {tuple(where): value for *where, value in best.select(*place, CONSTANT).iter_rows()}
