"""Tries changes by simulating the moment again. Changes that are known not to help the job are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from harness.studies.simulation.answer import VICTIMS, Answer
from harness.studies.simulation.differences import OF_THE_CLUSTER, with_pod_sets, with_priority

if TYPE_CHECKING:
    from harness.cluster.kinds.workloads import Workload
    from harness.cluster.model import ClusterQueue
    from harness.studies.simulation.instant import Instant
    from harness.studies.simulation.moment import Difference, Moment

_ONE_BY_ONE = 8
RANK_STARTS, _PREEMPTS, _WAITS = range(3)


class Outcome(NamedTuple):
    """The outcome of a change.

    Attributes:
        rank: 0 if the job starts, 1 if other jobs are preempted for it, 2 if the job waits as before.
        victims: the ids of the preempted jobs.
    """

    rank: int
    victims: tuple[str, ...]


class Plays:
    """Simulates the present moment once for each tried change, and reads the outcome for every job from it.

    `asked` has the scheduler's ids for each job of the question.

    Attributes:
        steps: the smallest useful step for each resource, as far as it is known.
    """

    def __init__(self, moment: Moment, asked: Sequence[tuple[str, ...]]) -> None:
        self.moment = moment
        self.steps: dict[str, int] = {}
        self._asked = asked
        self._known: list[tuple[Difference, dict[tuple[str, ...], Outcome]]] = []

    def outcome(self, names: tuple[str, ...], difference: Difference) -> Outcome:
        """Returns the outcome of a change for one job.

        If the policy can tell beforehand that the job does not start, the instant is not simulated.
        """
        shared = difference.func in OF_THE_CLUSTER
        known = self._known_of(difference) if shared else {}
        if names not in known:
            known.update(self._turns(names, difference, shared=shared))
        if names not in known:
            asked = self._asked if shared else [names]
            known.update(self.moment.asked(partial(_outcomes, asked), difference))
        return known[names]

    def _known_of(self, difference: Difference) -> dict[tuple[str, ...], Outcome]:
        for other, outcomes in self._known:
            if other.func is difference.func and other.keywords == difference.keywords:
                return outcomes
        self._known.append((difference, {}))
        return self._known[-1][1]

    def _turns(
        self, names: tuple[str, ...], difference: Difference, *, shared: bool
    ) -> Iterator[tuple[tuple[str, ...], Outcome]]:
        """Yields the outcomes for jobs that are not admitted, or that fit on no nodes.

        If the change is shared, all jobs of the same ClusterQueue have an outcome.
        """
        queue = self.queue_of(names[0])
        if queue is None:
            return
        alike = [each for each in self._asked if self.queue_of(each[0]) is queue] if shared else [names]
        turns = self.moment.turns([each[0] for each in alike], difference) or ()
        for each, (admitted, victims) in zip(alike, turns, strict=bool(turns)):
            if not admitted or self.moment.lacks_room(each, difference):
                yield each, Outcome(_PREEMPTS if victims else _WAITS, victims)

    def queue_of(self, name: str) -> ClusterQueue | None:
        """Returns the ClusterQueue of a job, or None if the job consists only of Pods."""
        workload = self.workloads.get(name)
        cluster = self.moment.cluster
        return None if workload is None else cluster.cluster_queue_of(workload.namespace, workload.queue)

    @cached_property
    def workloads(self) -> Mapping[str, Workload]:
        """All Workloads by namespace and name."""
        return {each.key: each for each in self.moment.cluster.workloads}

    @cached_property
    def lowest(self) -> Mapping[str, int]:
        """Maps each ClusterQueue's name to the lowest priority of the Workloads that hold its quota."""
        found: dict[str, int] = {}
        for each in self.moment.cluster.workloads:
            if each.admission is not None:
                name, priority = each.admission.cluster_queue, each.priority + min(0, each.boost)
                found[name] = min(priority, found.get(name, priority))
        return found


def _outcomes(asked: Sequence[tuple[str, ...]], instant: Instant) -> dict[tuple[str, ...], Outcome]:
    found = {}
    for names in asked:
        victims = tuple(instant.victims(names))
        rank = RANK_STARTS if instant.starts(names) else _PREEMPTS if victims else _WAITS
        found[names] = Outcome(rank, victims)
    return found


class Trials:
    """Tries changes for one job.

    Args:
        plays: the simulations, which all jobs of the question share.
        answer: the answer for the job without any change.

    Attributes:
        workload, queue: the Workload and the ClusterQueue of the job; None if the job consists only of Pods.
        count: the number of changes that were tried.
        rank: the rank of the job's outcome without any change; see `Outcome`.
    """

    def __init__(self, plays: Plays, answer: Answer) -> None:
        self.plays = plays
        self.moment = plays.moment
        self.answer = answer
        self.workload = plays.workloads.get(answer.ids[0])
        self.queue = plays.queue_of(answer.ids[0])
        self.count = 0
        self.rank = _PREEMPTS if answer.waits_for == VICTIMS and answer.victims else _WAITS

    def outcome(self, difference: Difference) -> Outcome:
        """Returns the outcome of a change.

        The change is not simulated if the scheduler would not try the job. If the job preempts others even
        without the change, only a start would be better. In that case, the change is not simulated either if
        the job fits on no nodes.
        """
        self.count += 1
        if self._is_untried(difference):
            return Outcome(_WAITS, ())
        if self.rank == _PREEMPTS and self._lacks_room(difference):
            return Outcome(self.rank, ())
        return self.plays.outcome(self.answer.ids, difference)

    def starts(self, difference: Difference) -> bool:
        """Returns True if the job starts now with this change."""
        self.count += 1
        if self._is_untried(difference) or self._lacks_room(difference):
            return False
        return self.plays.outcome(self.answer.ids, difference).rank == RANK_STARTS

    def _is_untried(self, difference: Difference) -> bool:
        """Returns True if other jobs stay ahead of the job, so that its requests do not matter."""
        most = self.answer.untried_up_to
        if most is None or difference.func not in (with_pod_sets, with_priority):
            return False
        return bool(difference.keywords.get("value", most) <= most)

    def _lacks_room(self, difference: Difference) -> bool:
        return self.moment.lacks_room(self.answer.ids, difference)

    def least(self, most: int, difference: Callable[[int], Difference], *, sure: bool = False) -> int | None:
        """Returns the smallest number up to `most` with which the job starts, or None if `most` is too small.

        A larger number can be worse, because other jobs may start first. The search therefore tries the
        smallest numbers one by one. Then it doubles the number, and finally it bisects the interval.

        `difference` returns the change for a number. `sure` says whether the job is known to start with
        `most`.
        """
        if most < 1 or not (sure or self.starts(difference(most))):
            return None
        low, high = 0, min(1, most)
        while high < most and not self.starts(difference(high)):
            low, high = high, min(most, high + 1 if high < _ONE_BY_ONE else 2 * high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts(difference(middle)):
                high = middle
            else:
                low = middle
        return high
