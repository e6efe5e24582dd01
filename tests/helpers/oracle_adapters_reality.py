"""The package's side of the comparison with `oracle_reality`: the same rules as a policy of the package."""

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import rumormill as rm
from helpers import oracle_reality as oracle
from helpers.oracle_reality import Rules
from rumormill import catalogue
from rumormill.policies import CliquePlan, LeaderPlan

TIE = 1e-9  # a smaller relative gap between two indices is a matter of rounding

# The oracle's words for what the catalogue names.
ESTIMATOR_NAMES = {
    "clipped": "clipped",
    "self-tuned": "selftuned",
    "median-bound": "median",
    "robust-moss": "moss",
    "huber-sgd": "huber",
    "catoni-bound": "catonibound",
    "mr-ucb": "mr",
}
POLICY_NAMES = {
    "decentralized": "decentralized",
    "centralized": "centralized",
    "kmp": "kmp",
    "robust": "robust",
    "consensus": "consensus",
    "coop-ucb2": "coop2",
    "robust-gossip": "gossip",
    "dducb": "dducb",
}
BEYOND_THE_PAPER = ("quiet", "start", "radius", "sigma")
COMMON = ("c", "zeta", "quiet", "start", "radius", "sigma", "gamma_c", "eta", "accelerated", "own")
OWN_INDEX = ("selftuned", "median", "moss", "huber", *oracle.LAZY)
ESTIMATORS: dict[str, Any] = {
    "clipped": rm.ClippedMean,
    "trimmed": rm.TrimmedMean,
    "empirical": rm.EmpiricalMean,
    "selftuned": rm.SelfTuned,
    "median": rm.MedianBound,
    "moss": rm.RobustMOSS,
    "huber": rm.HuberSGD,
    "catonibound": rm.CatoniBound,
    "mr": rm.MRUCB,
}
MESSAGE_PASSING = ("decentralized", "centralized", "kmp", "robust")
AVERAGING = ("consensus", "coop2", "gossip", "dducb")


def policy_of(r: Rules) -> Any:
    """The package's policy for the oracle's rules."""
    moments = rm.Moments(eps=r.eps, u=r.u, rho=r.rho)
    if r.policy == "consensus":
        radius: Any = r.radius
        return rm.ConsensusUCB(moments=moments, epsilon=r.eps_v, radius=radius, zeta=r.zeta)
    if r.policy == "coop2":
        return rm.CoopUCB2(sigma=r.sigma, gamma_c=r.gamma_c, zeta=r.zeta, moments=moments)
    if r.policy == "gossip":
        return rm.RobustGossip(zeta=r.zeta, moments=moments)
    if r.policy == "dducb":
        options: dict[str, Any] = {
            "sigma": r.sigma,
            "eta": r.eta,
            "accelerated": r.accelerated,
            "own": r.own,
            "zeta": r.zeta,
        }
        return rm.DDUCB(moments=moments, **options)
    common: dict[str, Any] = {
        "estimator": ESTIMATORS[r.estimator](**r.options),
        "confidence": r.schedule,
        "moments": moments,
    }
    if r.estimator not in OWN_INDEX:
        common |= {"zeta": r.zeta} if r.c is None else {"c": r.c}
    if r.policy == "robust":
        return rm.RobustUCB(**common)
    common |= {"gamma": r.gamma, "quiet": r.quiet, "start": r.start}
    if r.policy == "kmp":
        return rm.KMPUCB(**common)
    if r.policy == "centralized":
        return rm.CentralizedMPUCB(leaders=list(r.leaders), **common)
    return rm.DecentralizedMPUCB(clique_filter=r.cover is not None, cover=r.cover, **common)


def knows(name: str, table: dict[str, Any]) -> bool:
    """Whether this sample of a policy is for the rules beyond the paper."""
    if name not in POLICY_NAMES:
        return False
    if name in ("coop-ucb2", "robust-gossip", "dducb"):
        return True
    if name == "consensus" and "zeta" in table:
        return True
    return table.get("estimator") in ESTIMATOR_NAMES or any(key in table for key in BEYOND_THE_PAPER)


def rules_of(policy: Any, network: rm.Network, source: rm.Replay) -> Rules:
    """The oracle's rules for a policy of the package, with the cover or leaders that the policy chose."""
    word = POLICY_NAMES[catalogue.name_of("policy", type(policy))]
    moments = policy.moments or source.moments()
    plan = policy.plan(network)
    given = {name: getattr(policy, name) for name in COMMON if hasattr(policy, name)}
    if word in AVERAGING:
        given["eps_v"] = plan.epsilon.tolist() if word == "consensus" else 0.0
    else:
        names = {**ESTIMATOR_NAMES, "trimmed": "trimmed", "empirical": "empirical"}
        given["estimator"] = names[catalogue.name_of("estimator", type(policy.estimator))]
        given["zeta"] = 1.0 if policy.zeta is None else policy.zeta
        given |= {"gamma": plan.gamma, "schedule": policy.confidence}
        given["cover"] = plan.groups if isinstance(plan, CliquePlan) else None
        given["leaders"] = tuple(plan.leaders.tolist()) if isinstance(plan, LeaderPlan) else ()
    return Rules(word, eps=moments.eps, u=moments.u, rho=moments.rho, **given)


def played(table: NDArray[np.float64], graph: nx.Graph, policy: Rules | rm.Policy, engine: str) -> Any:
    """The package's result under recorded rewards."""
    replay = rm.Replay(table, means=np.arange(table.shape[2]) / 10)
    return rm.simulate(
        replay,
        rm.Network(graph),
        policy_of(policy) if isinstance(policy, Rules) else policy,
        horizon=len(table),
        trials=1,
        rng=0,
        engine=engine,  # type: ignore[arg-type]
        actions=True,
        workers=1,
    )


def ties_against_oracle(table: NDArray[np.float64], graph: nx.Graph, rules: Rules, result: Any) -> int:
    """How many choices differ from the oracle's by a floating-point tie; any other difference fails."""
    actions = result.actions[0]
    wished, gaps, messages = oracle.follow(table, graph, rules, actions)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    assert gaps[worst] < TIE, (
        f"round {worst[0] + 1}, agent {worst[1]}: chose {actions[worst]}, the rules say {wished[worst]} "
        f"(gap {gaps[worst]:.3g}) for {rules} on {sorted(graph.edges)} of {len(graph)}"
    )
    assert result.messages[0, -1] == messages, f"{result.messages[0, -1]} messages, not {messages}: {rules}"
    rows = table.shape[2] if rules.policy in ("kmp", *AVERAGING) else 0
    assert result.wire_bytes[0, -1] == messages * (20 + 16 * rows)
    return int(np.sum(wished != actions))


def clique_cover(graph: nx.Graph, gamma: int) -> list[list[int]]:
    """Some partition into cliques of the power graph: first fit, in order of id."""
    near = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    groups: list[list[int]] = []
    for v in range(len(graph)):
        for group in groups:
            if all(w in near[v] for w in group):
                group.append(v)
                break
        else:
            groups.append([v])
    return groups


def some_leaders(graph: nx.Graph, gamma: int, order: list[int]) -> tuple[int, ...]:
    """Some maximal independent set of the power graph: first fit, in the given order."""
    near = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    chosen: list[int] = []
    for v in order:
        if not any(w in near[v] for w in chosen):
            chosen.append(v)
    return tuple(sorted(chosen))


def some(rng: np.random.Generator, *values: float | None) -> float | None:
    """One of a few values."""
    return values[int(rng.integers(len(values)))]


def random_options(estimator: str, rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of an estimator, at random; often small ones, so that short games get beyond the pilot."""
    if estimator == "selftuned":
        kappa = float(rng.choice([0.5, 1.0, 2.0]))
        return {
            "C": float(rng.uniform(0.1, 3)),
            "kappa": kappa,
            "omega": float(rng.choice([1.0, 4.0, 16.0])),
            "guard": kappa * float(rng.choice([1.0, 1.5, 4.0])),
            "pilot": int(rng.choice([0, 1, 3, 7, 15])),
        }
    if estimator == "median":
        return {"scale": float(10 ** rng.uniform(-2, 2))}
    if estimator == "moss":
        return {"a": float(rng.uniform(1.05, 2)), "zeta": some(rng, None, 0.3, 1.0)}
    if estimator == "huber":
        return {
            "scale": some(rng, None, 1.0, 0.3),
            "lam": float(rng.uniform(0.5, 4)),
            "coeff": float(rng.uniform(0.2, 2)),
        }
    if estimator == "mr":
        return {"c": float(rng.uniform(0.1, 2)), "p": some(rng, None, 1.2, 2.0)}
    return {}


def random_table(rng: np.random.Generator, T: int, M: int, K: int) -> NDArray[np.float64]:
    kind = rng.integers(5)
    means = np.round(rng.random(K), 3)
    if kind == 0:
        return np.asarray(rng.standard_cauchy((T, M, K)) * 0.5 + means)
    if kind == 1:
        return rng.choice([0.0, 1.0, 0.25, 8.0], (T, M, K))
    if kind == 2:
        return np.asarray(rng.standard_t(2.5, (T, M, K)) + means)
    if kind == 3:
        return np.asarray(rng.pareto(1.6, (T, M, K)) * means)
    table = np.where(rng.random((T, M, K)) < 0.4, 0.0, rng.standard_cauchy((T, M, K)))
    return np.asarray(table + means)


def random_game(seed: int, policy: str, estimator: str = "") -> tuple[NDArray[np.float64], nx.Graph, Rules]:
    """A game from a seed."""
    rng = np.random.default_rng([seed, *policy.encode(), *estimator.encode()])
    T, M, K = int(rng.integers(1, 90)), int(rng.integers(1, 9)), int(rng.integers(2, 7))
    graph = nx.gnp_random_graph(M, rng.uniform(0.1, 0.8), seed=int(rng.integers(1 << 30)))
    if policy in AVERAGING:
        graph.add_edges_from(nx.utils.pairwise(range(M)))
    gamma = int(rng.integers(0, 5))
    constant = [{"zeta": float(rng.uniform(0.1, 2))}, {"c": float(rng.uniform(0.05, 3))}, {"c": "theory"}]
    order = rng.permutation(M).tolist()
    return (
        random_table(rng, T, M, K),
        graph,
        Rules(
            policy,
            eps=float(rng.choice([1, 0.8, 0.3])),
            u=float(rng.uniform(0.5, 5)),
            rho=float(rng.uniform(0.5, 5)),
            gamma=gamma,
            estimator=estimator,
            options=random_options(estimator, rng),
            schedule=str(rng.choice(["paper", "anytime"])),
            cover=clique_cover(graph, gamma) if policy == "decentralized" and rng.random() < 0.4 else None,
            leaders=some_leaders(graph, gamma, order) if policy == "centralized" else (),
            quiet=some(rng, None, 0.0, 0.25, 1.0) if policy != "robust" else None,
            start=str(rng.choice(["round-robin", "shared"])) if policy != "robust" else "round-robin",
            radius=str(rng.choice(["printed", "variance", "logarithmic"])),
            eps_v=float(rng.uniform(0, 3)),
            sigma=some(rng, None, 0.5),
            gamma_c=float(rng.uniform(1.01, 2)),
            eta=float(rng.choice([1.01, 2.0])),
            accelerated=bool(rng.random() < 0.7),
            own=bool(rng.random() < 0.6),
            **constant[rng.integers(2 if policy in AVERAGING or estimator == "empirical" else 3)],  # type: ignore[arg-type]
        ),
    )
