"""What running consensus needs to know of a network: its weights and how slowly each agent learns.

ε_v by its definition takes all eigenvectors of P. Of more agents than some thousands that is too much, and an
upper bound is estimated:

- b_d sums to 0 for p ≠ j, so that w+ = |w-| <= 1/2 (Cauchy–Schwarz), and to 1 for p = j. With x_p = |u_p(v)|
  and r_pj = |l_p l_j| / (1 - |l_p l_j|), and since x_p x_j <= (x_p² + x_j²) / 2,

      ε_v <= M (sum over p of h(l_p) x_p²)      h(l) = r(l, l)/2 + R(l)/2 + |l|/(1 - |l|)/4,  h(1) = R(1)/4,

  R(l) the sum of r(l, l_j) over j = 2..M. This does not depend on which eigenvectors are taken.
- Its mean over all agents is the sum of h over the spectrum, which Lanczos quadrature finds.
- It is shared out by degree, as if x_p² sat where l² is (P²)_vv, its mean.

Where P has a gap, the mean is found to some per cent. A long ring has none: 64 steps do not see its slowest
waves, and the estimate falls short of the bound by a logarithm of M. The bound is 1.4 (ring) to 6 (BA) times
ε_v, where communities are strong up to 60. All of them grow like M² and faster: that is ε_v itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.graphs.network import Network
from rumormill.validate import LEAST_KAPPA, between

Floats = NDArray[np.float64]

# Eigenvectors of more agents take minutes and gigabytes.
EXACT_AGENTS = 5_000
# Lanczos: steps from each of some random beginnings. Their seed is fixed: same network, same estimate.
STEPS, BEGINNINGS, SEED = 64, 4, 1
MORE_STEPS = (64, 128, 256, 512)
# Eigenvalues nearer to 1 are not distinguished from it.
LARGEST = 1 - 1e-12


def consensus_weights(network: Network, kappa: float | None = None) -> tuple[float, float]:
    """kappa and the weight kappa / d_max of every link in P = I - kappa / d_max * Laplacian.

    The default kappa = d_max / (d_max + 1) keeps every eigenvalue of P above -1; kappa = 1 does not on
    regular bipartite graphs.
    """
    largest = int(network.degrees.max())
    kappa = largest / (largest + 1) if kappa is None else between("kappa", kappa, LEAST_KAPPA, 1)
    return float(kappa), float(kappa) / largest if largest else 0.0


def consensus_matrix(network: Network, kappa: float | None = None) -> Floats:
    """P = I - kappa / d_max * Laplacian, in full."""
    _, weight = consensus_weights(network, kappa)
    step: Floats = weight * network.power(1).dense(np.float64)
    step[np.diag_indices(network.n_agents)] = 1 - step.sum(axis=1)
    return step


def consensus_epsilon(network: Network, kappa: float | None = None) -> Floats:
    """epsilon_v of each agent v: how far its shared counts may stray from the average of all.

    With eigenvalues l_1 = 1 > l_2 >= ... >= l_M of P, orthonormal eigenvectors u and b_d = u_p(d) u_j(d):
    epsilon_v = M * sum over p = 1..M, j = 2..M of |l_p l_j| / (1 - |l_p l_j|) * a_pj(v), where, with w+ and
    w- the sums of the positive and of the negative b_d, a_pj(v) is w+ b_v or w- b_v, by the sign of b_v,
    if l_p l_j >= 0, and max(w+, |w-|) |b_v| otherwise. Repeated eigenvalues leave the eigenvectors open:
    those that numpy returns are taken. Beyond 5,000 agents it is estimated_epsilon.
    """
    if not network.connected:
        raise InputError(
            f"consensus needs a connected network, this one has {len(network.components)} parts: add links "
            "between them or take one part"
        )
    n = network.n_agents
    if n == 1:
        return np.zeros(1)
    if not epsilon_is_exact(network):
        return estimated_epsilon(network, kappa)
    values, vectors = np.linalg.eigh(consensus_matrix(network, kappa))
    if values[0] <= -1 + 1e-12:
        raise _never_settles(kappa)
    return n * _spread(values, vectors)


def epsilon_is_exact(network: Network) -> bool:
    """Whether epsilon_v of so many agents is computed by its definition; else it is estimated."""
    return network.n_agents <= EXACT_AGENTS


def estimated_epsilon(network: Network, kappa: float | None = None) -> Floats:
    """An estimate of an upper bound on epsilon_v, derived at the head of this file; linear in the links."""
    n, (_, weight) = network.n_agents, consensus_weights(network, kappa)
    degrees = network.degrees.astype(np.float64)
    times = consensus_product(network, weight)
    rng = np.random.default_rng(SEED)
    found = [_ritz(times, rng.choice([-1.0, 1.0], n)) for _ in range(BEGINNINGS)]
    if min(float(values.min()) for values, _ in found) <= -LARGEST or _swings(network, weight):
        raise _never_settles(kappa)
    nodes = np.minimum(np.abs(np.concatenate([values for values, _ in found])), LARGEST)
    shares = np.concatenate([share for _, share in found]) * (n - 1) / BEGINNINGS

    def ratios(sizes: Floats) -> Floats:
        """R."""
        product = np.outer(sizes, nodes)
        total: Floats = (product / (1 - product)) @ shares
        return total

    def height(sizes: Floats) -> Floats:
        """h."""
        square = sizes**2
        own: Floats = square / (1 - square) / 2 + sizes / (1 - sizes) / 4
        return own + ratios(sizes) / 2

    total = float(height(nodes) @ shares) + float(ratios(np.ones(1))[0]) / 4
    levels, place = np.unique(degrees, return_inverse=True)
    typical = np.sqrt((1 - weight * levels) ** 2 + weight**2 * levels)
    local = height(np.minimum(typical, LARGEST))[place]
    result: Floats = total * n * local / local.sum()
    return result


def consensus_product(network: Network, weight: float) -> Callable[[Floats], Floats]:
    """x -> P x less its mean: the constant vector, whose eigenvalue is 1, is left out."""
    links, degrees = network.power(1).matrix(np.float64), network.degrees.astype(np.float64)

    def times(x: Floats) -> Floats:
        product: Floats = x - weight * (degrees * x - links @ x)
        product -= product.mean()
        return product

    return times


def _ritz(times: Callable[[Floats], Floats], start: Floats, steps: int = STEPS) -> tuple[Floats, Floats]:
    """Eigenvalues as Lanczos sees them from a beginning, and their shares of it."""
    start = start - start.mean()
    now, before, back = start / np.linalg.norm(start), np.zeros_like(start), 0.0
    diagonal, beside = [], []
    for _ in range(min(steps, len(start) - 1)):
        after = times(now) - back * before
        diagonal.append(float(after @ now))
        after -= diagonal[-1] * now
        back = float(np.linalg.norm(after))
        if back < 1e-10:
            break
        beside.append(back)
        now, before = after / back, now
    beside = beside[: len(diagonal) - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return values, vectors[0] ** 2


def second_size(network: Network) -> float:
    """The largest |eigenvalue| of P beside its 1; 0 for a single agent.

    Of many agents it is what Lanczos finds, with more and more steps until its distance from 1 has settled to
    5 %; where it does not, that is refused.
    """
    if epsilon_is_exact(network):
        sizes = np.sort(np.abs(np.linalg.eigvalsh(consensus_matrix(network))))
        return float(sizes[-2]) if len(sizes) > 1 else 0.0
    times = consensus_product(network, consensus_weights(network)[1])
    start = np.random.default_rng(SEED).standard_normal(network.n_agents)
    before = 2.0
    for steps in MORE_STEPS:
        gap = 1 - float(np.abs(_ritz(times, start, steps)[0]).max())
        if gap >= 0.95 * before:
            return 1 - gap
        before = gap
    raise InputError(
        f"the gap of P on this network of {network.n_agents} agents is too small to be found: what one says "
        "would take thousands of rounds to reach all; take a policy without gossip, or at most "
        f"{EXACT_AGENTS} agents"
    )


def _swings(network: Network, weight: float) -> bool:
    """Whether -1 is an eigenvalue of P: on a regular bipartite network with kappa = 1."""
    from scipy.sparse.csgraph import shortest_path

    degrees = network.degrees
    if weight * degrees.min() < LARGEST:
        return False
    hops = shortest_path(network.power(1).matrix(), unweighted=True, indices=0)
    tails = np.repeat(np.arange(network.n_agents), degrees)
    return bool((hops[tails] % 2 != hops[network.indices] % 2).all())


def _never_settles(kappa: float | None) -> InputError:
    return InputError(
        f"kappa = {kappa!r} is not allowed on this network: consensus never settles (an eigenvalue is -1); "
        "take a smaller kappa"
    )


def _spread(values: Floats, vectors: Floats) -> Floats:
    """The double sum of epsilon_v, as two matrix products.

    The vectors are orthonormal: the b_d sum to 0 for p != j, so that w+ = |w-| = (sum of |b_d|) / 2, and are
    no less than 0 for p = j, where w+ = 1. With A = |u| that leaves, whatever the signs of l_p l_j and b_v,
    a_pj(v) = (A'A)_pj |b_v| / 2 for p != j, and a_pp(v) = b_v.
    """
    product = np.abs(np.outer(values, values))
    product[:, -1] = 0.0  # j leaves out the largest eigenvalue, which eigh puts last
    ratio = product / (1 - product)
    sizes = np.abs(vectors)
    middle: Floats = ratio * (sizes.T @ sizes)
    own: Floats = vectors**2 @ ratio.diagonal()
    total: Floats = (np.einsum("vj,vj->v", sizes @ middle, sizes) + own) / 2
    return total
