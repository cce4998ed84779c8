"""The twins of finished runs: those that are kept, and requests for those that are not.

A run's twins are beside it (`harness.runs.plan.TWINS`), in a folder that is called as the run is: that name
covers the code and all settings, so what lies there under the text of a twin is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import InputError, RunError
from harness.plugins import Plugins
from harness.runs.plan import TWINS
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.side_by_side import Watch, carry_out, runs_of
from harness.trace.calibration import Calibration
from harness.trace.shake import Shake, Twin


class Twins:
    """The twins of some runs, as far as they are there, and what is to be replayed for the others.

    Args:
        runs: the runs.
        shake: which twins.
        plugins: gives them where something is to be replayed; called once at most.

    Attributes:
        requests: for twins that are not there, twin by twin, so that what is there of all runs grows alike.

    Raises:
        RunError: twins are missing of a run that cannot be replayed; says why, and what to do.
        OptionError: priorities are to be shaken that no share gives.
    """

    def __init__(self, runs: Sequence[Run], shake: Shake, plugins: Callable[[], Plugins]) -> None:
        self._twins = shake.twins
        self._there: list[dict[Twin, Run]] = [_there(run, self._twins) for run in runs]
        self._missing = [
            (place, twin)
            for twin in self._twins
            for place, found in enumerate(self._there)
            if twin not in found
        ]
        self._plugins = plugins() if self._missing else None
        of_runs = {
            place: request_of(runs[place], self._plugins)
            for place, _ in self._missing
            if self._plugins is not None
        }
        for request in of_runs.values():
            self._twins[0].calibration(request.calibration)  # whether there is what is to be shaken
        self.requests = [
            replace(of_runs[place], twin=twin, keep="metrics", output=runs[place].path.parent.parent)
            for place, twin in self._missing
        ]

    def stored(self, place: int) -> int:
        """How many twins of a run are there."""
        return len(self._there[place])

    def replayed(
        self,
        *,
        workers: int | None = None,
        watch: Watch | None = None,
        over: Callable[[int], None] | None = None,
        command: str | None = None,
    ) -> list[list[Run]]:
        """The twins of each run; those that are not there are replayed side by side, and kept.

        Args:
            workers: how many at once; see `harness.replay_all`.
            watch: is told now and then how far each of `requests` has come.
            over: is told the number of each that is over.
            command: the command line, for their provenance.

        Raises:
            ReplayError: some failed; the others are kept.
        """
        if self.requests:
            assert self._plugins is not None
            outcomes = {}
            asked = carry_out(self.requests, self._plugins, workers=workers, watch=watch, command=command)
            with closing(asked) as news:
                for number, outcome in news:
                    outcomes[number] = outcome
                    if over is not None:
                        over(number)
            made = runs_of(self.requests, outcomes)
            for (place, twin), run in zip(self._missing, made, strict=True):
                self._there[place][twin] = run
        return [[found[twin] for twin in self._twins] for found in self._there]


def _there(run: Run, twins: Sequence[Twin]) -> dict[Twin, Run]:
    """Those of a run's twins that are kept, whole, and measured as the run was."""
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
        except RunError:  # what is damaged is replayed
            continue
        called = twin.info["settings"].get("twin")
        if called in wanted and twin.info.get("measured_by") == measured:
            found[wanted[called]] = twin
    return found


def _codes(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (info[part].get("code", {}) for part in ("policy", "harness") if part in info)


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def request_of(run: Run, plugins: Plugins) -> Request:
    """What a run is the answer to: what was asked for, or the same as far as the run says it.

    Raises:
        RunError: asked for again it would be another run, or none; says why.
    """
    if run.request is not None:
        return run.request
    try:
        request = _told(run)
        found = request.plan(plugins).run_name
    except InputError as error:
        raise _cannot(run, error.message) from error
    if found != run.info["run"]:
        raise _cannot(run, "the code, the trace, the manifests or what was done to them is not the same now")
    return request


def _told(run: Run) -> Request:
    """The request that a run tells of."""
    info, settings = run.info, run.info["settings"]
    provenance = info["provenance"]
    return Request(
        provenance["trace"],
        plugin=info["policy"]["name"],
        cluster=provenance["cluster"] or None if not info["cluster"]["assumed"] else None,
        options=info["policy"]["options"],
        label=info["label"],
        on_preemption=settings["on_preemption"],
        grace_period=settings["grace_period_us"],
        startup=settings.get("startup_us", 0),
        until=settings["until_us"],
        scale_arrivals=settings["scale_arrivals"],
        calibration=Calibration.parse(**settings.get("calibration", {})),
        output=run.path.parent.parent,
        at_start=settings.get("at_start"),
    )


def _cannot(run: Run, why: str) -> RunError:
    command = run.info["provenance"].get("command")
    how = f"{command} --shake N" if command else "harness.compare(runs, shake=N) where it was replayed"
    return RunError(
        f"{run.path} has no twins, and cannot be replayed: {why}", hint=f"replay it with them: {how}"
    )
