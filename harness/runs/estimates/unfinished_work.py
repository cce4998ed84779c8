"""Determines how long unfinished work runs in a replay, because the manifests do not contain run times.

With `draw`, a run time is drawn as in a forecast (`harness.runs.estimates.distributions`). With `limit`, it
is the limit of the work. With a duration such as `2h`, it is that duration. With `drop`, the work is left
out.

Work whose run time is unknown keeps its resources for the whole replay. In that case, the waiting times of
other jobs and the losses are meaningless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from harness.base.errors import TraceError
from harness.base.units import parse_duration
from harness.cluster.dates import latest_of
from harness.cluster.model import Cluster, frozen
from harness.policy import ENDLESS, Arrival
from harness.runs.at_start import AtStart, counted
from harness.runs.cache import Lasting
from harness.runs.estimates.distributions import RunTimes
from harness.runs.estimates.draws import draws_of
from harness.runs.estimates.ended_jobs import ended_jobs
from harness.runs.estimates.history import run_times_of
from harness.runs.estimates.present import Present, is_lasting, present_of
from harness.runs.estimates.run_times import Material, RunTimesOfWork
from harness.runs.questions import running_jobs
from harness.runs.settings import DRAW, DROP, LIMIT

if TYPE_CHECKING:
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.kinds.workloads import Workload
    from harness.trace.shake import Twin

_histories: Lasting[tuple[RunTimes, str]] = Lasting()
_latest: Lasting[int | None] = Lasting()


class _Known(NamedTuple):
    """The known run times in microseconds, by `namespace/name`.

    `how` says where they come from, and `why` says why others are unknown. Both are the end of a sentence.
    """

    times: Mapping[str, int]
    how: str
    why: str = ""


@dataclass(frozen=True)
class Work:
    """The unfinished work in the manifests, and the inputs from which its run times are determined."""

    begun: AtStart
    of: Material

    def run_times(self, choice: str, seed: int, twin: Twin | None) -> RunTimesOfWork:
        """Determine how long the work runs.

        A twin is a version of the trace with slightly shifted arrivals. Each twin has its own draws.
        """
        arrivals = self._endless()
        latest = _latest.answer(self.of.trace, self.of.cluster, lambda: latest_of(self.of.cluster))
        known = (latest, self.begun.cluster.as_of)
        time = max((each for each in known if each is not None), default=None)
        present = present_of((job for job, *_ in arrivals), self.of.cluster, time)
        if all(each.lasting for each in present):
            return RunTimesOfWork()
        if choice == DROP:
            out = [each for each in self._work() if not is_lasting(each, self.of.cluster)]
            return RunTimesOfWork(choice, seed, said=f"unfinished {choice}: left out: {counted(out)}")
        found = self._known(choice, seed, twin, [each for each in present if not each.lasting])
        done = {job.id: _done(arrival) for arrival in arrivals for job in arrival[:1]}
        times = {name: max(time, done[name] + 1) for name, time in found.times.items()}
        over = sum(time <= done[name] for name, time in found.times.items())
        lacking = [each.job.id for each in present if not each.lasting and each.job.id not in times]
        lasting = [each.job.id for each in present if each.lasting]
        unknown = f"the run times of {self._counted(lacking)} of the manifests are not known: {found.why}"
        said = [
            f"run times of {self._counted(times)}{found.how}" if times else "",
            f"{over:,} of these end at once, because they have already run longer than that" if over else "",
            f"{unknown}; they keep their resources for the whole replay" if lacking else "",
            f"some never end, such as those of DaemonSets: {self._counted(lasting)}" if lasting else "",
        ]
        return RunTimesOfWork(
            choice,
            seed,
            frozen(times),
            f"unfinished {choice}: {'; '.join(filter(None, said))}",
            unknown if lacking else "",
        )

    @property
    def dropped(self) -> AtStart:
        """Returns the work that still takes part if all work that ends on its own is omitted."""
        later = None if self.begun.later is None else _without_what_ends(self.begun.later)
        found = replace(self.begun, cluster=_without_what_ends(self.begun.cluster), later=later)
        return found if later is not None and later.pods else replace(found, later=None)

    @property
    def _several(self) -> list[Cluster]:
        return [each for each in (self.begun.cluster, self.begun.later) if each is not None]

    def _work(self) -> Iterator[Workload | Pod]:
        for each in self._several:
            yield from (workload for workload in each.workloads if workload.takes_part)
            yield from each.pods

    def _endless(self) -> list[Arrival]:
        named = {each.key for each in self._work()}
        several = (each for one in self._several for each in running_jobs(self.of.policy, one, 0))
        return [each for each in several if each[1] == ENDLESS and each[0].id in named]

    def _known(self, choice: str, seed: int, twin: Twin | None, present: Sequence[Present]) -> _Known:
        if choice == LIMIT:
            limits = {each.job.id: each.limit for each in present if each.limit is not None}
            why = "they have neither maximumExecutionTimeSeconds nor activeDeadlineSeconds"
            return _Known(limits, " are their limits", why)
        if choice != DRAW:
            return _Known({each.job.id: parse_duration(choice) for each in present}, "")
        run_times, why = self._history()
        found = zip(present, draws_of(present, run_times), strict=True)
        drawn = {each.job.id: draws for each, draws in found if draws is not None}
        sources = Counter(draws.source for draws in drawn.values()).most_common()
        told = ", ".join(f"{source} ({count:,})" for source, count in sources)
        times = {name: draws.drawn(seed, _future(twin), name) for name, draws in drawn.items()}
        return _Known(times, f" are drawn from {told}; seed {seed}", why)

    def _history(self) -> tuple[RunTimes, str]:
        """Returns the run times of ended jobs in the trace and in the manifests.

        The function also returns a text that says why there may be no run times to draw from.
        """

        def find() -> tuple[RunTimes, str]:
            traces, none = [self.of.trace], "no job of the trace has ended"
            try:
                traces.append(ended_jobs(self.of.cluster, self.of.plugins))
            except TraceError as error:
                none += f"; {error.source}: {error.faults[0]}"
            found = run_times_of(traces, self.of.cluster)
            return found, "every job that has ended had a run time of 0" if found.count else none

        return _histories.answer(self.of.trace, self.of.cluster, find)

    def _counted(self, names: Iterable[str]) -> str:
        known: dict[str, Workload | Pod] = {each.key: each for each in self.of.cluster.pods}
        known.update((each.key, each) for each in self.of.cluster.workloads)
        return counted([known[name] for name in names])


def _future(twin: Twin | None) -> int | str:
    """Returns the future from which a replay takes run times.

    It is the number of the replay's twin, followed by the seed if the seed is not 0, or 0 without a twin.
    """
    if twin is None:
        return 0
    return f"{twin.number}@{twin.shaking.seed}" if twin.shaking.seed else twin.number


def _done(arrival: Arrival) -> int:
    """Returns how long work had already run when it was taken over, in microseconds."""
    return arrival[4] if len(arrival) == 5 else 0


def _without_what_ends(cluster: Cluster) -> Cluster:
    workloads = tuple(each for each in cluster.workloads if is_lasting(each, cluster))
    return replace(cluster, workloads=workloads, pods=tuple(pod for pod in cluster.pods if pod.lasting))
