"""Priors: when fresh samples contradict them, and the index of both together."""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.kernels.decide import to_power, upper_index
from rumormill.kernels.jit import part, step
from rumormill.kernels.state import Flags, Floats, PriorArrays

needs_probe = part(formulas.needs_probe)
pooled_index = part(formulas.pooled_index)
prior_contradicted = part(formulas.prior_contradicted)
prior_floor = part(formulas.prior_floor)
prior_mean = part(formulas.prior_mean)
prior_reach = part(formulas.prior_reach)


@part
def check_priors(
    own_index: bool,
    L: float,
    scale: float,
    least: float,
    powers: Floats,
    exponent: float,
    needs: Flags,
    mean: Floats,
    n: Floats,
    upper: Floats,
    prior: PriorArrays,
) -> None:
    """Count the samples of the learners that decide, and drop the priors which these contradict."""
    for j in range(n.shape[1]):
        if not needs[j]:
            continue
        prior.taken[j] = 0.0
        for arm in range(n.shape[0]):
            prior.taken[j] += n[arm, j]
            w, count, value = prior.weight[arm, j], n[arm, j], mean[arm, j]
            if w == 0.0 or count == 0.0 or not np.isfinite(value):
                continue
            if own_index:
                fresh, before = upper[arm, j] - value, prior_reach(prior.spread[arm, j], L, w)
            else:
                fresh = (
                    prior.doubt * (scale * to_power(count, powers, exponent)) if count >= least else np.inf
                )
                before = prior.doubt * (scale * to_power(w, powers, exponent)) if w >= least else np.inf
            if prior_contradicted(value, prior.mean[arm, j], fresh, before):
                prior.weight[arm, j] = 0.0


@part
def combine_indices(L: float, mean: Floats, upper: Floats, n: Floats, prior: PriorArrays) -> None:
    """An estimator's own index together with the upper bound of the prior."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            w, cold = prior.weight[arm, j], upper[arm, j]
            index = cold
            if w > 0.0:
                reach = prior_reach(prior.spread[arm, j], L, w)
                together = prior.mean[arm, j] + reach
                if np.isfinite(cold) and np.isfinite(mean[arm, j]):
                    together = pooled_index(mean[arm, j], cold, prior.mean[arm, j], reach)
                index = limited(cold, together, mean[arm, j], n[arm, j], prior.taken[j], prior.probe)
            prior.upper[arm, j] = index


@part
def combine_rows(
    scale: float, least: float, powers: Floats, exponent: float, mean: Floats, n: Floats, prior: PriorArrays
) -> None:
    """The UCB index of the n fresh samples and the w samples that the prior counts as."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            w, value, count = prior.weight[arm, j], mean[arm, j], n[arm, j]
            defined = count > 0.0 and np.isfinite(value)
            index = np.inf
            if defined and count >= least:
                index = upper_index(value, scale, to_power(count, powers, exponent))
            if w > 0.0:
                both, samples = prior.mean[arm, j], w
                if defined:
                    both, samples = prior_mean(value, count, both, w), count + w
                together = np.inf
                if samples >= least:
                    together = upper_index(both, scale, to_power(samples, powers, exponent))
                index = limited(index, together, value, count, prior.taken[j], prior.probe)
            prior.upper[arm, j] = index


@step
def limited(cold: float, together: float, mean: float, n: float, taken: float, probe: float) -> float:
    """What a prior makes of an index: at least half of the radius stays, and unknown arms are probed."""
    if cold == np.inf:
        return np.inf if needs_probe(n, taken, probe) else together
    return max(together, prior_floor(mean, cold)) if np.isfinite(mean) else cold
