"""The function `explain()`, which explains jobs, queues and moments of a run."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from types import NoneType

from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.moment import Moment
from harness.analysis.explanation.names import job_named
from harness.analysis.explanation.story import Story
from harness.analysis.explanation.vocabulary import Units
from harness.base.arguments import check_type
from harness.base.errors import RunError
from harness.base.text import printable
from harness.runs.run import Run


def explain(
    run: Run | str | Path, job: str | None = None, *, queue: str | None = None, at: str | int | None = None
) -> Story | Moment:
    """Explains what happened to a job, in a queue, or at a moment.

    Without a job, a queue or a time, the function explains the last moment of a replay that was stopped
    because it made no progress.

    Args:
        run: the run, or its folder.
        job: a job's name, or its id in another system, such as `slurm_job_id`.
        queue: a queue's name, instead of a job.
        at: a time in the form that the run uses, a duration, or microseconds since the run's origin. A
            duration counts from the run's origin if the run has timestamps, or else from the trace's origin.

    Returns:
        An answer with `text()` and `to_json()`.

    Raises:
        RunError: the run, job or queue does not exist, the time is not within the run, both a job and a
            queue are given, or there is nothing to explain.
        InputError: `at` is not a time.
        OptionError: `job`, `queue` or `at` has the wrong type.
    """
    check_type("job", (str, NoneType), "a job's name", job)
    check_type("queue", (str, NoneType), "a queue's name", queue)
    check_type("at", (str, Integral, NoneType), "a text or whole microseconds", at)
    run = run if isinstance(run, Run) else Run.open(run)
    clock, units = Clock(run), units_of(run)
    time = clock.parse(at) if isinstance(at, str) else at
    if time is not None and not 0 <= time <= run.window.end:
        asked = at if isinstance(at, str) else f"{at} microseconds"
        start, end = (clock.text(each) for each in run.window)
        raise RunError(f"the run has no time {printable(asked)}: it lasts from {start} to {end}")
    if job is not None and queue is not None:
        raise RunError("explain a job or a queue, not both")
    if job is None:
        if queue is None and time is None and run.stopped is not None:
            time = run.stopped.at
        if queue is None and time is None:
            raise RunError("there is nothing to explain", hint="name a job, --queue, or --at")
        return Moment(run, clock, units, queue, time)
    histories = Histories(run, units)
    (history,) = histories.of([job_named(histories.jobs, job)], time)
    return Story(history, clock, units, time, stopped=run.stopped)


def units_of(run: Run) -> Units:
    """Returns the formatter for the amounts of resources in a run."""
    cluster = run.info["cluster"]
    nominal = (name for queue in cluster["queues"].values() for name in queue.get("nominal", {}))
    flavors = cluster.get("content", {}).get("objects", {}).get("ResourceFlavor")
    return Units(
        [*run.resources, *cluster["capacity"], *nominal], flavors=flavors is None or len(flavors) > 1
    )
