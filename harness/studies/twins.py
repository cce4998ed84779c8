"""Finds the stored twins of finished runs, and replays the missing ones.

A twin is a replay with the same inputs as its run, except for slightly shifted arrivals.

The twins of a run are next to the run (`harness.runs.plan.TWINS`), in a folder with the name of the run. The
name of a run depends on the code and on all settings. A subfolder that is named after a twin therefore
contains the result for that twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from harness.analysis.metrics.idle import has_causes
from harness.analysis.metrics.shared_window import Shared, measure_shared, shared_by
from harness.base.errors import RunError
from harness.plugins import Plugins
from harness.runs.plan import TWINS
from harness.runs.request import Request
from harness.runs.request_of_run import request_of
from harness.runs.run import IDLE, ISOLATED, Run
from harness.runs.side_by_side import Outcome, SideBySide, carry_out, runs_of
from harness.runs.store import with_windows
from harness.studies.idle_causes import Judging
from harness.studies.isolated import IsolatedTwin, JudgedTwin, is_measured, measured_as
from harness.trace.shake import Shake, Shaking, Twin


class Twins:
    """The stored twins of some runs, which are replays with slightly shifted arrivals.

    The object also has the requests for missing twins.

    If runs have equal arrivals, their twins with the same number also have equal arrivals, and are measured
    over windows that they share. The end of such a window is known only when all of these twins exist, so the
    tables of the twins are kept until then.

    Args:
        shake: the jitter and the number of twins.
        plugins: a function that returns the plugins. It is called at most once, and only if a twin must be
            replayed.
        shared: whether the runs have equal arrivals.
        isolated: whether to replay each quota of the twins alone as well, if this was possible for the run.
        idle: whether to determine why the jobs of twins waited, if this was possible for the run.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        shake: Shake,
        plugins: Callable[[], Plugins],
        *,
        shared: bool,
        isolated: bool = False,
        idle: bool = False,
    ) -> None:
        self._runs, self._shake, self._twins = runs, shake, shake.twins
        self._isolated = [isolated and is_measured(run) for run in runs]
        self._judged = [idle and has_causes(run) for run in runs]
        self._shared = shared and len(runs) > 1
        self._load = plugins
        self._plugins: Plugins | None = None
        self._made: set[tuple[int, Twin]] = set()
        self._there: list[dict[Twin, Run]] = [_there(run, self._twins) for run in runs]
        self._before: dict[tuple[int, Twin], Run] = {}
        self._of_runs: dict[int, Request] = {}
        self._next()

    @property
    def complete(self) -> bool:
        """Returns True if nothing needs to be replayed."""
        return not self._missing

    @cached_property
    def requests(self) -> list[Request]:
        """The next requests, ordered so that all runs get their twins at the same pace.

        Raises:
            RunError: a run lacks twins and can't be replayed. The message says why, and what to do.
            OptionError: priorities can't be shaken, because they are not drawn by a priority share.
        """
        if self._missing and self._plugins is None:
            self._plugins = self._load()
        for place, _ in self._missing:
            if place not in self._of_runs and self._plugins is not None:
                self._of_runs[place] = request_of(
                    self._runs[place], self._plugins, has=self._has(place), option=f"--shake {self._told}"
                )
                self._twins[0].calibration(self._of_runs[place].calibration)  # This call may raise an error.
        return [self._request(place, twin) for place, twin in self._missing]

    def _has(self, place: int) -> str:
        missing = sum(of == place for of, _ in self._missing)
        count = len(self._twins) - missing
        return f"has {count:,} of {len(self._twins):,} twins, and " if count else "has no twins, and "

    @property
    def _told(self) -> str:
        """The number of twins and the jitter, in the format of `--shake`."""
        shaking = self._shake.shaking
        return str(self._shake.count) if shaking == Shaking() else str(self._shake)

    def _request(self, place: int, twin: Twin) -> Request:
        request = replace(
            self._of_runs[place],
            twin=twin,
            keep="all" if self._shared else "metrics",
            output=self._runs[place].path.parent.parent,
        )
        before = self._there[place].get(twin)  # The twin is replayed again for another window.
        judged = self._judged[place] or (before is not None and IDLE in before.info)
        if self._isolated[place]:
            return JudgedTwin.of(request) if judged else IsolatedTwin.of(request)
        return Judging.of(request) if judged else request

    def replay(self, **how: Unpack[SideBySide]) -> None:
        """Carries out `requests` in parallel and stores the results, after which more requests may follow.

        If only the metrics of a twin are stored, they cover the windows of earlier comparisons. If a new
        comparison has another window, the twin must be replayed again.

        Raises:
            ReplayError: some replays failed. The other replays are kept.
        """
        requests, over = self.requests, how.get("over")
        assert self._plugins is not None

        def settled(number: int, outcome: Outcome) -> None:
            place, twin = self._missing[number]
            if isinstance(outcome, Run):
                made = outcome
                if twin in self._there[place]:
                    self._before[place, twin] = self._there[place][twin]
                    made = measured_as(outcome, self._before[place, twin])
                self._there[place][twin] = made
                self._made.add((place, twin))
                self._settle(twin)
            if over is not None:
                over(number, outcome)

        how["over"] = settled
        runs_of(requests, carry_out(requests, self._plugins, **how))
        del self.requests
        self._next()

    def replayed(self, *, workers: int | None = None) -> list[list[Run]]:
        """Returns the twins of each run. Missing twins are replayed first.

        Raises:
            ReplayError: some replays failed. The other replays are kept.
        """
        while not self.complete:
            self.replay(workers=workers)
        return self.found

    @property
    def found(self) -> list[list[Run]]:
        """The twins of each run, which must have been replayed."""
        return [[found[twin] for twin in self._twins] for found in self._there]

    def _next(self) -> None:
        self._missing: list[tuple[int, Twin]] = []
        for twin in self._twins:
            self._settle(twin)
            self._missing += [(place, twin) for place in range(len(self._runs)) if self._lacks(place, twin)]

    def _lacks(self, place: int, twin: Twin) -> bool:
        run, shared = self._there[place].get(twin), self._shares(twin)
        if run is None or (self._isolated[place] and ISOLATED not in run.info):
            return True
        if self._judged[place] and IDLE not in run.info:
            return True
        return shared is not None and _is_needed(run, shared[place])

    def _shares(self, twin: Twin) -> list[Shared] | None:
        """Returns the windows and jobs of the twins with one number, or None while some are missing."""
        siblings = [found.get(twin) for found in self._there]
        there = [run for run in siblings if run is not None]
        return shared_by(there) if self._shared and len(there) == len(siblings) else None

    def _settle(self, twin: Twin) -> None:
        """Measures the twins with one number over their shared windows, and then keeps only their metrics."""
        shares = self._shares(twin)
        if shares is None:
            return
        for place, (found, shared) in enumerate(zip(self._there, shares, strict=True)):
            run, made = found[twin], (place, twin) in self._made
            needed = _is_needed(run, shared)
            if run.kept != "all" or not (made or needed):
                continue
            before = self._before.pop((place, twin), run).windows
            windows = {**before, **run.windows}
            if needed:
                windows[shared.key] = list(measure_shared(run, shared))
            found[twin] = with_windows(run, windows, "metrics" if made else "all")


def _is_needed(run: Run, shared: Shared) -> bool:
    return not shared.is_own(run) and shared.key not in run.windows


def kept_shake(runs: Sequence[Run]) -> Shake | None:
    """Returns the jitter with the most twins that are stored for all runs, and the number of these twins.

    Returns None if no jitter has at least two such twins.
    """
    of_runs = [set(map(Twin.parse, _called(run))) for run in runs]
    both = set.intersection(*of_runs) if of_runs else set()
    found = []
    for shaking in sorted({twin.shaking for twin in both}, key=str):
        count = 0
        while Twin(count + 1, shaking) in both:
            count += 1
        found.append(Shake(count, shaking))
    most = max(found, key=lambda shake: shake.count, default=None)
    return most if most is not None and most.count > 1 else None


def _called(run: Run) -> Iterator[str]:
    for folder in _folders(run.path.parent / TWINS / run.path.name):
        with suppress(RunError):  # A damaged twin counts as missing.
            yield Run.open(folder).info["settings"]["twin"]


def _there(run: Run, twins: Sequence[Twin]) -> dict[Twin, Run]:
    """Returns the stored twins of a run that are complete and measured in the same way as the run."""
    measured = run.info.get("measured_by", {})
    forced = run.request is not None and run.request.force
    if forced or None in measured.values() or any("unknown" in code for code in _codes(run.info)):
        return {}
    wanted = {str(twin): twin for twin in twins}
    found = {}
    for folder in _folders(run.path.parent / TWINS / run.path.name):
        try:
            twin = Run.open(folder, stored=True)
            twin.check()
        except RunError:  # A damaged twin is replayed again.
            continue
        called = twin.info["settings"].get("twin")
        if called in wanted and twin.info.get("measured_by") == measured:
            found[wanted[called]] = twin
    return found


def _codes(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (info[part].get("code", {}) for part in ("policy", "harness") if part in info)


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
