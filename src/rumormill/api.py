"""Functions of the public API that join rooms: experiments and advice from a file, a name or an object.

Everything is imported when it is first called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rumormill.errors import InputError
from rumormill.text import shown
from rumormill.validate import named_arguments

if TYPE_CHECKING:
    from rumormill.advice.advise import Advice
    from rumormill.advice.off_policy import OffPolicy
    from rumormill.advice.reading.log import Log
    from rumormill.advice.report_text import LogAdvice
    from rumormill.arms.base import Objective
    from rumormill.engine.workers import Executor
    from rumormill.experiments.analyse.summary import Summary
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.schema import Spec
    from rumormill.graphs import Network, Topology


@named_arguments
def read_spec(source: str | PathLike[str] | Mapping[str, Any]) -> Spec:
    """Read an experiment and check every key of it.

    Parameters
    ----------
    source : path, name or mapping
        A TOML file, the name of a shipped experiment (`rumormill list specs`), or the table itself.

    Returns
    -------
    Spec
        The experiment, with all its scales.

    Raises
    ------
    InputError
        The file is missing or not TOML, or a key or value is not allowed.

    Examples
    --------
    >>> import rumormill as rm
    >>> spec = rm.read_spec("fig1a")
    >>> spec.name, sorted(spec.scale)
    ('fig1a', ['full', 'quick'])

    References
    ----------
    docs/tutorials/report.md: a spec, step by step.
    """
    from rumormill.experiments.spec import reading

    if isinstance(source, Mapping):
        return reading.decode(source)
    if isinstance(source, str) and source in reading.spec_names() and not Path(source).exists():
        return reading.named_spec(source)
    return reading.read_spec(source)


@named_arguments
def run(
    spec: Spec | str | PathLike[str] | Mapping[str, Any],
    out: str | PathLike[str] | None = None,
    *,
    scale: str | None = None,
    trials: int | None = None,
    horizon: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    executor: str | Executor | None = None,
) -> RunFolder:
    """Run an experiment, or go on with one that was stopped.

    The results depend on the spec alone, not on `jobs`, `executor` or interruptions.

    Parameters
    ----------
    spec : Spec, path, name or mapping
        The experiment; see `read_spec`.
    out : path, default runs/NAME-SCALE
        The folder of the run. Cells that it holds already are not played again.
    scale : str, optional
        A scale of the spec ("quick", "full"); may be left out where there is one only.
    trials : int, optional
        Trials instead of those of the scale.
    horizon : int, optional
        Rounds instead of those of the scale.
    seed : int, optional
        The seed instead of that of the spec; the folder is then runs/NAME-SCALE-seedN.
    jobs : int, default all cores
        Cells played at a time.
    executor : "threads", "processes", "ray" or Executor, default "threads"
        Where cells are played; "processes" also runs Python policies in parallel.

    Returns
    -------
    RunFolder
        The run on disk: `frame` is its table, `plot()` its figure.

    Raises
    ------
    InputError
        The spec is not valid, or the folder holds another run.

    Examples
    --------
    >>> import rumormill as rm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = rm.run("fig1a", folder, scale="quick", trials=1, horizon=10)
    ...     done.done, done.frame["t"].max()
    (True, 10)

    References
    ----------
    docs/tutorials/reproduce.md: runs and their folders.
    """
    from rumormill.experiments.run import runner
    from rumormill.experiments.spec import reading
    from rumormill.experiments.spec.schema import Spec

    read = spec if isinstance(spec, Spec) else read_spec(spec)
    ready = reading.at_scale(read, scale, trials=trials, horizon=horizon, seed=seed)
    return runner.run(ready, out or default_folder(ready, seed), jobs, executor=executor)


def default_folder(spec: Spec, seed: int | None = None, base: Path = Path("runs")) -> Path:
    """Where a run goes by default: each size, and each seed that is not the spec's, has its own folder."""
    ((scale, size),) = spec.scale.items()
    tail = f"{size.trials}x{size.horizon}" if scale == "custom" else scale
    return base / f"{spec.name}-{tail}{'' if seed is None else f'-seed{seed}'}"


@named_arguments
def summarise(run: RunFolder | str | PathLike[str], *, bounds: bool = False) -> Summary:
    """Summarise a run: regret of every policy and sweep point, with intervals over trials.

    Parameters
    ----------
    run : RunFolder or path
        The run, or its folder.
    bounds : bool, default False
        Also the bounds of the theory for the games played.

    Returns
    -------
    Summary
        Series of regret, constants and claims; what tables, figures and reports are made of.

    Examples
    --------
    >>> import rumormill as rm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = rm.summarise(rm.run("fig1a", folder, scale="quick", trials=1, horizon=10))
    >>> "KMP" in found.policies
    True

    References
    ----------
    docs/reproduction.md: the claims and their intervals.
    """
    from rumormill.experiments.analyse.summary import summarise as summarise_run
    from rumormill.experiments.run.store import RunFolder, open_run

    return summarise_run(run if isinstance(run, RunFolder) else open_run(run), bounds=bounds)


@named_arguments
def read_log(
    path: str | PathLike[str],
    *,
    objective: Objective | None = None,
    unit: str = "",
    time: str | None = None,
    agent: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    arms: Sequence[str] = (),
    ignore: Sequence[str] = (),
    status: str | None = None,
    ok: Sequence[str] = (),
    failure_cost: float | Literal["timeout"] | None = None,
) -> Log:
    r"""Read a log of decisions: who tried which arm, when, and the outcome.

    Wide form: one column per arm. Long form: a column with the arm and one with the outcome. Columns that are
    not named are recognised by their names.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or Arrow; text may be compressed (.gz).
    objective : "maximise" or "minimise", optional
        Whether larger outcomes are better; may be left out where the column says so ("reward").
    unit : str, optional
        The unit of the outcomes, for example "ms".
    time, agent : str, optional
        The columns with the time of the decision and with the agent.
    arm, reward : str, optional
        Long form: the columns with the arm and with the outcome.
    arms : sequence of str, default all
        The arms to read: values of the arm column, or columns of the wide form.
    ignore : sequence of str, optional
        Columns to leave out.
    status, ok : str and sequence of str, optional
        Long form: the column that says whether a try succeeded, and its words for success.
    failure_cost : float or "timeout", default left out
        The value of missing and failed outcomes; "timeout": the worst value of the log.

    Returns
    -------
    Log
        One entry per outcome, oldest first; `notes` says what was left out.

    Examples
    --------
    >>> import rumormill as rm, pathlib, tempfile
    >>> rows = "\n".join(f"{i},c{i % 2},{20 + i % 3},{30 + i % 5}" for i in range(60))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "mirrors.csv")
    ...     _ = path.write_text("time,client,near,far\n" + rows)
    ...     log = rm.read_log(path, objective="minimise", unit="ms")
    >>> log.arms, log.n_agents
    (('near', 'far'), 2)

    References
    ----------
    docs/advice.md: the forms of a log.
    """
    from rumormill.advice.reading import log as reading
    from rumormill.advice.reading.columns import Columns

    columns = Columns(time, agent, arm, reward, tuple(arms), tuple(ignore), status, tuple(ok))
    return reading.read_log(path, columns, objective=objective, unit=unit, failure_cost=failure_cost)


@named_arguments
def advise(
    source: Log | Spec | str | PathLike[str],
    network: Network | Topology | str | Mapping[str, Any] | None = None,
    *,
    objective: Objective | None = None,
    unit: str = "",
    estimators: Sequence[str] | None = None,
    scale: str | None = None,
    horizon: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> LogAdvice | Advice:
    """Recommend policy, γ, estimator and constants, or no cooperation, from a log or an experiment.

    Parameters
    ----------
    source : Log, Spec, path or name
        A log (or its file), or an experiment (or its TOML file, or the name of a shipped one).
    network : Network, Topology, str or mapping, optional
        The communication graph. Default: complete for logs, that of the spec for specs.
    objective, unit : optional
        For the file of a log: see `read_log`.
    estimators : sequence of str, default all but "catoni"
        The robust means to try.
    scale, horizon, trials : optional
        For specs: the scale that gives the network; size of the simulations (1000 rounds, 16 trials).
    seed, jobs : int, default 0 and all cores
        The seed of all randomness; threads.

    Returns
    -------
    Advice on a log or on a spec
        `code` is the recommended policy as an expression, `as_dict()` the whole advice.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.advise("fig1a", rm.Network.ring(6), horizon=20, trials=5, estimators=["trimmed"]).code[:3]
    'rm.'

    References
    ----------
    docs/advice.md: tests of the model, replay and hold-out.
    """
    from rumormill.advice import advise as advice
    from rumormill.advice.problem import QUICK_ESTIMATORS
    from rumormill.advice.reading.formats import is_log
    from rumormill.advice.reading.log import Log

    if isinstance(source, str | PathLike) and is_log(Path(source)):
        source = read_log(source, objective=objective, unit=unit)
    tried, graph = QUICK_ESTIMATORS if estimators is None else list(estimators), _network(network, seed)
    if isinstance(source, Log):
        if horizon is not None or trials is not None or scale is not None:
            raise InputError("horizon, trials and scale are for specs: a log is replayed as it is")
        return advice.advise(source, graph, seed=seed, estimators=tried, jobs=jobs)
    size = {"horizon": advice.HORIZON, "trials": advice.TRIALS}
    size |= {key: n for key, n in (("horizon", horizon), ("trials", trials)) if n is not None}
    return advice.advise(_any_scale(source, scale), graph, **size, seed=seed, estimators=tried, jobs=jobs)


@named_arguments
def evaluate(
    log: str | PathLike[str],
    policy: str,
    *,
    arm: str = "arm",
    reward: str | None = None,
    propensity: str = "propensity",
) -> OffPolicy:
    r"""What another policy would have paid per decision, from a log with propensities.

    Parameters
    ----------
    log : path
        A table with a row per decision: its arm, its reward (or cost), and the probability of that choice.
    policy : str
        "always=ARM", "uniform", or shares "A=0.7,B=0.3".
    arm, reward, propensity : str
        The columns; by default "arm", "reward" (or "cost"), "propensity".

    Returns
    -------
    OffPolicy
        Clipped IPS and doubly robust estimates with 95 % intervals that hold for tails of index 1.5 or more.

    Raises
    ------
    InputError
        The log cannot tell: no propensities, too few such choices, or deterministic ones.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import rumormill as rm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = pathlib.Path(folder) / "log.csv"
    ...     rows = [f"{'ab'[i % 2]},{i % 2 + i % 3},0.5" for i in range(600)]
    ...     _ = log.write_text("\n".join(["arm,reward,propensity", *rows]))
    ...     found = rm.evaluate(log, "always=b")
    >>> round(found.doubly_robust.estimate, 6), found.rows
    (2.0, 300)

    References
    ----------
    Dudík, Langford and Li (2011), "Doubly robust policy evaluation and learning"; docs/advice.md.
    """
    from rumormill.advice.off_policy import evaluate_file

    return evaluate_file(Path(log), policy, arm=arm, reward=reward, propensity=propensity)


def _any_scale(source: Any, scale: str | None) -> Spec:
    """The spec of an object, a file or a name at the scale given, or at its first one."""
    from rumormill.experiments.spec.reading import at_scale
    from rumormill.experiments.spec.schema import Spec

    if not isinstance(source, Spec | str | PathLike):
        raise InputError(f"source = {shown(source)} is not allowed: a log, a spec, or the path of one")
    spec = source if isinstance(source, Spec) else read_spec(source)
    return at_scale(spec, scale or next(iter(spec.scale)))


def _network(given: Any, seed: int) -> Network | None:
    """The network of an object, a name or a table; random ones are those of the first trial of a spec."""
    import numpy as np

    from rumormill import catalogue
    from rumormill.seeds import Role, root_seed, stream_seed

    made: Any = catalogue.given("network", given)
    if callable(getattr(made, "build", None)):
        made = made.build(np.random.default_rng(stream_seed(root_seed(seed), 0, Role.NETWORK)))
    found: Network | None = made
    return found
