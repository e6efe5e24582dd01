"""Every mistake in an experiment file is found before anything runs, and named by its key."""

import pytest
from tiny import TINY

from rumormill.errors import InputError
from rumormill.experiments.spec.reading import parse_spec, read_spec

NETWORK = 'kind = "erdos_renyi"\nn = 6\np = 0.7'
SCALED = TINY.replace("horizon = 50\ntrials = 2\n", "")
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
    ("horizon = 50", "horizn = 50", "horizon: missing; a run needs horizon and trials"),
    ("horizon = 50", "horizon = 0", "horizon = 0 is not allowed: a whole number >= 1"),
    ("horizon = 50", "horizon = 2", "horizon = 2 is not allowed: the first K = 3 rounds try every arm once"),
    ("trials = 2", "trials = true", "trials = True is not allowed: a whole number >= 1"),
    ("trials = 2\n", "", "trials: missing; a run needs horizon and trials"),
    (
        '"erdos_renyi"',
        '"erdos_reny"',
        f"network.kind = 'erdos_reny' is not allowed: did you mean 'erdos_renyi'? Allowed are {KINDS}",
    ),
    ('kind = "erdos_renyi"\n', "", f"network.kind: missing; one of {KINDS}"),
    ("[network]", "[networks]", "networks: unknown key: did you mean 'network'?"),
    ("p = 0.7", "p = 1.7", "network.p = 1.7 is not allowed: expected float <= 1.0"),
    ("p = 0.7", "q = 0.7", "network.q: unknown key: allowed are n, p, connected, fresh"),
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
    ("alpha = 1.9", "alpha = 2.5", "arms.alpha = 2.5 is not allowed: expected float <= 2.0"),
    ("alpha = 1.9", "alpha = 1.0", "arms.alpha = 1.0 is not allowed: expected float > 1.0"),
    ("alpha = 1.9\n", "", "arms.alpha: missing"),
    ("K = 3", "K = 1", "arms.K = 1 is not allowed: expected int >= 2"),
    ("K = 3", "K = 3\nmeans = [0.1, 0.2]", "arms.K = 3 is not allowed: arms.means has 2 values"),
    ("K = 3", "means = [0.2, 0.2]", "arms: all 2 arms have the same mean 0.2"),
    ("K = 3", 'means = "unifrom"', "arms.means = 'unifrom' is not allowed: did you mean 'uniform'?"),
    ("K = 3", "K = 3\neps = 0.95", "arms: eps = 0.95 is too large: moments are finite only below order 1.9"),
    ('"decentralized"', '"decentralised"', "policies[0].type = 'decentralised' is not allowed: did you mean"),
    ("gamma = 1", "gamma = -1", "policies[0].gamma = -1 is not allowed: expected int >= 0"),
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
    ("gamma = 1", "c = 4\nzeta = 1", "policies[0] (Decentralized): c = 4.0 with zeta = 1.0 is not allowed"),
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
        "sweep.gama: unknown parameter: did you mean 'gamma'? Allowed are gamma, c,",
    ),
    (TINY + "[sweep]\ngamma = []\n", "sweep.gamma = [] is not allowed: expected array of length >= 1"),
    (TINY + "[sweep]\ngamma = 1\n", "sweep.gamma = 1 is not allowed: expected array, got int"),
    (TINY + '[sweep]\ngamma = [0, "x"]\n', "sweep.gamma[1]: policies[0].gamma = 'x' is not allowed"),
    (TINY + "[sweep]\ngamma = [1, 1]\n", "sweep.gamma = [1, 1] is not allowed: a value stands there twice"),
    (TINY + "[sweep]\ngamma = [[1]]\n", "sweep.gamma = [[1]] is not allowed: numbers, words or true/false"),
    (
        TINY + "[sweep]\nalpha = [1.5, 0.9]\n",
        "sweep.alpha[1]: arms.alpha = 0.9 is not allowed: expected float > 1",
    ),
    (
        TINY + '[sweep]\n"network.q" = [0.1]\n',
        "sweep.network.q: unknown parameter: did you mean 'network.p'?",
    ),
    (TINY + "[sweep]\nM = [4, 0]\n", "sweep.M[1]: network.n = 0 is not allowed: expected int >= 1"),
    (
        TINY + "[sweep]\nK = [2, 60]\n",
        "horizon = 50 is not allowed: the first K = 60 rounds try every arm once (at K",
    ),
    (
        TINY.replace("gamma = 1", "c = 4") + "[sweep]\nzeta = [1, 2]\n",
        "policies[0] (Decentralized): c = 4.0 with zeta = 1.0 is not allowed: give exactly one of",
    ),
    (
        TINY + "[scale.quick]\nhorizon = 10\ntrials = 2\n",
        "horizon: give it at the top or in [scale.quick] / [scale.full], not both",
    ),
    (SCALED, "scale: missing; give horizon and trials, or [scale.quick] and [scale.full]"),
    (SCALED + "[scale.quik]\nhorizon = 10\ntrials = 2\n", "scale.quik: unknown key: did you mean 'quick'?"),
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
    ("name = ", "not valid TOML: Invalid value (at end of document)"),
]


@pytest.mark.parametrize(("old", "new", "message"), REPLACED)
def test_a_wrong_value_is_refused_with_its_path(old, new, message):
    assert old in TINY
    with pytest.raises(InputError) as error:
        parse_spec(TINY.replace(old, new, 1), "mine.toml")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "message"), WHOLE)
def test_a_wrong_combination_is_refused_with_its_path(text, message):
    with pytest.raises(InputError) as error:
        parse_spec(text, "mine.toml")
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert "\n" not in str(error.value)


def test_the_unchanged_file_is_accepted():
    assert parse_spec(TINY).labels == ["Decentralized", "Robust"]


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(InputError, match=r"there is no such file; see `rumormill list specs`"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path / "binary.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path)
