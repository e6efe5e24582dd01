"""Every mistake in an experiment file is found before anything runs, and named by its key."""

import time
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import OPEN, TINY
from rumormill.errors import InputError
from rumormill.experiments.spec.reading import at_scale, encode, parse_spec, read_spec

NETWORK = 'kind = "erdos_renyi"\nn = 6\np = 0.7'
SCALED = TINY.replace("horizon = 50\ntrials = 2\n", "")
CLAIM = TINY + '[[claims]]\nkind = "beats"\npolicy = "Decentralized"\nthan = "Robust"\n'
KINDS = "erdos_renyi, barabasi_albert, watts_strogatz, random_regular, ring, path, star, complete, grid"

# What is replaced, by what, and the message.
REPLACED = [
    ("seed = 7", "sede = 7", "sede: unknown key: did you mean 'seed'? Allowed are name, title,"),
    ("seed = 7", "seed = -1", "seed = -1 is not allowed: expected int >= 0"),
    ("seed = 7", 'seed = "x"', "seed = 'x' is not allowed: expected int, got str"),
    ("seed = 7", "seed = 7.5", "seed = 7.5 is not allowed: expected int, got float"),
    ("seed = 7\n", "", "seed: missing"),
    ('name = "tiny"\n', "", "name: missing"),
    (
        '"tiny"',
        '"Tiny Run"',
        "name = 'Tiny Run' is not allowed: expected small letters, digits and . _ - only",
    ),
    ('"tiny"', "3", "name = 3 is not allowed: expected str, got int"),
    (
        "horizon = 50",
        "horizn = 50",
        "horizn: unknown key: did you mean 'horizon'? a run needs horizon and trials",
    ),
    ("horizon = 50", "", "horizon: missing; a run needs horizon and trials"),
    ("horizon = 50", "horizon = 0", "horizon = 0 is not allowed: a whole number >= 1"),
    ("trials = 2", "trials = true", "trials = True is not allowed: a whole number >= 1"),
    ("trials = 2\n", "", "trials: missing; a run needs horizon and trials"),
    (
        '"erdos_renyi"',
        '"erdos_reny"',
        f"network.kind = 'erdos_reny' is not allowed: did you mean 'erdos_renyi'? Allowed are {KINDS}",
    ),
    ('kind = "erdos_renyi"\n', "", f"network.kind: missing; one of {KINDS}"),
    (
        "[network]",
        "[networks]",
        "networks: give a table for each, as [networks.NAME]; for one network alone, [network]",
    ),
    ("p = 0.7", "p = 1.7", "network.p = 1.7 is not allowed: a number from 0 to 1"),
    ("p = 0.7", "q = 0.7", "network.q: unknown key: allowed are fresh, n, p, connected"),
    ("p = 0.7\n", "", "network.p: missing"),
    ("n = 6", 'n = "six"', "network.n = 'six' is not allowed: expected int, got str"),
    (
        NETWORK,
        'kind = "barabasi_albert"\nn = 6\nm = 6',
        "network.m = 6 is not allowed for n = 6: it must be below n",
    ),
    (
        NETWORK,
        'kind = "watts_strogatz"\nn = 6\nk = 3\np = 0.1',
        "network.k = 3 is not allowed for n = 6: it must be even and below n",
    ),
    (
        NETWORK,
        'kind = "random_regular"\nn = 5\nd = 3',
        "network.d = 3 is not allowed for n = 5: it must be below n, and n times d even",
    ),
    (
        '"alpha-stable"',
        '"alphastable"',
        "arms.law = 'alphastable' is not allowed: did you mean 'alpha-stable'?",
    ),
    ("alpha = 1.9", "alpha = 2.5", "arms.alpha = 2.5 is not allowed: a number above 0, at most 2"),
    (
        "alpha = 1.9",
        "alpha = 1.0",
        "arms: arm 0 cannot be part of a bandit: an alpha-stable law with alpha = 1.0 has no mean",
    ),
    (
        "alpha = 1.9",
        "alpha = 1.9\nloc = 3",
        "arms.loc: unknown key: allowed are K, means, gap, each, eps, objective, clusters, changes, season",
    ),
    ("K = 3", "means = [0.1, nan]", "arms.means[1] = nan is not allowed: a finite number"),
    ("K = 3", "means = [-inf, 0.5]", "arms.means[0] = -inf is not allowed: a finite number"),
    ("K = 3", "means = [0.1, 1e200]", "arms.means[1] = 1e+200 is not allowed: a number from -1e+100 to"),
    ("alpha = 1.9", "alpha = nan", "arms.alpha = nan is not allowed: a finite number"),
    ("gamma = 1", "zeta = inf", "policies[0].zeta = inf is not allowed: a finite number"),
    (
        "seed = 7",
        "seed = 9223372036854775808",
        "seed = 9223372036854775808 is not allowed: whole numbers are",
    ),
    ("seed = 7", "seed = 2021-09-01", "seed = 2021-09-01 is not allowed: numbers, words, true/false, lists"),
    ("seed = 7", 'seed = 7\nfolder = "/"', "folder: unknown key; own classes are looked for beside the file"),
    ("[network]", "[[network]]", "network = [{"),
    (
        NETWORK,
        'kind = "ring"\nn = 6\nfresh = true',
        "network.fresh = True is not allowed: a ring is the same in every trial",
    ),
    (NETWORK, 'kind = "ring"\nn = 6\nfresh = 1', "network.fresh = 1 is not allowed: expected bool, got int"),
    ("alpha = 1.9\n", "", "arms.alpha: missing"),
    ("K = 3", "K = 1", "arms.K = 1 is not allowed: expected int >= 2"),
    ("K = 3", "gap = 1.5", "arms.gap = 1.5 is not allowed: expected float <= 1.0"),
    ("K = 3", "gap = 0.1\nmeans = [0.1, 0.2]", "arms.gap = 0.1 is not allowed beside arms.means"),
    ("K = 3", "K = 3\nmeans = [0.1, 0.2]", "arms.K = 3 is not allowed: arms.means has 2 values"),
    ("K = 3", "means = [0.2, 0.2]", "arms: all 2 arms have the same mean 0.2"),
    ("K = 3", 'means = "unifrom"', "arms.means = 'unifrom' is not allowed: did you mean 'uniform'?"),
    ("K = 3", "K = 3\neps = 0.95", "arms: eps = 0.95 is too large: moments are finite only below order 1.9"),
    ('"decentralized"', '"decentralised"', "policies[0].type = 'decentralised' is not allowed: did you mean"),
    ("gamma = 1", "gamma = -1", "policies[0].gamma = -1 is not allowed: a whole number >= 0, or"),
    (
        "gamma = 1",
        'gamma = "half"',
        "policies[0].gamma = 'half' is not allowed: allowed are half-diameter, a number",
    ),
    ("gamma = 1", "gama = 1", "policies[0].gama: unknown key: did you mean 'gamma'? Allowed are label,"),
    (
        "gamma = 1",
        'estimator = "trimed"',
        "policies[0].estimator = 'trimed' is not allowed: did you mean 'trimmed'",
    ),
    ("gamma = 1", "c = 4\nzeta = 1", "policies[0].c = 4.0 with zeta = 1.0 is not allowed: give exactly one"),
    (
        "gamma = 1",
        'c = "theoretical"',
        "policies[0].c = 'theoretical' is not allowed: did you mean 'theory'?",
    ),
    (
        "gamma = 1",
        'confidence = "always"',
        "policies[0].confidence = 'always' is not allowed: allowed are paper",
    ),
    (
        "gamma = 1",
        "clique_filter = 1",
        "policies[0].clique_filter = 1 is not allowed: expected bool, got int",
    ),
    (
        '"robust"',
        '"robust"\ngamma = 1',
        "policies[1].gamma: unknown key: allowed are label, estimator, c, zeta",
    ),
    (
        '"robust"',
        '"decentralized"',
        "policies: 2 of them are called 'Decentralized'; give each a label of its own",
    ),
]

WHOLE = [
    (TINY.split("[[policies]]")[0], "policies: missing"),
    (
        TINY + "[sweep]\ngama = [1]\n",
        "sweep.gama: unknown parameter: did you mean 'gamma'? Allowed are estimator, c,",
    ),
    (TINY + "[sweep]\ngamma = []\n", "sweep.gamma = [] is not allowed: expected array of length >= 1"),
    (TINY + "[sweep]\ngamma = 1\n", "sweep.gamma = 1 is not allowed: expected array, got int"),
    (OPEN + '[sweep]\ngamma = [0, "x"]\n', "sweep.gamma[1]: policies[0].gamma = 'x' is not allowed"),
    (
        TINY + "[sweep]\ngamma = [0, 2]\n",
        "sweep.gamma: policies[0] (Decentralized) sets gamma = 1 itself, which the sweep would replace",
    ),
    (
        TINY.replace('"robust"', '"robust"\nzeta = 1') + "[sweep]\nzeta = [0.5, 1]\n",
        "sweep.zeta: policies[1] (Robust) sets zeta = 1 itself, which the sweep would replace: leave one of",
    ),
    (
        TINY.replace('"robust"', '"robust"\nc = "theory"') + '[sweep]\n"policies.c" = [4, 5]\n',
        "sweep.policies.c: policies[1] (Robust) sets c = 'theory' itself",
    ),
    (TINY + "[sweep]\nt = [1]\n", "sweep.t is not allowed: the table has a column of that name"),
    (
        TINY + '[sweep]\n"network.p" = 1\n',
        "sweep.network.p = 1 is not allowed: expected array, got int",
    ),
    (TINY + "[sweep]\ngamma = [1, 1]\n", "sweep.gamma = [1, 1] is not allowed: a value stands there twice"),
    (TINY + "[sweep]\ngamma = [[1]]\n", "sweep.gamma = [[1]] is not allowed: numbers, words or true/false"),
    (
        TINY + "[sweep]\nalpha = [1.5, 0.9]\n",
        "arms: arm 0 cannot be part of a bandit: an alpha-stable law with alpha = 0.9 has no mean",
    ),
    (
        TINY + '[sweep]\n"network.q" = [0.1]\n',
        "sweep.network.q: unknown parameter: did you mean 'network.p'?",
    ),
    (TINY + "[sweep]\nM = [4, 0]\n", "network.n = 0 is not allowed: a whole number >= 1 (at M = 0)"),
    (
        TINY.replace("gamma = 1", "c = 4") + "[sweep]\nzeta = [1, 2]\n",
        "policies[0].c = 4.0 with zeta = 1.0 is not allowed: give exactly one of",
    ),
    (
        TINY + "[scale.quick]\nhorizon = 10\ntrials = 2\n",
        "horizon: give it at the top or in [scale.quick] / [scale.full], not both",
    ),
    (SCALED, "scale: missing; give horizon and trials, or [scale.quick] and [scale.full]"),
    (
        SCALED + '[scale."Quick run"]\nhorizon = 10\ntrials = 2\n',
        "scale.Quick run is not allowed: expected small letters, digits and _ - only",
    ),
    (SCALED + "[scale]\n", "scale = {} is not allowed: expected object of length >= 1"),
    (SCALED + "[scale.quick]\nhorizon = 10\n", "scale.quick.trials: missing"),
    (
        SCALED + "[scale.quick]\nhorizon = 10\ntrials = 2\ntrial = 3\n",
        "scale.quick.trial: unknown key: did you mean 'trials'? Allowed are horizon, trials, checkpoints, n",
    ),
    (
        SCALED + '[scale.quick]\nhorizon = "x"\ntrials = 2\n',
        "scale.quick.horizon = 'x' is not allowed: expected int, got str",
    ),
    (
        SCALED.replace(NETWORK, 'kind = "grid"\nrows = 2\ncols = 2')
        + "[scale.quick]\nhorizon = 10\ntrials = 2\nn = 5\n",
        "scale.quick.n: a network of this kind has no number of agents to set",
    ),
    (
        CLAIM.replace('"beats"', '"beat"'),
        "claims[0].kind = 'beat' is not allowed: did you mean 'beats'? Allowed are beats, at-least-as-good",
    ),
    (CLAIM.replace('kind = "beats"\n', ""), "claims[0].kind: missing; one of beats, at-least-as-good"),
    (
        CLAIM.replace("than", "then"),
        "claims[0].then: unknown key: did you mean 'than'? Allowed are kind, policy",
    ),
    (
        CLAIM.replace('than = "Robust"', 'than = "robust"'),
        "claims[0].than = 'robust' is not allowed: did you mean 'Robust'? Allowed are Decentralized, Robust",
    ),
    (
        CLAIM.replace('"beats"', '"matters"').replace('than = "Robust"', 'parameter = "gamma"'),
        "claims[0].parameter = 'gamma' is not allowed: the file has no sweep",
    ),
    (
        CLAIM.replace('"beats"', '"worsens"').replace("than =", 'toward = "up"\nparameter ='),
        "claims[0].toward = 'up' is not allowed: allowed are low, high",
    ),
    ("name = ", "not valid TOML: Invalid value (at end of document)"),
]


@pytest.mark.parametrize(("old", "new", "message"), REPLACED)
def test_a_wrong_value_is_refused_with_its_path(old: str, new: str, message: str) -> None:
    assert old in TINY
    with pytest.raises(InputError) as error:
        parse_spec(TINY.replace(old, new, 1), "mine.toml")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "message"), WHOLE)
def test_a_wrong_combination_is_refused_with_its_path(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_spec(text, "mine.toml")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert "\n" not in str(error.value)


def test_the_unchanged_file_is_accepted() -> None:
    assert parse_spec(TINY).labels == ["Decentralized", "Robust"]


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such file; see `rumormill list specs`"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path / "binary.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "n = 6",
            "n = 100000000",
            "network: ErdosRenyi(n=100000000, p=0.7, connected=True) has about 100.0 M",
        ),
        (NETWORK, 'kind = "balanced_tree"\nbranching = 9\nheight = 99', "network: BalancedTree("),
        (
            "horizon = 50",
            "horizon = 100000000000",
            "horizon = 100,000,000,000 is not possible: its tables take",
        ),
        (
            "horizon = 50",
            "horizon = 100000000\ncheckpoints = 100000000",
            "checkpoints = 100,000,000 is not possible: the regret of every agent at each of them takes",
        ),
        (
            "trials = 2",
            "trials = 1000000000000",
            "trials = 1,000,000,000,000 is not possible: at most 10,000,000",
        ),
        (
            NETWORK,
            NETWORK + f"\n[sweep]\nK = {list(range(2, 152))}\nscale = {list(range(1, 201))}\n",
            "sweep: 30,000 points are not possible: at most 10,000 are allowed",
        ),
    ],
)
def test_what_no_machine_can_do_is_refused_at_once(old: str, new: str, message: str) -> None:
    began = time.monotonic()
    with pytest.raises(InputError) as error:
        parse_spec(TINY.replace(old, new, 1), "mine.toml")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert time.monotonic() - began < 5


def test_what_was_not_in_the_file_is_checked_too() -> None:
    spec = parse_spec(TINY)
    with pytest.raises(InputError, match="horizon = 100,000,000,000 is not possible"):
        at_scale(spec, horizon=10**11)
    with pytest.raises(InputError, match="horizon = 0 is not allowed"):
        at_scale(spec, horizon=0)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text(TINY, "utf-8-sig")
    assert encode(read_spec(tmp_path / "marked.toml")) == encode(parse_spec(TINY))
    assert parse_spec("\ufeff" + TINY) == parse_spec(TINY)


@pytest.mark.parametrize("path", [None, 3, ["fig1a.toml"]])
def test_a_path_that_is_none(path: Any) -> None:
    with pytest.raises(InputError, match="is not allowed: the path of a TOML file"):
        read_spec(path)
