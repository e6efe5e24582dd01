"""Draws with compiled sines have the bits of those without: a seed means the same in both engines."""

import numpy as np
import pytest

from rumormill.arms import AlphaStable
from rumormill.arms.stable import PIECE, plain_sines, take_sines
from rumormill.kernels.draws import fill_sines


@pytest.mark.parametrize("alpha", [0.4, 1.0, 1.1, 1.5, 1.9, 1.999])
def test_the_same_draws(alpha: float) -> None:
    drawn = []
    for sines in (plain_sines, fill_sines):
        take_sines(sines)
        drawn.append(AlphaStable(alpha=alpha).sample(np.random.default_rng(3), PIECE + 1001))
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_the_same_sines() -> None:
    x = np.append(np.linspace(-1.0, 1.0, 200_001), [0.0, -0.0, 5e-324])
    plain, compiled, room = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    plain_sines(x, room, plain)
    fill_sines(x, room, compiled)
    np.testing.assert_array_equal(plain.view(np.uint64), compiled.view(np.uint64))
