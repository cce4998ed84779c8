"""`replay()` and `compare()`: what notebooks and the command line both call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from harness.engine.losses import Losses, parse_losses
from harness.errors import NOT_THEIRS, InputError, OptionError, PluginError, TraceError
from harness.options import factor, resolve
from harness.plugins import Plugins, PolicySpec, load
from harness.runs.plan import Plan
from harness.runs.run import Run
from harness.units import LONGEST, SECOND, parse_duration

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.comparison import Comparison
    from harness.policy import PolicyFactory
    from harness.report.report import Report
    from harness.trace.calibration import Calibration
    from harness.trace.trace import Trace

_LONGEST_LABEL = 40

GRACE_PERIOD = 30 * SECOND
"""How long a preempted pod keeps its resources when neither trace nor user says: Kubernetes' default."""


def replay(
    trace: str | Path | Trace,
    *,
    plugin: str | PolicyFactory | None = None,
    cluster: str | Path | Cluster | None = None,
    options: Mapping[str, Any] | None = None,
    label: str | None = None,
    on_preemption: str | Losses = "restart",
    grace_period: str | int = GRACE_PERIOD,
    until: str | int | None = None,
    scale_arrivals: str | float | Fraction = 1,
    calibration: Calibration | None = None,
    output: str | Path = "results",
    force: bool = False,
    plugins: Plugins | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Run:
    """Replay a trace through a scheduling policy.

    Args:
        trace: a trace file, in the canonical Parquet schema or in any format that a reader knows.
        plugin: a registered policy's name, or a policy class of your own; by default the one that the
            manifests select, see `default_plugin`.
        cluster: manifests; by default `<trace>.cluster.yaml` beside the trace, else one made from the trace
            (`run.info["cluster"]["assumed"]` says how).
        options: the policy's options.
        label: what to call the run, such as `pr` or `fairsharing@pr`; the policy's name by default.
        on_preemption: `restart`, `resume` or `checkpoint=<interval>[,restore=<cost>]`.
        grace_period: for jobs that do not say; a duration such as `30s`, or microseconds.
        until: the last instant to play, a duration since the origin or microseconds.
        scale_arrivals: 2 lets jobs arrive twice as fast.
        calibration: what to change of the trace and the cluster, see `harness.trace.calibration`.
        output: the run becomes the folder `<output>/<trace>/<run>`.
        force: replay even if the same run is there already.
        plugins: what `harness.plugins.load()` gave; loaded when absent.
        watch: called now and then with the simulated time and the number of jobs that have arrived.

    Raises:
        InputError: the trace, the manifests or an option cannot be used; all faults at once.
        DecisionError: the policy decided what cannot be.
        PolicyError: the policy raised an error of its own.
    """
    plugins = plugins or load()
    opened = read_trace(trace, plugins, calibration)
    where = read_cluster(cluster, opened, calibration)
    plan = make_plan(
        opened,
        where,
        _policy(plugin or default_plugin(where), plugins),
        options=options or {},
        label=label,
        on_preemption=on_preemption,
        grace_period=grace_period,
        until=until,
        scale_arrivals=scale_arrivals,
    )
    return execute(plan, plugins, output=output, force=force, watch=watch)


def compare(runs: Sequence[Run | str | Path], *, baseline: str | None = None) -> Comparison:
    """Compare runs of one trace on one cluster.

    Args:
        runs: runs or their folders.
        baseline: the label of the run that the others are compared with; the first by default.

    Raises:
        RunError: a folder is no run, or the runs cannot be compared; says what differs.
    """
    from harness.comparison import Comparison

    opened = [run if isinstance(run, Run) else Run.open(run) for run in runs]
    return Comparison(opened, baseline=baseline)


def make_report(
    runs: Sequence[Run | str | Path] | Comparison,
    *,
    baseline: str | None = None,
    plugins: Plugins | None = None,
    command: str | None = None,
) -> Report:
    """A report of runs of one trace on one cluster: `.html()` and `.markdown()` write it.

    Args:
        runs: runs or their folders, or a comparison of them.
        baseline: the label of the run that the others are compared with; the first by default.
        plugins: who registers sections; loaded when absent.
        command: the command line that makes the report, to be shown in it.

    Raises:
        RunError: a folder is no run, or the runs cannot be compared; says what differs.
        PluginError: a section failed.
    """
    from harness.comparison import Comparison
    from harness.report.report import compose

    comparison = runs if isinstance(runs, Comparison) else compare(runs, baseline=baseline)
    return compose(comparison, plugins or load(), command=command)


def read_trace(trace: str | Path | Trace, plugins: Plugins, calibration: Calibration | None = None) -> Trace:
    """A trace that holds to its schema, calibrated.

    Raises:
        TraceError: it cannot be read, or breaks the schema; all faults at once.
        OptionError: a step of the calibration does not fit it.
    """
    from harness.trace.trace import open_trace

    opened = open_trace(Path(trace), plugins) if isinstance(trace, (str, Path)) else trace
    return opened if calibration is None else calibration.of_trace(opened)


def read_cluster(
    cluster: str | Path | Cluster | None, trace: Trace, calibration: Calibration | None = None
) -> Cluster:
    """The cluster for a trace: the one given, the one beside the trace, or one made from it; then scaled.

    Raises:
        ClusterError: the manifests are faulty.
        TraceError: the trace does not fit the cluster (unknown queues, jobs larger than all of it).
    """
    from harness.cluster.derive import find_cluster
    from harness.cluster.load import load_cluster
    from harness.trace.demand import derived_cluster
    from harness.trace.validate import cluster_faults

    if cluster is None:
        cluster = find_cluster(trace.path)
    if cluster is None:
        chosen = derived_cluster(trace)
    else:
        chosen = load_cluster(Path(cluster)) if isinstance(cluster, (str, Path)) else cluster
    if calibration is not None:
        chosen = calibration.of_cluster(chosen)
    faults = cluster_faults(trace, chosen)
    if faults:
        raise TraceError(
            f"{trace.path} does not fit {chosen.source or 'the cluster'}",
            faults,
            hint="harness cluster check shows it",
        )
    return chosen


def default_plugin(cluster: Cluster) -> str:
    """The plugin that the `preemptionAlgorithm` of a KubeSchedulerConfiguration selects; none without one."""
    return cluster.scheduler.plugin if cluster.scheduler is not None else "none"


def make_plan(
    trace: Trace,
    cluster: Cluster,
    policy: PolicySpec,
    *,
    options: Mapping[str, Any],
    label: str | None = None,
    on_preemption: str | Losses = "restart",
    grace_period: str | int = GRACE_PERIOD,
    until: str | int | None = None,
    scale_arrivals: str | float | Fraction = 1,
) -> Plan:
    """A plan with every choice checked; see `replay` for the arguments.

    Raises:
        OptionError: a choice is out of its range, or an option is unknown.
    """
    losses = parse_losses(on_preemption) if isinstance(on_preemption, str) else on_preemption
    return Plan(
        trace=trace,
        cluster=cluster,
        policy=policy,
        label="@".join(_label(part) for part in (label or policy.name).split("@", 1)),
        options=resolve(policy.options, options, owner=f"policy {_called(policy.name, label)}"),
        losses=losses,
        grace_period=_microseconds("grace period", grace_period),
        until=None if until is None else _microseconds("until", until),
        scale_arrivals=factor(
            "arrivals", scale_arrivals, hint="2 lets jobs arrive twice as fast, 0.5 half as fast"
        ),
    )


def execute(
    plan: Plan,
    plugins: Plugins,
    *,
    output: str | Path = "results",
    force: bool = False,
    watch: Callable[[int, int], None] | None = None,
    command: str | None = None,
) -> Run:
    """Carry out a plan; where the same run is there already, answer that one.

    Args:
        plan: what to replay.
        plugins: gives the metrics, and hears when the replay starts and finishes.
        output: where runs are kept.
        force: replay even if the run is there.
        watch: see `replay`.
        command: the command line that reproduces the run, for its provenance.

    Raises:
        RunError: the run folder cannot be written.
        PluginError: a plugin failed in one of its hooks; after the replay the run is there all the same.
    """
    from harness.runs.store import Store

    for code in plan.code:
        if code.changed:
            warn(f"{code.unknown}, and is replayed as it was then: import it again", stacklevel=3)
    store = Store(Path(output))
    if not force and (found := store.find(plan, plugins)) is not None:
        return found
    _call("harness_replay_started", plugins, plan=plan)
    run = store.record(plan, plugins, watch=watch, command=command)
    _call("harness_replay_finished", plugins, run=run)
    return run


def _call(hook: str, plugins: Plugins, **arguments: Plan | Run) -> None:
    try:
        getattr(plugins.hooks, hook)(**arguments)
    except NOT_THEIRS:
        raise
    except Exception as error:
        raise PluginError(
            f"a plugin failed in its hook {hook}: {type(error).__name__}: {error}", hint="--debug shows where"
        ) from error


def _policy(plugin: str | PolicyFactory, plugins: Plugins) -> PolicySpec:
    if isinstance(plugin, str):
        return plugins.policy(plugin)
    name = getattr(plugin, "__name__", type(plugin).__name__)
    options = tuple(getattr(plugin, "options", ()))
    return PolicySpec(name, plugin, "", options, bool(getattr(plugin, "clairvoyant", False)), "", "")


def _called(name: str, label: str | None) -> str:
    return name if label in (None, name) else f"{name}@{label}"


def _label(text: str) -> str:
    """A label that can be part of a folder's name anywhere, and of `LABEL.KEY=VALUE`."""
    wrong = any(not (char.isalnum() or char in "-_.+") for char in text) or text[:1] in (".", "-")
    if not text or wrong or len(text) > _LONGEST_LABEL:
        raise OptionError(
            f"{text!r} cannot be a label",
            hint=f"use up to {_LONGEST_LABEL} letters, digits, and - _ . +; neither - nor . at the beginning",
        )
    return text


def _microseconds(what: str, value: str | int) -> int:
    try:
        time = parse_duration(value) if isinstance(value, str) else value
    except InputError as error:
        raise OptionError(f"{what}: {error}") from error
    if type(time) is not int or time < 0:
        raise OptionError(f"{what}: {value!r} is not a duration of 0 or more microseconds")
    if time > LONGEST:
        raise OptionError(f"{what}: {value} is longer than 100 years")
    return time


def labels(plugins: Iterable[str]) -> list[tuple[str, str]]:
    """`NAME` or `NAME@LABEL` -> (name, label), each label once.

    Raises:
        OptionError: two runs would have the same label.
    """
    found: list[tuple[str, str]] = []
    for text in plugins:
        name, at, label = text.partition("@")
        if not name or (at and not label):
            raise OptionError(
                f"plugin {text!r} is not understood",
                hint="write the name of a plugin, or NAME@LABEL to call it LABEL",
            )
        label = label or name
        if any(label == other for _, other in found):
            raise OptionError(
                f"two runs would be called {label!r}",
                hint=f"name them apart: --plugin {name}@first --plugin ...",
            )
        found.append((name, _label(label)))
    return found
