"""Implements `harness replay --step` and `--trace-policy`, which observe a policy during a replay."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from harness.base.errors import OptionError
from harness.base.text import printable
from harness.cli.replays import ending
from harness.cli.screen import tell

if TYPE_CHECKING:
    from harness.analysis.explanation.cycles import Cycle, Observer
    from harness.plugins import Plugins
    from harness.policy import Policy
    from harness.runs.plan import Plan
    from harness.runs.request import Request
    from harness.runs.run import Run

_PROMPT = "-- Enter: next, q: quit --"


class _Stop(KeyboardInterrupt):
    """Stops a replay as ctrl-C does, because the engine would attribute any other error to the policy."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def check_watched(requests: Sequence[Request], *, shaken: bool, as_json: bool) -> None:
    """Check that only one replay is observed, and that nothing else writes to stdout.

    Raises:
        OptionError: several replays are requested, or `--json` prints a document to stdout.
    """
    if len(requests) > 1 or shaken:
        asked = "--shake replays twins" if shaken else f"you asked for {len(requests)}"
        raise OptionError(
            f"--step and --trace-policy watch one replay, but {asked}",
            hint="give one --plugin, one --cluster, and no --patch or --shake",
        )
    if as_json:
        raise OptionError(
            "--step and --trace-policy print lines to stdout, and so does --json",
            hint="leave out --json, and get the document from the kept run: harness compare RUN --json",
        )


def watched(
    request: Request,
    plan: Plan,
    plugins: Plugins,
    *,
    jobs: Collection[str],
    step: bool,
    command: str,
    quiet: bool,
) -> Run:
    """Carry out a replay, even if its run is stored, and print what the policy receives and decides.

    If `jobs` is not empty, only the cycles that concern these jobs are shown. With `step`, the replay waits
    for Enter after each shown cycle, which requires that stdin and stdout are terminals.

    Raises:
        OptionError: a job in `jobs` does not exist.
        click.exceptions.Exit: the user quits. In this case, the replay is not kept.
    """
    _check_jobs(jobs, plan)
    origin = plan.trace.origin if plan.trace.kind == "duration" else 0
    telling = _Telling(jobs, pauses=step and _at_terminal(), origin=origin)
    made = replace(plan, observe=telling.observe)
    try:
        run = replace(request, force=True).run(plugins=plugins, plan=made, command=command)
    except _Stop as stop:
        raise stop.error from None
    finally:
        telling.tell_unfinished()
    if not quiet:
        if not telling.told:
            none = f"no cycle involves {', '.join(jobs)}" if jobs else "there is no cycle"
            tell(f"note: {none}")
        tell(ending(run))
    return run


def _at_terminal() -> bool:
    """Returns True if a user can press Enter. A stream is None if its descriptor was closed."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


class _Telling:
    """Prints the requested cycles, and waits after each if requested. For `origin`, see `Observer`."""

    def __init__(self, jobs: Collection[str], *, pauses: bool, origin: int) -> None:
        self.told = 0
        self._jobs = frozenset(jobs)
        self._pauses = pauses
        self._origin = origin
        self._observer: Observer | None = None

    def observe(self, policy: Policy) -> Policy:
        from harness.analysis.explanation.cycles import Observer

        # Without `--trace-policy`, show all cycles, including those in which nothing happens.
        self._observer = Observer(policy, self._report, origin=self._origin, leaps=bool(self._jobs))
        return self._observer

    def tell_unfinished(self) -> None:
        cycle = self._observer.unfinished if self._observer is not None else None
        if cycle is not None:
            self._tell(cycle)

    def _report(self, cycle: Cycle) -> None:
        try:
            if self._tell(cycle) and self._pauses:
                self._wait()
        except Exception as error:
            raise _Stop(error) from error

    def _tell(self, cycle: Cycle) -> bool:
        if self._jobs and not cycle.concerns(self._jobs):
            return False
        for line in cycle.text(self._jobs).split("\n"):
            click.echo(printable(line))
        self.told += 1
        return True

    def _wait(self) -> None:
        click.echo(_PROMPT, nl=False, err=True)
        answer = sys.stdin.readline()
        if not answer or answer.strip().lower() in ("q", "quit"):
            click.echo("quit: the replay is not kept", err=True)
            raise click.exceptions.Exit(0)


def _check_jobs(jobs: Collection[str], plan: Plan) -> None:
    from harness.analysis.explanation.names import close_to
    from harness.runs.questions import running_jobs

    if not jobs:
        return
    several = [each for each in (plan.cluster, plan.at_start.later) if each is not None]
    known = {str(name) for name in plan.trace.frame["job_id"].unique()}
    known |= {job.id for each in several for job, *_ in running_jobs(plan.policy, each, 0)}
    for name in jobs:
        if name not in known:
            raise OptionError(f"--trace-policy: no job {name!r}", hint=close_to(name, known))
