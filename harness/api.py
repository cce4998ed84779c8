"""Functions for notebooks and for the command line, such as `replay()` and `compare()`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from warnings import warn

from harness.base.errors import OptionError
from harness.base.names import checked_label
from harness.plugins import Plugins, load
from harness.runs.arguments import FORECAST, SIMULATION, check_arguments, checked_requests, opened
from harness.runs.inputs import check_fit, cluster_for, default_plugin, read_cluster, read_trace
from harness.runs.request import Request
from harness.runs.run import Keep, Run
from harness.runs.settings import Given, takes_settings

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
    "Request", "check_fit", "cluster_for", "compare", "default_plugin", "idle_causes", "isolated", "labels",
    "make_report", "read_cluster", "read_trace", "replay", "replay_all", "simulate", "sweep", "tune",
]  # fmt: skip


@takes_settings
def replay(
    trace: str | Path | Trace,
    *,
    plugin: str | PolicyFactory | None = None,
    cluster: str | Path | Cluster | None = None,
    options: Mapping[str, Any] | None = None,
    label: str | None = None,
    calibration: Calibration | None = None,
    output: str | Path = "results",
    force: bool = False,
    keep: Keep = "all",
    twin: str | Twin | None = None,
    plugins: Plugins | None = None,
    watch: Callable[[int, int], None] | None = None,
    **settings: Unpack[Given],
) -> Run:
    """Replay a trace through a scheduling policy.

    Args:
        trace: a trace file, either in the canonical Parquet schema or in a format that one of the readers
            supports.
        plugin: the name of a registered policy, or your own policy class. The default is the policy that the
            manifests select; see `default_plugin`.
        cluster: the manifests of the cluster. The default is `<trace>.cluster.yaml` beside the trace. If that
            file doesn't exist, harness derives a cluster from the trace and lists its assumptions in
            `run.info["cluster"]["assumed"]`.
        options: the policy's options.
        label: the name of the run, such as `pr` or `fairsharing@pr`. The default is the policy's name.
        calibration: changes to the trace and the cluster, see `harness.trace.calibration`.
        output: the run is stored in the folder `<output>/<trace>/<run>`.
        force: replay even if the same run already exists.
        keep: the parts of the run to store, which are `all`, or the `metrics` with `run.json`, or `nothing`.
            With `nothing`, metrics exist only in memory.
        twin: the twin of the trace to replay, such as `3` or `3@SEED`; see `harness.trace.shake`. The default
            is the trace itself.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: a function that harness calls from time to time with the simulated time and the number of jobs
            that have arrived.
        settings: how jobs arrive, start, lose work and end, see `harness.runs.settings.Given`.

    Raises:
        InputError: the trace, the manifests or an option can't be used. The message lists all faults.
        DecisionError: the policy made an impossible decision.
        PolicyError: the policy raised an error of its own.
    """
    request = Request(
        trace,
        plugin=plugin,
        cluster=cluster,
        options=options,
        label=label,
        calibration=calibration,
        output=output,
        force=force,
        keep=keep,
        twin=twin,
        **settings,
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
    """Carry out several requests in parallel processes.

    If a request fails, the other requests still run. The function starts processes, so a script must call it
    under `if __name__ == "__main__"`.

    Args:
        requests: the requests.
        workers: how many requests to carry out in parallel. With 1, they run in this process. The default
            is as many as cores and memory allow. It is 1 if a request can't be pickled or if the traces are
            short.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: a function that harness calls from time to time with the index of a request, its simulated
            time, and the number of its jobs that have arrived.

    Returns:
        The runs in the order of the requests. They don't depend on the number of processes.

    Raises:
        ReplayError: some of the requests failed. The error names these requests and contains the runs of the
            others.
        HarnessError: there is only one request, and it failed with this error.
        OptionError: an argument has a wrong type.
    """
    from harness.runs.side_by_side import carry_out, runs_of

    check_arguments(locals())
    asked = checked_requests(requests)
    runs = runs_of(asked, carry_out(asked, plugins or load(), workers=workers, watch=watch))
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
    """Carry out an experiment, which replays all its settings and collects the results in one table.

    Items that already exist are skipped. If an item fails, `experiment.items` contains the error, and the
    other items still run. The function starts processes, so a script must call it under
    `if __name__ == "__main__"`.

    Args:
        spec: a file, or its fields as a mapping; docs/experiments.md describes them.
        output: the folder for results. The experiment is stored in `<output>/<name>`.
        workers: how many processes replay items. With 1, this process replays them. The default is as
            many as cores and memory allow.
        executor: an executor that replays the items instead of processes on this machine. Its `submit` must
            return futures of Python, as for example `dask.distributed.Client().get_executor()` does. harness
            rejects an executor that forks its processes, because forked processes would hang.
            `ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))` doesn't fork.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: a function that receives the progress of the experiment at the beginning and after each item.

    Raises:
        SpecError: the specification, or something that it names, cannot be used; lists all faults at once.
        OptionError: you give both `workers` and `executor`, an argument has a wrong type, or the executor
            forks.
        ReplayError: the executor has shut down.
        RunError: a result can't be written.
    """
    from harness.studies.experiments.parsing import load_spec, spec_of
    from harness.studies.experiments.preparation import prepared
    from harness.studies.experiments.sweep import Sweep

    check_arguments(locals())
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

    The search uses some weeks of the trace. It then compares its result with today's configuration on other
    weeks. If a search was stopped, another call continues it. `print(tuned)` shows the result, and
    `tuned.patch` contains the best configuration as a patch of the manifests. The function starts processes,
    so a script must call it under `if __name__ == "__main__"`.

    Args:
        spec: a file, or its fields as a mapping; docs/experiments.md describes them.
        output: the folder for results. All trials are stored as the experiment `<output>/<name>`.
        workers: how many processes replay trials. With 1, this process replays them. The default is the
            largest number that the search can use.
        executor: an executor that replays the trials instead, with the same restrictions as in `sweep`.
        plugins: the result of `harness.plugins.load()`; loaded if absent.

    Raises:
        SpecError: the specification, or something that it names, cannot be used; lists all faults at once.
        InputError: Optuna is not installed.
        OptionError: an objective was not measured, you give both `workers` and `executor`, an argument has a
            wrong type, or the executor forks.
        ReplayError: today's configuration can't be replayed, or the executor has shut down.
        RunError: a file can't be written.
    """
    from harness.studies.tuning.specification import load_tuning, tuning_of
    from harness.studies.tuning.tuner import Tuner

    check_arguments(locals())
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

    With `submit`, it also forecasts the effect of one more job. The same seed always gives the same forecast,
    whatever the number of processes. The function starts processes, so a script must call it under
    `if __name__ == "__main__"`.

    Args:
        cluster: the output of `kubectl get` for the cluster with its Workloads or Pods, or a `Cluster`.
        history: a trace of past jobs in a format that one of the readers supports. The default is the ended
            jobs in the manifests. harness draws run times and future arrivals from these jobs.
        submit: the manifest of a Job, Pod or Workload that you consider submitting now.
        plugin: the scheduler. The default is Kueue if the cluster has ClusterQueues, and kube-scheduler
            otherwise.
        options: the plugin's options.
        on_preemption: what a preempted job loses, given as `restart`, `resume` or
            `checkpoint=<interval>[,restore=<cost>]`.
        futures: how many futures to simulate.
        seed: the seed of all draws.
        horizon: the longest simulated time of a future, given as a duration such as `7d` or as a number of
            microseconds.
        now: the current time in microseconds since 1970. The default is the latest time in the cluster's
            work.
        reader: the name of the reader for the history.
        others: maps names to variants of the cluster, such as `cluster.patched("more.yaml")`. The forecast's
            `shifts` contains the effect of each variant on each workload.
        workloads: the names of the workloads to forecast. The default is all waiting workloads. A future ends
            when these workloads have started.
        calibrate: the number of times in the history for which harness compares a forecast with the recorded
            starts. The errors of these forecasts determine the width of intervals. With 0, harness skips this
            step.
        workers: how many processes simulate futures. With 1, this process simulates them. The default is
            as many as cores and memory allow.
        executor: an executor that simulates the futures instead, with the same restrictions as in `sweep`.
        plugins: the result of `harness.plugins.load()`; loaded if absent.
        watch: a function that receives the number of finished futures, beginning with 0, and the total number
            of futures.

    Raises:
        InputError: an input can't be read, no workload waits, or the job to submit can never start.
        OptionError: an argument has a wrong type, or the executor forks.
        ReplayError: a future couldn't be simulated, or the executor has shut down.
    """
    from harness.studies.forecasting.from_files import Asked

    check_arguments(locals(), FORECAST)
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
    for sentence in dict.fromkeys(sentence for run in runs for sentence in run.unmeasured.values()):
        warn(f"{sentence}; harness keeps the run without this metric", stacklevel=3)


def simulate(
    cluster: str | Path | Cluster | None,
    jobs: str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]] = (),
    *,
    plugin: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_preemption: str | Losses = "restart",
    workloads: Sequence[str] = (),
    each: bool = False,
    changes: bool | None = None,
    trace: str | Path | Trace | None = None,
    at: str | None = None,
    plugins: Plugins | None = None,
) -> Simulation:
    """Find out whether jobs would start now, which jobs they would preempt, and what would help waiting jobs.

    harness simulates what the scheduler does when you submit the jobs to the cluster with its current work.
    The given cluster doesn't change.

    Args:
        cluster: the output of `kubectl get` for the cluster with its Workloads or Pods, or a `Cluster`. With
            a trace, this is the cluster of the replay, and None means the cluster beside the trace.
        jobs: the jobs to submit in this order, given as manifests or as files with manifests. Without jobs,
            the answer covers each waiting workload.
        plugin: the scheduler. The default is Kueue if the cluster has ClusterQueues, and kube-scheduler
            otherwise.
        options: the plugin's options.
        on_preemption: what a preempted job loses, given as `restart`, `resume` or
            `checkpoint=<interval>[,restore=<cost>]`.
        workloads: the names of the waiting workloads that the answer covers if you don't submit jobs. The
            default is all waiting workloads.
        each: whether to simulate each job alone instead of adding one job after the other.
        changes: whether to search for the smallest changes that let jobs start. By default, harness searches
            if you name workloads or submit jobs to a dump. With a trace, each change that harness tries takes
            a whole replay.
        trace: the trace to replay. harness then simulates a point in time of this replay instead of a dump.
        at: this point in time, given as a time in the trace or as a duration since its beginning.
        plugins: the result of `harness.plugins.load()`; loaded if absent.

    Raises:
        InputError: an input can't be read, or the scheduler doesn't schedule a job.
        OptionError: an argument has a wrong type.
        PolicyError: the scheduler's plugin failed.
    """
    from harness.studies.simulation.asking import Question

    check_arguments(locals(), SIMULATION)
    asked = [jobs] if isinstance(jobs, (str, Path, Mapping)) else list(jobs)
    question = Question(plugins or load(), cluster, plugin, options, on_preemption, trace, at)
    return question.answered(asked, workloads=workloads, each=each, changes=changes)


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
    """Compare runs of the same jobs, which may differ in their clusters, plugins and settings.

    Args:
        runs: the runs, or their folders.
        baseline: the label or folder of the run with which the other runs are compared. The default is the
            first run.
        shake: the number of twins of each run to compare, such as `10` or `10@SEED`; see
            `harness.trace.shake`. Every difference then has an interval. harness replays and stores missing
            twins.
        isolated: whether to first replay the jobs of each quota without the jobs of other quotas, for all
            runs and twins; see the function `isolated`. This takes as long as the replays of the twins.
        idle_causes: whether to find out first why jobs of the runs and twins wait, as the function
            `idle_causes` does. This also takes as long as the replays of the twins.
        workers: how many twins to replay in parallel; see `replay_all`.
        plugins: the result of `harness.plugins.load()`. By default, harness loads the plugins if it needs
            them for a replay.

    Raises:
        RunError: a folder is not a run, or the runs can't be compared. The message says what differs. The
            error also occurs if twins are missing and the record of a run isn't sufficient for replaying it.
        OptionError: an argument has a wrong type.
        ReplayError: the replays of some twins failed. The other twins are stored.
    """
    from harness.analysis.comparison import Comparison

    check_arguments(locals())
    comparison = Comparison.of(runs, baseline=baseline)  # raises if the runs cannot be compared
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
    """Return the runs with `fairness.finish_time` and `fairness.sharing_violations` among their metrics.

    To measure these metrics, harness replays the jobs of each quota alone (`Request.alone`) with only the
    nominal quota. It stores these runs and reuses them. If a replay is impossible, the metrics are null and
    `run.remarks` says why.

    Args:
        runs: the runs, or their folders, with all their tables.
        workers: how many replays to run in parallel; see `replay_all`.
        plugins: the result of `harness.plugins.load()`. By default, harness loads the plugins.

    Raises:
        RunError: a folder is not a run, or the record of a run isn't sufficient for replaying it.
        OptionError: an argument has a wrong type.
        ReplayError: some of the replays failed. The others are stored.
    """
    from harness.studies.isolated import Isolated

    check_arguments(locals())
    return Isolated(opened(runs), plugins or load()).measured(workers=workers)


def idle_causes(
    runs: Sequence[Run | str | Path], *, workers: int | None = None, plugins: Plugins | None = None
) -> list[Run]:
    """Return the runs with `idle.*` among their metrics, which divide idle resources by the cause of waits.

    To measure these metrics, harness replays each run again and finds the reasons minute by minute. It stores
    the reasons with the run. If a replay is impossible, the metrics are null and `run.remarks` says why. The
    arguments and errors are the same as for `isolated`.
    """
    check_arguments(locals())
    return _judged(opened(runs), plugins or load(), workers)


def _judged(runs: Sequence[Run], plugins: Plugins, workers: int | None) -> list[Run]:
    from harness.studies.idle_causes import judged_runs, judging

    return judged_runs(judging(runs, plugins), plugins, workers=workers)


def make_report(
    runs: Sequence[Run | str | Path] | Comparison,
    *,
    baseline: str | None = None,
    plugins: Plugins | None = None,
    command: str | None = None,
    gantt: str | None = None,
) -> Report:
    """Return a report on runs of the same jobs. Its methods `html()` and `markdown()` write the report.

    Args:
        runs: the runs, or their folders, or a comparison of runs.
        baseline: the label or folder of the run with which the other runs are compared. The default is the
            first run.
        plugins: the plugins that register sections. By default, harness loads them.
        command: the command line that generates the report. The report shows it.
        gantt: the time span in which the report draws each job, such as `1d..1d6h`. Each end is a time as in
            the run or a duration, and you can omit it. By default, the report draws all jobs if the runs have
            at most 60 jobs.

    Raises:
        InputError, OptionError: `gantt` is invalid, no job of the runs is within this time span, or an
            argument has a wrong type.
        RunError: a folder is not a run, or the runs can't be compared. The message says what differs.
        PluginError: a section failed.
    """
    from harness.analysis.comparison import Comparison
    from harness.analysis.report.report import compose

    check_arguments(locals())
    comparison = runs if isinstance(runs, Comparison) else compare(runs, baseline=baseline)
    return compose(comparison, plugins or load(), command=command, gantt=gantt)


def labels(plugins: Iterable[str]) -> list[tuple[str, str]]:
    """Parse plugins in the form `NAME` or `NAME@LABEL`, and return each name with its label.

    Without `@LABEL`, the label is the name.

    Raises:
        OptionError: two runs would have the same label.
    """
    found: list[tuple[str, str]] = []
    for text in plugins:
        name, at, label = text.partition("@")
        if not name or (at and not label):
            raise OptionError(
                f"plugin {text!r} is not understood",
                hint="write the name of a plugin, or NAME@LABEL to name its run LABEL",
            )
        label = label or name
        if any(label == other for _, other in found):
            raise OptionError(
                f"two runs would have the label {label!r}",
                hint=f"give them different labels: --plugin {name}@first --plugin ...",
            )
        found.append((name, checked_label(label)))
    return found
