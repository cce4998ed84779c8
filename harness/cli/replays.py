"""Carries out the replays of a command, reuses stored runs, and reports each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.base.errors import HarnessError
from harness.base.text import counted
from harness.cli.progress import ProgressBars
from harness.cli.screen import results_only, tell

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.plugins import Plugins
    from harness.runs.plan import Plan
    from harness.runs.request import Request
    from harness.runs.run import Run
    from harness.trace.shake import Shake


class How(NamedTuple):
    """How a command carries out replays.

    Attributes:
        workers: how many replays to run in parallel; by default as many as cores and memory allow.
        command: the command line, for the provenance of the runs.
    """

    workers: int | None
    command: str
    quiet: bool


@results_only()
def planned(requests: Sequence[Request], plugins: Plugins) -> list[Plan]:
    """Returns the plan of each requested replay. Raises the same errors as `Request.plan`."""
    return [request.plan(plugins) for request in requests]


@results_only()
def carried_out(
    requests: Sequence[Request], plans: Sequence[Plan], plugins: Plugins, how: How, *, jobs: int
) -> list[Run]:
    """Carries out the requested replays that are not stored yet, and returns the run of each request.

    `jobs` is the maximum number of jobs that will arrive.

    Raises:
        HarnessError: some replays failed. The runs of successful replays are kept.
    """
    from harness.runs.side_by_side import carry_out, runs_of
    from harness.runs.store import Store

    outcomes: dict[int, Run | BaseException] = {}
    for number, (request, plan) in enumerate(zip(requests, plans, strict=True)):
        try:
            found = None if request.force else Store(request.output).find(plan, plugins, request.keep)
        except HarnessError as error:
            outcomes[number] = error
        else:
            if found is not None:
                outcomes[number] = found
    left = [number for number in range(len(requests)) if number not in outcomes]
    asked = [requests[number] for number in left]
    labels = [plans[number].label for number in left]
    workers, command, quiet = how
    with ProgressBars(labels, jobs, shown=not quiet) as progress:
        told = _tell(outcomes, 0, progress, quiet=quiet)

        def over(at: int, outcome: Run | BaseException) -> None:
            nonlocal told
            outcomes[left[at]] = outcome
            progress.over(at)
            told = _tell(outcomes, told, progress, quiet=quiet)

        made = [plans[number] for number in left]
        carry_out(
            asked, plugins, plans=made, workers=workers, watch=progress.watch, over=over, command=command
        )
    return runs_of(requests, outcomes)


@results_only()
def shaken(
    comparison: Comparison,
    shake: Shake,
    plugins: Callable[[], Plugins],
    how: How,
    *,
    isolated: bool = False,
    idle: bool = False,
) -> Comparison:
    """Returns the comparison of the same runs over their twins. Missing twins are replayed first.

    If `isolated` is True, the twins get the same measurements as the runs of the function `isolated`. If
    `idle` is True, they get those of the function `judged`. `plugins` returns the plugins that the twins use.

    Raises:
        HarnessError: the runs have different jobs, or some replays failed. The twins of successful replays
            are kept.
    """
    from harness.analysis.comparison import Comparison
    from harness.studies.twins import Twins

    comparison.pairs.require_whole()  # Raise an error before anything is replayed.
    runs, (workers, command, quiet) = comparison.runs, how
    shared = comparison.pairs.same_arrivals
    twins = Twins(runs, shake, plugins, shared=shared, isolated=isolated, idle=idle)
    jobs = max(run.info["trace"]["jobs"] for run in runs) * (1 + isolated + idle)
    while not twins.complete:
        if not quiet:
            told = f"shaking: {counted(len(twins.requests), 'replay')} of {shake.told()}"
            told += ", each also with the jobs of every quota alone" if isolated else ""
            told += ", each once more to find out why jobs wait" if idle else ""
            tell(f"{told}; harness stores each replay")
        with ProgressBars([each.called for each in twins.requests], jobs, shown=not quiet) as progress:
            twins.replay(workers=workers, watch=progress.watch, over=progress.over, command=command)
    if not quiet:
        for run, of_run in zip(runs, twins.found, strict=True):
            tell(_ending_of_twins(run, of_run))
    return Comparison(runs, chosen=comparison.head.chosen, shake=shake, twins=twins.found)


@results_only()
def isolated(runs: Sequence[Run], plugins: Plugins, how: How) -> list[Run]:
    """Returns the runs with further measurements, for which the jobs of each quota are replayed alone.

    Raises:
        HarnessError: some replays failed. Successful replays are stored.
    """
    from harness.studies.isolated import Isolated

    found = Isolated(runs, plugins)
    workers, command, quiet = how
    if found.requests and not quiet:
        alone = counted(len(found.requests), "run")
        tell(f"isolated: {alone}, each with the jobs of one quota alone; stored runs are not replayed")
    jobs = max(run.info["trace"]["jobs"] for run in runs)
    with ProgressBars([each.called for each in found.requests], jobs, shown=not quiet) as progress:
        return found.measured(workers=workers, watch=progress.watch, over=progress.over, command=command)


@results_only()
def judged(runs: Sequence[Run], plugins: Plugins, how: How) -> list[Run]:
    """Returns the runs with the reasons why jobs waited. Runs without these reasons are replayed again.

    Raises:
        HarnessError: some replays failed. Successful replays are stored.
    """
    from harness.runs.run import IDLE
    from harness.studies.idle_causes import judged_runs, judging

    requests = judging(runs, plugins)
    workers, command, quiet = how
    missing = sum(IDLE not in run.info for run in runs)
    if missing and not quiet:
        again = f"{missing:,} run{'s are' if missing > 1 else ' is'} replayed once more"
        tell(f"idle causes: {again} to find out why jobs wait; stored runs are not replayed")
    jobs = 2 * max(run.info["trace"]["jobs"] for run in runs)
    with ProgressBars([each.called for each in requests], jobs, shown=not quiet) as progress:
        return judged_runs(
            requests, plugins, workers=workers, watch=progress.watch, over=progress.over, command=command
        )


def _ending_of_twins(run: Run, twins: Sequence[Run]) -> str:
    made = [twin.info["provenance"]["cpu_seconds"] for twin in twins if not twin.stored]
    stored = len(twins) - len(made)
    replayed = f"{len(made):,} in {sum(made):.1f} CPU-s" if made else "none"
    before = f", {stored:,} stored before" if stored else ""
    where = twins[0].path.parent
    return f"{run.label}: {counted(len(twins), 'twin')}, {replayed} replayed{before}, kept in {where}"


def _tell(
    outcomes: Mapping[int, Run | BaseException], told: int, progress: ProgressBars, *, quiet: bool
) -> int:
    """Reports the results of replays in the order of the requests, and returns their number."""
    while told in outcomes:
        outcome = outcomes[told]
        if not quiet and not isinstance(outcome, BaseException):
            progress.say([ending(outcome)])
        told += 1
    return told


def ending(run: Run) -> str:
    """Returns one line about the result of a replay."""
    if run.measured_again:
        return f"{run.label}: measured again, kept in {run.path} (--force replays it)"
    if run.stored:
        return f"{run.label}: stored result {run.path} (--force replays it)"
    spent = run.info["provenance"]["cpu_seconds"]
    jobs = counted(run.info["outcome"]["jobs"], "job")
    return f"{run.label}: {jobs} in {spent:.1f} CPU-s, kept in {run.path}"
