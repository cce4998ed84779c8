"""Models kube-scheduler's own gangs. The pods of a gang wait until enough of them exist and have a place.

The model is an approximation, because its rules come from the upstream documentation of Kubernetes v1.35, and
no recording confirms them.

Each rule names its source in parentheses. The sources are pages below kubernetes.io/docs/concepts/, as of
v1.35: scheduling-eviction/gang-scheduling/, workloads/pods/workload-reference/ and
workloads/workload-api/policies/. KEP-4671 is www.kubernetes.dev/resources/keps/4671/. docs/kube-scheduler.md
lists the rules that none of these pages contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

from harness.base.units import INT64_MAX, MINUTE
from harness.cluster.kinds.scheduling_groups import GroupKey, GroupReference, SchedulingGroup
from harness.models.kube.pod import PodInfo, Refusal
from harness.policy import Job, Wake

TIMEOUT = 5 * MINUTE
"""How long pods with a place wait for the other pods of their gang, which is fixed (gang-scheduling)."""


_NEVER = INT64_MAX  # the `minCount` of a group that does not exist

_Key: TypeAlias = int | tuple[str, GroupReference]
"""The index of a job, or the namespace and group that its pods refer to."""


@final
class GangRefusal:
    """The reason why the pods of a gang are not bound, as it is recorded.

    Args:
        message: a sentence without its full stop.
        other: the reason why one of the pods has no place, if it is known.
    """

    __slots__ = ("_message", "_other")

    def __init__(self, message: str, other: Refusal | None = None) -> None:
        self._message = message
        self._other = other

    def detail(self) -> dict[str, Any]:
        """Returns the message and the resources that nodes lack."""
        return {"message": self._message, **({} if self._other is None else self._other.detail())}


@final
class PermitGang:
    """The pods of one gang.

    A pod has a place if the scheduler has reserved resources on a node for it, or has bound it.

    Attributes:
        key: identifies the gang.
        least: the `minCount` of the gang.
        name: the name of the group in messages, or "" for the gang of one job.
        held: the pods that the scheduler doesn't try until more pods of the gang exist.
        unplaced: the pods that the scheduler tries, but that have no place.
        waiting: the pods that have a place and wait for other pods, in the order in which they got their
            places.
        bound: how many pods are bound.
        deadline: when the waiting pods give up, or None if no pods are waiting.
        gave_up_at: the value of `PermitGangs.happened` when the gang last gave up, or None if it never did.
    """

    __slots__ = ("bound", "deadline", "gave_up_at", "held", "key", "least", "name", "unplaced", "waiting")

    def __init__(self, key: _Key, least: int, name: str = "") -> None:
        self.key = key
        self.least = least
        self.name = name
        self.held: dict[PodInfo, None] = {}
        self.unplaced: dict[PodInfo, None] = {}
        self.waiting: dict[PodInfo, None] = {}
        self.bound = 0
        self.deadline: int | None = None
        self.gave_up_at: int | None = None

    @property
    def placed(self) -> int:
        """The number of pods that have a place, including bound pods."""
        return self.bound + len(self.waiting)

    @property
    def existing(self) -> int:
        """The number of pods that exist."""
        return self.placed + len(self.unplaced) + len(self.held)

    def waits(self) -> str:
        """Returns a sentence, without a full stop, about the pods or the group for which the gang waits."""
        if self.least == _NEVER:
            return f"{self.name} does not exist, and the pods that refer to it wait for it"
        if self.held:
            return self.of_its_pods(self.existing, "arrived; the gang waits for the others")
        return self.of_its_pods(self.placed, "got a place; the gang waits for the others")

    def of_its_pods(self, count: int, what: str) -> str:
        """Returns a sentence such as `PodGroup ns/a: 3 of the 8 required pods got a place`.

        Args:
            count: the number of pods.
            what: the end of the sentence, such as `got a place`.
        """
        sentence = f"{count:,} of the {self.least:,} required pods {what}"
        return f"{self.name}: {sentence}" if self.name else sentence


@final
class PermitGangs:
    """Decides which pods of gangs are tried, which pods wait with a place, and for how long.

    A gang consists of the pods of any jobs that refer to the same group, if its policy is `gang`
    (workload-reference). A job in the trace is also a gang if it makes progress only as a whole and refers to
    no group. Its `minCount` is `min_pods`, which defaults to the number of its pods. Pods of a group with the
    policy `basic` are scheduled one by one (workload-api/policies).

    Args:
        groups: the groups that exist.

    Attributes:
        happened: how many pods have arrived, left, or been bound together with others.
    """

    def __init__(self, groups: Mapping[GroupKey, SchedulingGroup]) -> None:
        self.happened = 0
        self._groups = groups
        self._gangs: dict[_Key, PermitGang] = {}
        self._waiting: dict[PermitGang, None] = {}  # gangs with waiting pods, by deadline
        self._untold: dict[PermitGang, None] = {}  # gangs whose reason for waiting must be reported
        self._woken: Wake | None = None

    def of(self, pod: PodInfo) -> PermitGang | None:
        """Returns the gang of a pod, or None if it has none.

        If a pod refers to a missing group, it waits forever, because no group is created during a replay
        (workload-reference).
        """
        job, group = pod.job, pod.group
        if job is None or (group is None and not job.gang):
            return None
        key: _Key = job.index if group is None else (job.namespace, group)
        gang = self._gangs.get(key)
        if gang is not None:
            return gang
        if group is None:
            gang = PermitGang(key, sum(pod_set.min_count for pod_set in job.pod_sets))
        else:
            found = self._groups.get(group.key(job.namespace))
            if found is not None and found.min_count is None:
                return None
            least = found.min_count if found is not None and found.min_count is not None else _NEVER
            gang = PermitGang(key, least, group.text(job.namespace))
        self._gangs[key] = gang
        return gang

    def arrive(self, pod: PodInfo) -> Sequence[PodInfo]:
        """Adds a pod that arrives, and returns the pods that the scheduler tries from now on.

        The pods of a gang are held back until at least `minCount` of them exist (gang-scheduling,
        PreEnqueue).
        """
        self.happened += 1
        gang = self.of(pod)
        if gang is None:
            return (pod,)
        gang.held[pod] = None
        if gang.existing < gang.least:
            self._untold[gang] = None
            return ()
        tried = tuple(gang.held)
        gang.unplaced |= gang.held
        gang.held.clear()
        return tried

    def arrive_bound(self, pod: PodInfo) -> None:
        """Adds a pod that is already running."""
        gang = self.of(pod)
        if gang is not None:
            gang.bound += 1

    def place(self, gang: PermitGang, pod: PodInfo, now: int) -> Sequence[PodInfo]:
        """Assigns a place to a pod, and returns the pods that are bound as a result.

        Pods wait with their places until at least `minCount` pods of the gang have a place. All of these pods
        are then bound (gang-scheduling, WaitOnPermit). Later pods are bound as soon as they have a place,
        because `minCount` is a minimum (KEP-4671).
        """
        del gang.unplaced[pod]
        gang.waiting[pod] = None
        if gang.placed < gang.least:
            if gang.deadline is None:
                gang.deadline = now + TIMEOUT
                self._waiting[gang] = None
                if gang.gave_up_at is None:
                    self._untold[gang] = None
            return ()
        bound = tuple(gang.waiting)
        self._wait_no_more(gang)
        gang.bound += len(bound)
        self.happened += len(bound)
        return bound

    def is_waiting(self, pod: PodInfo) -> bool:
        """Returns True if a pod has a place but is not bound."""
        gang = self.of(pod)
        return gang is not None and pod in gang.waiting

    def lose_place(self, pod: PodInfo) -> None:
        """Takes away the place of a waiting pod, because another pod needs the place."""
        gang = self.of(pod)
        assert gang is not None, "a pod waited for a gang but belongs to no gang"
        del gang.waiting[pod]
        gang.unplaced[pod] = None
        if not gang.waiting:
            self._wait_no_more(gang)

    def leave(self, pod: PodInfo) -> None:
        """Removes a pod that is gone."""
        self.happened += 1
        gang = self.of(pod)
        if gang is None:
            return
        if pod in gang.waiting:
            self.lose_place(pod)
        if pod in gang.unplaced or pod in gang.held:
            gang.unplaced.pop(pod, None)
            gang.held.pop(pod, None)
        else:
            gang.bound -= 1
        if not gang.existing:
            del self._gangs[gang.key]

    def news(self) -> Iterator[tuple[PodInfo, GangRefusal]]:
        """Yields pods of gangs that began to wait since the last call, each with the reason.

        If a gang has pods of several jobs, one pod of each job is yielded.
        """
        for gang in self._untold:
            pods: dict[Job | None, PodInfo] = {}
            for pod in (*gang.held, *gang.waiting):
                pods.setdefault(pod.job, pod)
            lacks = next((pod.peers.refusal for pod in gang.unplaced), None)
            why = GangRefusal(gang.waits(), lacks)
            for pod in pods.values():
                yield pod, why
        self._untold.clear()

    def late(self, now: int) -> PermitGang | None:
        """Returns the next gang whose pods have waited too long for other pods, or None if there is none."""
        gang = next(iter(self._waiting), None)
        return gang if gang is not None and gang.deadline is not None and gang.deadline <= now else None

    def give_up(self, gang: PermitGang) -> Sequence[PodInfo]:
        """Takes away the places of a gang's waiting pods, and returns the pods.

        None of these pods runs (gang-scheduling).
        """
        pods = tuple(gang.waiting)
        gang.unplaced |= gang.waiting
        gang.gave_up_at = self.happened
        self._wait_no_more(gang)
        return pods

    def next_wake(self) -> Wake | None:
        """Returns a wake-up for the time when the next gang gives up, unless it was already returned.

        If a gang gave up before and nothing has happened since then, the wake-up is idle: the replay ends if
        only idle wake-ups are left. Otherwise, gangs that are too large for the free resources would take
        each other's places forever.
        """
        gang = next(iter(self._waiting), None)
        if gang is None or gang.deadline is None:
            return None
        wake, last = Wake(gang.deadline, idle=gang.gave_up_at == self.happened), self._woken
        if last is not None and (last.at, last.idle) == (wake.at, wake.idle):
            return None
        self._woken = wake
        return wake

    def holding(self) -> list[PodInfo]:
        """Returns the pods that have a place but are not bound."""
        return [pod for gang in self._waiting for pod in gang.waiting]

    def standing(self, now: int) -> tuple[object, ...]:
        """Returns the state of gangs with waiting pods. Times are relative to now. See `Standing`."""
        woken = self._woken
        return (
            self.happened,
            tuple(self._waiting),
            None if woken is None else (max(woken.at - now, 0), woken.idle),
            *[
                (
                    gang,
                    tuple(gang.unplaced),
                    tuple([(pod, pod.node) for pod in gang.waiting]),
                    None if gang.deadline is None else gang.deadline - now,
                    gang.gave_up_at,
                )
                for gang in self._gangs.values()
                if gang.unplaced or gang.waiting
            ],
        )

    def skip(self, span: int) -> None:
        """Delays all deadlines by this duration. The gangs don't change otherwise."""
        for gang in self._waiting:
            assert gang.deadline is not None, "a gang waits forever"
            gang.deadline += span
        if self._woken is not None:
            self._woken = Wake(self._woken.at + span, self._woken.idle)

    def _wait_no_more(self, gang: PermitGang) -> None:
        gang.waiting.clear()
        gang.deadline = None
        self._waiting.pop(gang, None)
