"""`replay()`, `compare()` and so on: the functions that notebooks and the command line call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from harness.base.errors import OptionError
from harness.plugins import Plugins, load
from harness.runs.arguments import check_arguments, check_forecast, check_simulation, checked_requests
from harness.runs.execution import execute
from harness.runs.inputs import check_fit, cluster_for, default_plugin, read_cluster, read_trace
from harness.runs.labels import checked_label
from harness.runs.request import GRACE_PERIOD, Request
from harness.runs.run import Keep, Run, opened

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from harness.analysis.comparison import Comparison
    from harness.analysis.report.report import Report
    from harness.cluster.model import Cluster
    from harness.engine.losses import Losses
    from harness.policy import PolicyFactory
    from harness.studies.experiments.evaluation import Made
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.experiments.sweep import State
    from harness.studies.forecasting.forecast import Forecast
    from harness.studies.simulation.answer import Simulation
    from harness.studies.tuning.result import Tuned
    from harness.trace.calibration import Calibration
    from harness.trace.shake import Shake, Twin
    from harness.trace.trace import Trace

__all__ = [
    "Request",
    "check_fit",
    "cluster_for",
    "compare",
    "default_plugin",
    "execute",
    "idle_causes",
    "isolated",
    "labels",
    "make_report",
    "read_cluster",
    "read_trace",
    "replay",
    "replay_all",
    "simulate",
    "sweep",
    "tune",
]


def replay(
    trace: str | Path | Trace,
    *,
    plugin: str | PolicyFactory | None = None,
    cluster: str | Path | Cluster | None = None,
    options: Mapping[str, Any] | None = None,
    label: str | None = None,
    on_preemption: str | Losses = "restart",
    grace_period: str | int = GRACE_PERIOD,
    startup: str | int = 0,
    until: str | int | None = None,
    scale_arrivals: str | float | Fraction = 1,
    calibration: Calibration | None = None,
    output: str | Path = "results",
    force: bool = False,
    keep: Keep = "all",
    at_start: str | None = None,
    unfinished: str = "draw",
    seed: int = 0,
    twin: str | Twin | None = None,
    ignore_events: bool = False,
    plugins: Plugins | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Run:
    """Replay a trace through a scheduling policy.

    Args:
        trace: a trace file, in the canonical Parquet schema or in any format that a reader knows.
        plugin: a registered policy's name, or a policy class of your own; by default the policy that the
            manifests select, see `default_plugin`.
        cluster: manifests; by default `<trace>.cluster.yaml` beside the trace, else a cluster derived from
            the trace (`run.info["cluster"]["assumed"]` lists the assumptions).
        options: the policy's options.
        label: the name of the run, such as `pr` or `fairsharing@pr`; the policy's name by default.
        on_preemption: `restart`, `resume` or `checkpoint=<interval>[,restore=<cost>]`.
        grace_period: for jobs that do not give their own; a duration such as `30s`, or microseconds.
        startup: how long pods take to become ready, before a job's run time counts, if the trace has no
            column for it; a duration or microseconds.
        until: the last instant to play, a duration since the origin or microseconds.
        scale_arrivals: the factor by which jobs arrive faster; 2 doubles the rate.
        calibration: changes to the trace and the cluster, see `harness.trace.calibration`.
        output: the run becomes the folder `<output>/<trace>/<run>`.
        force: replay even if the same run is there already.
        keep: the parts of the run to keep: `all`; the `metrics`, with `run.json`; or `nothing`, so that only
            the run in memory has its metrics.
        at_start: `dump` begins with the Workloads and Pods of the manifests, `empty` without them. The
            default is `empty` for a trace whose dates precede those in the manifests, else `dump`.
        unfinished: how long unfinished work of the manifests runs, because they do not say it. `draw` draws
            run times of jobs that ended, as forecasts do. `limit` takes the longest time allowed. `drop`
            leaves it out. A duration such as `2h` is the run time of each.
        seed: the seed of these draws; twins have their own draws.
        twin: which twin of the trace to replay, such as `3` or `3@SEED`, see `harness.trace.shake`; by
            default the trace itself.
        ignore_events: replay a plugin that is not notified of cluster changes as if nothing changed;
            otherwise this is an error.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: called now and then with the simulated time and the number of jobs that have arrived.

    Raises:
        InputError: the trace, the manifests or an option cannot be used; lists all faults at once.
        DecisionError: the policy made an impossible decision.
        PolicyError: the policy raised an error of its own.
    """
    request = Request(
        trace,
        plugin=plugin,
        cluster=cluster,
        options=options,
        label=label,
        on_preemption=on_preemption,
        grace_period=grace_period,
        startup=startup,
        until=until,
        scale_arrivals=scale_arrivals,
        calibration=calibration,
        output=output,
        force=force,
        keep=keep,
        at_start=at_start,
        unfinished=unfinished,
        seed=seed,
        twin=twin,
        ignore_events=ignore_events,
    )
    run = request.run(plugins=plugins, watch=watch)
    _warn_of_metrics([run])
    return run


def replay_all(
    requests: Iterable[Request],
    *,
    workers: int | None = None,
    plugins: Plugins | None = None,
    watch: Callable[[int, int, int], None] | None = None,
) -> list[Run]:
    """Carry out several requests, side by side in several processes.

    An error in one request does not stop the others. In a script, call this under `if __name__ ==
    "__main__"`, as everything that starts processes.

    Args:
        requests: the requests.
        workers: how many to carry out at once; 1 is this process. The default is what cores and memory allow,
            and 1 if something cannot be pickled or the traces are short.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: called now and then with the number of a request, its simulated time and the number of jobs
            that have arrived.

    Returns:
        The runs, in the order of the requests: the same as one process would make.

    Raises:
        ReplayError: some failed; names them, and has the runs of the others.
        HarnessError: the error of the only request.
        OptionError: an argument has a wrong type.
    """
    from contextlib import closing

    from harness.runs.side_by_side import carry_out, runs_of

    check_arguments({"workers": workers, "plugins": plugins, "watch": watch})
    asked = checked_requests(requests)
    with closing(carry_out(asked, plugins or load(), workers=workers, watch=watch)) as news:
        runs = runs_of(asked, dict(news))
    _warn_of_metrics(runs)
    return runs


def sweep(
    spec: str | Path | Mapping[str, Any],
    *,
    output: str | Path = "results",
    workers: int | None = None,
    executor: Executor | None = None,
    plugins: Plugins | None = None,
    watch: Callable[[State, Made | None], None] | None = None,
) -> Experiment:
    """Carry out an experiment: replay every setting that it names, and put the results into one table.

    Items that exist already are not made again. An item that fails is recorded with its error
    (`experiment.items`) and does not stop the others. In a script, call this under `if __name__ ==
    "__main__"`, as everything that starts processes.

    Args:
        spec: a file, or its fields as a mapping; docs/experiments.md describes them.
        output: the experiment becomes the folder `<output>/<name>`.
        workers: how many processes make items; 1 is this process. The default is what cores and memory allow.
        executor: makes items instead: any object with a `submit` that returns Python's futures, such as
            `dask.distributed.Client().get_executor()`. An executor that forks its processes is refused,
            because they would wait for ever. `ProcessPoolExecutor(2,
            mp_context=multiprocessing.get_context("spawn"))` does not fork.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: receives the progress of the experiment, at the beginning and with each item.

    Raises:
        SpecError: the specification, or something that it names, cannot be used; lists all faults at once.
        OptionError: both workers and an executor are given, an argument has a wrong type, or the executor
            forks.
        ReplayError: the executor is gone.
        RunError: something cannot be written.
    """
    from harness.studies.experiments.parsing import load_spec, spec_of
    from harness.studies.experiments.preparation import prepared
    from harness.studies.experiments.sweep import Sweep

    check_arguments(
        {
            "spec": spec,
            "output": output,
            "workers": workers,
            "executor": executor,
            "plugins": plugins,
            "watch": watch,
        }
    )
    asked = spec_of(spec, source="the experiment") if isinstance(spec, Mapping) else load_spec(Path(spec))
    made = Sweep(prepared(asked, plugins or load()), Path(output))
    return made.run(workers=workers, executor=executor, watch=watch)


def tune(
    spec: str | Path | Mapping[str, Any],
    *,
    output: str | Path = "results",
    workers: int | None = None,
    executor: Executor | None = None,
    plugins: Plugins | None = None,
) -> Tuned:
    """Search for values of knobs, settings and options that are better than today's (extra `tune`).

    The search uses some weeks of the trace. Its result is then compared with today's configuration on other
    weeks. A search that was stopped continues from there. `print(tuned)` shows the result, `tuned.patch` is
    the winner's patch of the manifests. In a script, call this under `if __name__ == "__main__"`, as
    everything that starts processes.

    Args:
        spec: a file, or its fields as a mapping; docs/experiments.md describes them.
        output: all trials are kept as the experiment `<output>/<name>`.
        workers: how many processes replay; 1 is this process. By default as many as have work.
        executor: replays instead; one that forks its processes is refused, see `sweep`.
        plugins: the result of `harness.plugins.load()`; loaded if absent.

    Raises:
        SpecError: the specification, or something that it names, cannot be used; lists all faults at once.
        InputError: Optuna is not installed.
        OptionError: an objective was not measured, both workers and an executor are given, an argument has a
            wrong type, or the executor forks.
        ReplayError: the present configuration cannot be replayed, or the executor is gone.
        RunError: something cannot be written.
    """
    from harness.studies.tuning.specification import load_tuning, tuning_of
    from harness.studies.tuning.tuner import Tuner

    check_arguments(
        {"spec": spec, "output": output, "workers": workers, "executor": executor, "plugins": plugins}
    )
    asked = tuning_of(spec, source="the tuning") if isinstance(spec, Mapping) else load_tuning(Path(spec))
    return Tuner(asked, plugins or load(), Path(output)).run(workers=workers, executor=executor)


def forecast(
    cluster: str | Path | Cluster,
    *,
    history: str | Path | Trace | None = None,
    submit: str | Path | Mapping[str, Any] | None = None,
    plugin: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_preemption: str | Losses = "restart",
    futures: int = 200,
    seed: int = 0,
    horizon: str | int = "7d",
    now: int | None = None,
    reader: str | None = None,
    others: Mapping[str, str | Path | Cluster] | None = None,
    workloads: Sequence[str] = (),
    calibrate: int = 40,
    workers: int | None = None,
    executor: Executor | None = None,
    plugins: Plugins | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Forecast:
    """Forecast when waiting jobs of a live cluster start, and which jobs are likely to be preempted.

    It also tells the effect of one more job. The same seed gives the same forecast, whatever processes play
    its futures. In a script, call this under `if __name__ == "__main__"`, as everything that starts
    processes.

    Args:
        cluster: the output of `kubectl get` for the cluster, with its Workloads or Pods, or a cluster.
        history: jobs that ran, a trace in any format that a reader knows; by default the ended jobs of the
            manifests. Run times and future arrivals are drawn from it.
        submit: the manifest of a Job, Pod or Workload that may be submitted now.
        plugin: the scheduler; by default Kueue if there are ClusterQueues, else kube-scheduler.
        options: the plugin's options.
        on_preemption: `restart`, `resume` or `checkpoint=<interval>[,restore=<cost>]`.
        futures: how many futures to play.
        seed: the seed of all draws.
        horizon: the longest time to play; a duration such as `7d`, or microseconds.
        now: the current time, microseconds since 1970; by default the latest time that the work mentions.
        reader: the format of the history.
        others: names -> the cluster as it might be, such as `cluster.patched("more.yaml")`: what each of them
            changes for each workload is in the forecast's `shifts`.
        workloads: the names of those that are asked about, by default all that wait; a future ends when these
            have started.
        calibrate: at so many moments of a history with recorded starts, forecasts are made and compared with
            what came. Intervals are as wide as these were off; 0 makes none.
        workers: how many processes play futures; 1 is this process. By default as many as there are cores
            and memory for.
        executor: plays them instead; one that forks its processes is refused, see `sweep`.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: receives the number of played futures and of all futures.

    Raises:
        InputError: something cannot be read, nothing waits, or the job to submit can never start.
        OptionError: an argument has a wrong type, or the executor forks.
        ReplayError: a future could not be played, or the executor is gone.
    """
    from harness.studies.forecasting.from_files import Asked

    check_forecast(
        {
            "cluster": cluster,
            "history": history,
            "submit": submit,
            "plugin": plugin,
            "options": options,
            "on_preemption": on_preemption,
            "futures": futures,
            "seed": seed,
            "horizon": horizon,
            "now": now,
            "reader": reader,
            "others": others,
            "workloads": workloads,
            "calibrate": calibrate,
            "workers": workers,
            "executor": executor,
            "plugins": plugins,
            "watch": watch,
        }
    )
    asked = Asked(
        cluster,
        history,
        submit,
        plugin,
        options,
        on_preemption,
        futures,
        seed,
        horizon,
        now,
        reader,
        others or {},
        workloads,
        calibrate,
    )
    return asked.made(plugins or load(), workers=workers, executor=executor, watch=watch)


def _warn_of_metrics(runs: Iterable[Run]) -> None:
    """Warn Python callers of metrics that failed."""
    for sentence in dict.fromkeys(sentence for run in runs for sentence in run.unmeasured.values()):
        warn(f"{sentence}; the run is kept without it", stacklevel=3)


def simulate(
    cluster: str | Path | Cluster | None,
    jobs: str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]] = (),
    *,
    plugin: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_preemption: str | Losses = "restart",
    each: bool = False,
    changes: bool | None = None,
    trace: str | Path | Trace | None = None,
    at: str | None = None,
    plugins: Plugins | None = None,
) -> Simulation:
    """Tell whether jobs would start now, which jobs they would preempt, and what would help waiting ones.

    The scheduler plays one instant, in which the jobs are submitted to the cluster with its present work. The
    cluster stays as it is.

    Args:
        cluster: the output of `kubectl get` for the cluster, with its Workloads or Pods, or a cluster. With a
            trace, it is the cluster of the replay; None for the cluster beside the trace.
        jobs: the jobs to submit, in this order: files with manifests, or manifests. Without any, the answer
            is about each waiting workload.
        plugin: the scheduler; by default Kueue if there are ClusterQueues, else kube-scheduler.
        options: the plugin's options.
        on_preemption: what a preempted job loses: `restart`, `resume` or
            `checkpoint=<interval>[,restore=<cost>]`.
        each: ask about each job alone, instead of one after the other.
        changes: look for the smallest changes that let jobs start; by default for jobs that are submitted to
            a dump. With a trace, each change is a whole replay.
        trace: ask about an instant in the replay of this trace, instead of a dump.
        at: the instant: a time as in the trace, or a duration since its beginning.
        plugins: the result of `harness.plugins.load()`; loaded if absent.

    Raises:
        InputError: something cannot be read, or the scheduler does not schedule a job.
        OptionError: an argument has a wrong type.
        PolicyError: the scheduler's plugin failed.
    """
    from harness.studies.simulation.asking import Question

    check_simulation(
        {
            "cluster": cluster,
            "jobs": jobs,
            "plugin": plugin,
            "options": options,
            "on_preemption": on_preemption,
            "each": each,
            "changes": changes,
            "at": at,
            "plugins": plugins,
        }
    )
    asked = [jobs] if isinstance(jobs, (str, Path, Mapping)) else list(jobs)
    question = Question(plugins or load(), cluster, plugin, options, on_preemption, trace, at)
    return question.answered(asked, each=each, changes=changes)


def compare(
    runs: Sequence[Run | str | Path],
    *,
    baseline: str | None = None,
    shake: int | str | Shake | None = None,
    isolated: bool = False,
    idle_causes: bool = False,
    workers: int | None = None,
    plugins: Plugins | None = None,
) -> Comparison:
    """Compare runs of the same jobs, whatever their clusters, plugins or settings.

    Args:
        runs: runs or their folders.
        baseline: label or folder of the run that the others are compared with; the first by default.
        shake: compare this many twins of each run, such as `10` or `10@SEED`, see `harness.trace.shake`.
            Every difference then has an interval. Missing twins are replayed, and kept.
        isolated: first measure the runs against each of their quotas alone, as `isolated` does. This includes
            their twins, and takes as long again as the twins themselves.
        idle_causes: first judge why jobs of the runs wait, as `idle_causes` does. This includes their twins,
            and takes as long again as well.
        workers: how many twins to replay at once, see `replay_all`.
        plugins: the result of `harness.plugins.load()`; loaded if absent and needed for a replay.

    Raises:
        RunError: a folder is no run, or the runs cannot be compared; says what differs. Or twins are missing
            for a run whose record does not suffice for a replay.
        OptionError: an argument has a wrong type.
        ReplayError: some twins failed; the others are kept.
    """
    from harness.analysis.comparison import Comparison

    check_arguments(
        {
            "baseline": baseline,
            "shake": shake,
            "isolated": isolated,
            "idle_causes": idle_causes,
            "workers": workers,
            "plugins": plugins,
        }
    )
    comparison = Comparison.of(runs, baseline=baseline)  # also: can they be compared at all?
    chosen_by, shared = comparison.head.chosen, comparison.pairs.same_arrivals
    if shake is not None:
        comparison.pairs.require_whole()  # before anything is replayed
    if isolated:
        from harness.studies.isolated import Isolated

        plugins = plugins or load()
        measured = Isolated(comparison.runs, plugins).measured(workers=workers)
        comparison = Comparison(measured, chosen=chosen_by)
    if idle_causes:
        plugins = plugins or load()
        comparison = Comparison(_judged(comparison.runs, plugins, workers), chosen=chosen_by)
    if shake is None:
        return comparison
    from harness.studies.twins import Twins
    from harness.trace.shake import Shake

    chosen = shake if isinstance(shake, Shake) else Shake.parse(shake)
    found = Twins(
        comparison.runs, chosen, lambda: plugins or load(), shared=shared, isolated=isolated, idle=idle_causes
    )
    twins = found.replayed(workers=workers)
    return Comparison(comparison.runs, chosen=chosen_by, shake=chosen, twins=twins)


def isolated(
    runs: Sequence[Run | str | Path], *, workers: int | None = None, plugins: Plugins | None = None
) -> list[Run]:
    """Returns the runs with `fairness.finish_time` and `fairness.sharing_violations` among their metrics.

    For these, the jobs of each quota are replayed alone (`Request.alone`), with no more than its nominal
    quota. These runs are kept, and not made again. If a replay is impossible, the metrics are null and
    `run.remarks` says why.

    Args:
        runs: runs or their folders, with all their tables.
        workers: how many replays to make at once, see `replay_all`.
        plugins: the result of `harness.plugins.load()`; loaded if absent.

    Raises:
        RunError: a folder is no run, or a run's record does not suffice for a replay.
        OptionError: an argument has a wrong type.
        ReplayError: some replays failed; the others are kept.
    """
    from harness.studies.isolated import Isolated

    check_arguments({"workers": workers, "plugins": plugins})
    return Isolated(opened(runs), plugins or load()).measured(workers=workers)


def idle_causes(
    runs: Sequence[Run | str | Path], *, workers: int | None = None, plugins: Plugins | None = None
) -> list[Run]:
    """Returns the same runs with `idle.*` among their metrics: idle resources, by why jobs waited meanwhile.

    For these, each run is replayed once more, and judged minute by minute. The judgements are kept with it.
    If a replay is impossible, the metrics are null and `run.remarks` says why. Arguments and errors are those
    of `isolated`.
    """
    check_arguments({"workers": workers, "plugins": plugins})
    return _judged(opened(runs), plugins or load(), workers)


def _judged(runs: Sequence[Run], plugins: Plugins, workers: int | None) -> list[Run]:
    from harness.runs.side_by_side import carry_out
    from harness.studies.idle_causes import judged_runs, judging

    requests = judging(runs, plugins)
    return judged_runs(requests, dict(carry_out(requests, plugins, workers=workers)))


def make_report(
    runs: Sequence[Run | str | Path] | Comparison,
    *,
    baseline: str | None = None,
    plugins: Plugins | None = None,
    command: str | None = None,
    gantt: str | None = None,
) -> Report:
    """Returns a report of runs of the same jobs: `.html()` and `.markdown()` write it.

    Args:
        runs: runs or their folders, or a comparison of them.
        baseline: label or folder of the run that the others are compared with; the first by default.
        plugins: the plugins that register sections; loaded if absent.
        command: the command line that makes the report, to show in it.
        gantt: the span in which to show jobs one by one, such as `1d..1d6h`: times as the run writes them, or
            durations; either may be left out. By default all jobs, for runs of at most 60.

    Raises:
        InputError, OptionError: `gantt` is invalid, or contains nothing of the runs; or an argument has a
            wrong type.
        RunError: a folder is no run, or the runs cannot be compared; says what differs.
        PluginError: a section failed.
    """
    from harness.analysis.comparison import Comparison
    from harness.analysis.report.report import compose

    check_arguments({"plugins": plugins, "command": command, "gantt": gantt})
    comparison = runs if isinstance(runs, Comparison) else compare(runs, baseline=baseline)
    return compose(comparison, plugins or load(), command=command, gantt=gantt)


def labels(plugins: Iterable[str]) -> list[tuple[str, str]]:
    """Returns (name, label) for each `NAME` or `NAME@LABEL`, each label once.

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
                f"two runs would have the label {label!r}",
                hint=f"name them apart: --plugin {name}@first --plugin ...",
            )
        found.append((name, checked_label(label)))
    return found
