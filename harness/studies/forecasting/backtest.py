"""How often forecasts of the past held: made at moments of a record, of what was known then.

At each moment the record is written as the objects that an API server would have shown, and read as any dump.
The history is what had been submitted and had ended by then. What is judged is when those that waited next
started, by the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.errors import HarnessError, InputError, ReplayError
from harness.base.units import SECOND, format_duration
from harness.cluster.changes.remake import remade
from harness.cluster.yaml.documents import Document
from harness.runs.estimates.history import History
from harness.runs.estimates.present import Said, now_of
from harness.studies.executor import crew_for
from harness.studies.forecasting.api_objects import WORK, objects_of
from harness.studies.forecasting.forecast import SHARES
from harness.studies.forecasting.futures import Settings, World
from harness.studies.forecasting.inputs import world_of
from harness.studies.forecasting.items import PROCESS
from harness.studies.forecasting.quantiles import quantile
from harness.studies.forecasting.record import Record
from harness.trace.generate.uniform import uniform

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


_MOST_DRAWN = 20
"""This many times as many moments as are wanted are looked at for some at which something waits."""


class Judged(NamedTuple):
    """A workload that waited at a moment, as it was forecast and as it came.

    Attributes:
        moment: when it was forecast, microseconds on the history's clock.
        job: its name in the record.
        starts: of each future when it started, microseconds from then; -1 for not by the horizon.
        truth: when it started by the record; None for never as far as that says.
    """

    moment: int
    job: str
    starts: tuple[int, ...]
    truth: int | None


@dataclass(frozen=True)
class Backtest:
    """Forecasts at moments of a record.

    Attributes:
        cluster: whose work is left out.
        history: the record's jobs.
        record: what happened to them.
        settings: of all futures.
        futures: how many are played at each moment.
    """

    cluster: Cluster
    history: History
    record: Record
    settings: Settings
    futures: int

    def waits(self, moment: int) -> bool:
        """Whether anything waited at a moment."""
        return any(each.waits for each in self.record.there(moment))

    def world(self, moment: int) -> tuple[World, dict[int, int | None]] | None:
        """What was known at a moment, and by place when each that waited started; None where nothing did."""
        there = list(self.record.there(moment))
        starts = {name: start for each in there for name, start in each.starts.items()}
        said = {name: Said(each.job.user, each.job.requested) for each in there for name in each.starts}
        shown = [*self._without_work, *objects_of(each.shown for each in there)]
        cluster = remade(self.cluster, [Document("", each) for each in shown], self.cluster.source)
        now = now_of(cluster, self.settings.policy, moment, said)
        world, never = world_of(cluster, now, self.history, self.settings)
        waiting = [place for place, each in enumerate(now.present) if each.waits and place not in never]
        return (world, {place: starts[now.present[place].job.id] for place in waiting}) if waiting else None

    @cached_property
    def _without_work(self) -> list[Mapping[str, Any]]:
        """The manifests of the cluster but for its work."""
        return [each for each in self.cluster.manifests if each.get("kind") not in WORK]

    def judged(self, moment: int) -> list[Judged]:
        """What was forecast at a moment of each that waited then, and what came."""
        found = self.world(moment)
        if found is None:
            return []
        world, truth = found
        futures = [world.future(number) for number in range(self.futures)]
        waiting = [place for place, each in enumerate(world.now.present) if each.waits]
        return [
            Judged(
                moment,
                world.now.present[place].job.id,
                tuple(future.starts[number] for future in futures),
                truth[place],
            )
            for number, place in enumerate(waiting)
            if place in truth
        ]


# --- the verdict --------------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """How forecasts held.

    Attributes:
        starts: how many starts were forecast.
        moments: at how many moments.
        covered: the share of the starts between their p10 and their p90.
        by_moment: the mean over moments of that share: one at which hundreds wait counts once.
        before, after: the shares before the p10 and after the p90.
        width: the median of p90 less p10, microseconds; None where most p90 are later than the horizon.
        error: the median size of the p50's error, over starts where both are known, microseconds.
    """

    starts: int
    moments: int
    covered: float
    by_moment: float
    before: float
    after: float
    width: float | None
    error: float | None

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, times in seconds."""
        found = self._asdict()
        for name in ("width", "error"):
            time = found.pop(name)
            found[f"{name}_seconds"] = None if time is None else time / SECOND
        return found


def coverage(judged: Iterable[Judged], horizon: int) -> Coverage:
    """How forecasts held; what starts after the horizon counts as not started, in futures and in truth.

    Raises:
        InputError: nothing was forecast.
    """
    held: dict[int, list[bool]] = {}
    before = after = 0
    widths: list[float] = []
    errors: list[float] = []
    for each in judged:
        times = [None if start < 0 else start for start in each.starts]
        low, middle, high = (_endless(quantile(times, share)) for share in SHARES)
        came = math.inf if each.truth is None else each.truth - each.moment
        came = came if came <= horizon else math.inf
        held.setdefault(each.moment, []).append(low <= came <= high)
        before += came < low
        after += came > high
        widths.append(0.0 if low == high else high - low)
        if max(came, middle) < math.inf:
            errors.append(abs(came - middle))
    starts = sum(len(each) for each in held.values())
    if not starts:
        raise InputError("at no moment of the record did anything wait, so there is nothing to judge")
    width = median(widths)
    return Coverage(
        starts,
        len(held),
        sum(sum(each) for each in held.values()) / starts,
        sum(sum(each) / len(each) for each in held.values()) / len(held),
        before / starts,
        after / starts,
        None if math.isinf(width) else width,
        median(errors) if errors else None,
    )


def _endless(time: float | None) -> float:
    return math.inf if time is None else time


@dataclass(frozen=True)
class Judging:
    """The work of a backtest: moments of a record, see `harness.studies.items.Work`."""

    backtest: Backtest

    @property
    def memory(self) -> int:
        """About how many bytes a process takes that judges."""
        return PROCESS

    def begun(self) -> Callable[[int], list[Judged] | str]:
        """Be ready in this process; answers what judges a moment."""
        return self._judged

    def failed(self, item: int, why: str) -> list[Judged] | str:
        """What comes of a moment at which nobody could forecast."""
        return why

    def _judged(self, moment: int) -> list[Judged] | str:
        try:
            return self.backtest.judged(moment)
        except HarnessError as error:
            return error.message


def judged_at(
    backtest: Backtest, count: int, *, workers: int | None, executor: Executor | None = None
) -> list[Judged]:
    """Forecasts at moments drawn evenly from the second half of a record, at which something waited.

    Where some had not started when the record ended, they are moments whose horizon it covers. Of later ones
    nobody knows all starts, and the known ones are the early ones.

    Raises:
        InputError: there are no such moments.
        ReplayError: a forecast could not be made.
    """
    first, last = backtest.history.jobs[0].submit, backtest.history.jobs[-1].submit
    until, horizon = backtest.record.until, backtest.settings.horizon
    begin = (first + last) // 2
    if until is not None and (last := min(last, until - horizon)) <= begin:
        raise InputError(
            f"nothing can be judged with a horizon of {format_duration(horizon)}: jobs had not started when "
            f"the record ended, {format_duration(until - begin)} after its half, so nobody knows "
            "which starts were within the horizon",
            hint="give a smaller --horizon, or a record that goes on for longer",
        )
    drawn = (
        begin + int(uniform(backtest.settings.seed, number, "moment") * (last - begin))
        for number in range(_MOST_DRAWN * count)
    )
    moments = list(islice((moment for moment in drawn if backtest.waits(moment)), count))
    found: list[Judged] = []
    with (
        crew_for(Judging(backtest), len(moments), workers=workers, executor=executor) as (crew, _),
        closing(crew.make(moments)) as news,
    ):
        for judged in news:
            if isinstance(judged, str):
                raise ReplayError(f"a forecast could not be made: {judged}")
            found += judged
    return sorted(found)
