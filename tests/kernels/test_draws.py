"""A compiled draw has the bits of one on whole arrays: a seed means the same without a compiler."""

from __future__ import annotations

import numpy as np
import pytest

from rumormill.arms.stable import plain_shaping
from rumormill.kernels.counter_rng import shape_stable


@pytest.mark.parametrize("alpha", [0.02, 0.4, 1.0, 1.1, 1.5, 1.9, 1.999])
def test_the_same_bits_in_a_loop_and_on_whole_arrays(alpha: float) -> None:
    rng = np.random.default_rng(3)
    u = np.append(rng.random(20_000), [0.0, 0.5 - 2.0**-53, 0.5, 1 - 2.0**-53])  # ends and middle
    wait = rng.standard_exponential(len(u))
    plain, compiled = (u.copy(), wait.copy()), (u.copy(), wait.copy())
    plain_shaping(*plain, alpha)
    shape_stable(*compiled, alpha)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one.view(np.uint64), other.view(np.uint64))
