"""What running consensus needs to know of a network: its weights and how slowly each agent learns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.graphs.network import Network
from rumormill.validate import LEAST_KAPPA, between

# Eigenvectors of more agents take minutes and gigabytes.
MOST_AGENTS = 5_000


def consensus_weights(network: Network, kappa: float | None = None) -> tuple[float, float]:
    """kappa and the weight kappa / d_max of every link in P = I - kappa / d_max * Laplacian.

    The default kappa = d_max / (d_max + 1) keeps every eigenvalue of P above -1; kappa = 1 does not on
    regular bipartite graphs.
    """
    largest = int(network.degrees.max())
    kappa = largest / (largest + 1) if kappa is None else between("kappa", kappa, LEAST_KAPPA, 1)
    return float(kappa), float(kappa) / largest if largest else 0.0


def consensus_matrix(network: Network, kappa: float | None = None) -> NDArray[np.float64]:
    """P = I - kappa / d_max * Laplacian, in full."""
    _, weight = consensus_weights(network, kappa)
    step: NDArray[np.float64] = weight * network.power(1).dense(np.float64)
    step[np.diag_indices(network.n_agents)] = 1 - step.sum(axis=1)
    return step


def consensus_epsilon(network: Network, kappa: float | None = None) -> NDArray[np.float64]:
    """epsilon_v of each agent v: how far its shared counts may stray from the average of all.

    With eigenvalues l_1 = 1 > l_2 >= ... >= l_M of P, orthonormal eigenvectors u and b_d = u_p(d) u_j(d):
    epsilon_v = M * sum over p = 1..M, j = 2..M of |l_p l_j| / (1 - |l_p l_j|) * a_pj(v), where, with w+ and
    w- the sums of the positive and of the negative b_d, a_pj(v) is w+ b_v or w- b_v, by the sign of b_v,
    if l_p l_j >= 0, and max(w+, |w-|) |b_v| otherwise. Repeated eigenvalues leave the eigenvectors open:
    those that numpy returns are taken.
    """
    if not network.connected:
        raise InputError(
            f"consensus needs a connected network, this one has {len(network.components)} parts: add links "
            "between them or take one part"
        )
    n = network.n_agents
    if n > MOST_AGENTS:
        raise InputError(
            f"epsilon of {n} agents needs all eigenvectors; at most {MOST_AGENTS} are allowed: give epsilon="
        )
    if n == 1:
        return np.zeros(1)
    values, vectors = np.linalg.eigh(consensus_matrix(network, kappa))
    if values[0] <= -1 + 1e-12:
        raise InputError(
            f"kappa = {kappa!r} is not allowed on this network: consensus never settles (an eigenvalue is "
            "-1); take a smaller kappa"
        )
    return n * _spread(values, vectors)


def _spread(values: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The double sum of epsilon_v, as matrix products over the positive and negative parts of the vectors."""
    product = np.outer(values, values)
    product[:, -1] = 0.0  # j leaves out the largest eigenvalue, which eigh puts last
    ratio = np.abs(product) / (1 - np.abs(product))
    plus, minus = np.maximum(vectors, 0), np.maximum(-vectors, 0)
    # b_d > 0 where both entries have one sign, b_d < 0 where they differ.
    positive = plus.T @ plus + minus.T @ minus
    negative = plus.T @ minus + minus.T @ plus
    same_sign = product >= 0
    for_positive = np.where(same_sign, ratio * positive, 0)
    for_negative = np.where(same_sign, ratio * negative, 0)
    for_any = np.where(same_sign, 0, ratio * np.maximum(positive, negative))
    total: NDArray[np.float64] = (
        _quadratic(plus, for_positive, plus)
        + _quadratic(minus, for_positive, minus)
        + _quadratic(plus, for_negative, minus)
        + _quadratic(minus, for_negative, plus)
        + _quadratic(plus + minus, for_any, plus + minus)
    )
    return total


def _quadratic(
    left: NDArray[np.float64], middle: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For each row v: sum over p and j of left[v, p] middle[p, j] right[v, j]."""
    total: NDArray[np.float64] = ((left @ middle) * right).sum(axis=1)
    return total
