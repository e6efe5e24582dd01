"""KMP-UCB: for each learner and arm, the best informed row in reach.

Most samples win; a learner's own on ties, then the smallest origin. Every agent is a learner here.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.jit import inlined
from rumormill.kernels.state import Hearing, Rules, State


@inlined
def publish_rows(t: int, rules: Rules, state: State) -> None:
    """Note what every agent knows in round t, and per arm who knows most."""
    slots = state.ring_arm.shape[0]
    slot = t % slots
    for arm in range(rules.n_arms):
        n, mean = state.n[arm], state.mean[arm]
        for j in range(n.shape[0]):
            state.row_n[slot, j, arm] = n[j]
            state.row_mean[slot, j, arm] = mean[j]
        if state.top.shape[2] == 0:
            continue
        top = state.top[slot, arm]
        if state.changed[arm] or t == rules.n_arms + 1:
            _rank_best(n, top)
        else:
            top[:] = state.top[(t - 1) % slots, arm]


@inlined
def _rank_best(n: np.ndarray, top: np.ndarray) -> None:  # type: ignore[type-arg]
    """The agents with most samples, most first, equal ones by id (insertion into a short list)."""
    filled = 0
    for j in range(n.shape[0]):
        if filled == top.shape[0] and n[j] <= n[top[filled - 1]]:
            continue
        i = filled if filled < top.shape[0] else filled - 1
        while i > 0 and n[top[i - 1]] < n[j]:
            top[i] = top[i - 1]
            i -= 1
        top[i] = j
        filled = min(filled + 1, top.shape[0])


@inlined
def best_informed(t: int, hearing: Hearing, rules: Rules, state: State) -> None:
    """Fill best_mean and best_n for the decision of round t."""
    state.best_mean[:] = state.mean
    state.best_n[:] = state.n
    state.best_from[:] = -1
    sparse = False
    for hop in range(1, hearing.gamma + 1):
        if t - hop <= rules.n_arms:
            break
        if hearing.dense[hop - 1] >= 0:
            _from_dense_hop(t, hop, hearing, rules, state)
        else:
            sparse = True
    if sparse:
        for j in range(state.n.shape[1]):
            for i in range(hearing.source_ptr[j], hearing.source_ptr[j + 1]):
                hop = hearing.source_hop[i]
                if t - hop <= rules.n_arms:
                    break
                if hearing.dense[hop - 1] < 0:
                    _consider_all_arms(t, hop, hearing.sources[i], j, rules, state)


@inlined
def _from_dense_hop(t: int, hop: int, hearing: Hearing, rules: Rules, state: State) -> None:
    """The best row of a hop is the first heard origin in order of n: a scan of a few, not of all."""
    slot = (t - hop) % state.ring_arm.shape[0]
    mask = hearing.masks[hearing.dense[hop - 1]]
    ranked = state.top.shape[2]
    for arm in range(rules.n_arms):
        best_n, best_from, top = state.best_n[arm], state.best_from[arm], state.top[slot, arm]
        for j in range(state.n.shape[1]):
            i = 0
            while i < ranked:
                origin = top[i]
                n = state.row_n[slot, origin, arm]
                if n < best_n[j]:
                    break
                if mask[origin, j] != 0.0:
                    if n > best_n[j] or origin < best_from[j]:
                        best_n[j] = n
                        best_from[j] = origin
                        state.best_mean[arm, j] = state.row_mean[slot, origin, arm]
                    break
                i += 1
            if i == ranked:  # none of the best is heard: look at all
                for i in range(hearing.source_ptr[j], hearing.source_ptr[j + 1]):
                    if hearing.source_hop[i] == hop:
                        _consider(slot, hearing.sources[i], arm, j, state)


@inlined
def _consider_all_arms(t: int, hop: int, origin: int, j: int, rules: Rules, state: State) -> None:
    slot = (t - hop) % state.ring_arm.shape[0]
    for arm in range(rules.n_arms):
        _consider(slot, origin, arm, j, state)


@inlined
def _consider(slot: int, origin: int, arm: int, j: int, state: State) -> None:
    n = state.row_n[slot, origin, arm]
    if n > state.best_n[arm, j] or (n == state.best_n[arm, j] and origin < state.best_from[arm, j]):
        state.best_n[arm, j] = n
        state.best_from[arm, j] = origin
        state.best_mean[arm, j] = state.row_mean[slot, origin, arm]
