"""Models the versions of objects in lists and watches, and the runs that these versions show.

A list has one version of an object, and a watch has all versions. The versions show when a Workload was
admitted, evicted and admitted again, and the state of the Workload when it was deleted. Versions may be
duplicated and in any order, for example if they come from two watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.base.errors import Fault
from harness.base.json_text import mapping_of
from harness.base.units import SECOND
from harness.models.manifests import Fields, read_time
from harness_plugins.readers.kubernetes_objects import Run, final_phase, job_span, pod_span

DELETED, GONE = "DELETED", "GONE"
"""The events of a deletion: an object was deleted, or a later list of the watcher did not contain it."""

DELETION = "deleted"
"""The state of a run that ended because the object was deleted."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object.

    Attributes:
        kind: the API group and the kind.
        where: the place of the object in the file, for messages.
        event: the type of the watch event, or "" in a list.
        seen: when a recorder received the version, in microseconds since 1970, or None if this was not
            recorded.
    """

    kind: tuple[str, str]
    where: str
    manifest: Mapping[str, Any]
    event: str = ""
    seen: int | None = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the object, or an empty mapping if it is malformed."""
        return mapping_of(self.manifest, "metadata")

    @property
    def uid(self) -> str:
        """The UID of the object, which is the same in all versions, or "" if the object has none."""
        return str(self.metadata.get("uid") or "")

    @property
    def owners(self) -> Iterator[tuple[str, str]]:
        """Yields the kind and the UID of each owner."""
        owners = self.metadata.get("ownerReferences")
        for owner in owners if isinstance(owners, list) else []:
            if isinstance(owner, Mapping):
                yield str(owner.get("kind") or ""), str(owner.get("uid") or "")


class Phase(NamedTuple):
    """The facts about the runs of an object that one version shows.

    A time is None if the version does not have it.

    Attributes:
        begun: when the current or last run began.
        ready: when the pods became ready.
        stopped: when the object stopped, if it may run again.
        ended: when the object ended permanently.
        state: the reason why the object stopped or ended.
    """

    begun: int | None
    ready: int | None = None
    stopped: int | None = None
    ended: int | None = None
    state: str = ""


@dataclass
class Life:
    """An object, with the facts from all versions of it.

    Attributes:
        runs: all runs that the versions show. It is empty for an object of a list, which shows only the last
            run.
        deleted_at: the time of the deletion in microseconds since 1970, or None if the deletion was not
            observed.
        watched: True if any version came from a watch.
    """

    first: Version
    last: Version
    runs: list[Run] = field(default_factory=list)
    deleted: bool = False
    deleted_at: int | None = None
    watched: bool = False

    @property
    def cut(self) -> bool:
        """True if the object was deleted at an unknown time while it ran."""
        return self.deleted and bool(self.runs) and self.runs[-1].end is None


def lives_of(versions: Iterable[Version], faults: list[Fault]) -> list[Life]:
    """Groups versions by object, in the order in which the first version of each object appears.

    A version without a UID counts as a separate object. Malformed times are added to `faults`.
    """
    found: dict[object, list[Version]] = {}
    for number, version in enumerate(versions):
        found.setdefault((version.kind, version.uid) if version.uid else number, []).append(version)
    return [_life(each, faults) for each in found.values()]


def _life(versions: list[Version], faults: list[Fault]) -> Life:
    kept = _in_order(versions)
    gone = [version for version in versions if version.event in (DELETED, GONE)]
    life = Life(kept[0], kept[-1], watched=any(version.event for version in versions))
    phase_of = _PHASES.get(life.last.kind)
    if phase_of is not None and (life.watched or len(kept) > 1):
        life.runs = _runs(phase_of(version.manifest, version.where, faults) for version in kept)
    if gone:
        life.deleted, life.deleted_at = True, _deletion(life.last, gone[-1], faults)
        over = life.last.kind[1] == "Pod" and final_phase(life.last.manifest)  # the end may be long before
        if life.runs and life.runs[-1].end is None and life.deleted_at is not None and not over:
            end = max(life.deleted_at, life.runs[-1].begun)
            life.runs[-1] = life.runs[-1]._replace(end=end, state=DELETION)
    return life


def _in_order(versions: list[Version]) -> list[Version]:
    """Returns each version once, in the order in which the API server created the versions.

    Resource versions give this order if they are numbers, as with etcd. Otherwise, the given order is kept.
    """
    once: dict[object, Version] = {}
    for number, version in enumerate(versions):
        if version.event != GONE:
            once.setdefault(str(version.metadata.get("resourceVersion") or "") or number, version)
    if not once:
        return versions[-1:]
    revisions = [str(version.metadata.get("resourceVersion") or "") for version in once.values()]
    kept = list(once.values())
    if all(revision.isdecimal() and revision.isascii() and len(revision) < 20 for revision in revisions):
        return [kept[number] for number in sorted(range(len(kept)), key=lambda place: int(revisions[place]))]
    return kept


def _deletion(last: Version, gone: Version, faults: list[Fault]) -> int | None:
    """Returns the time when an object was deleted.

    `deletionTimestamp` is the time of the request plus the grace period of a pod. If the deletion was
    observed before that, the function returns the time of the observation. If only a later list shows that
    the object is missing, the time of the list is not used, because the object may have been deleted long
    before.
    """
    fields = Fields(last.metadata, last.where, faults, "metadata")
    asked = read_time(fields, "deletionTimestamp")
    seen = None if gone.event == GONE or gone.seen is None else gone.seen // SECOND * SECOND
    known = [time for time in (asked, seen) if time is not None]
    return min(known, default=None)


def _runs(phases: Iterable[Phase]) -> list[Run]:
    """Returns the runs that consecutive phases show.

    The end of a run is None if the next run began before the end was observed.
    """
    runs: list[Run] = []
    for phase in phases:
        if phase.begun is not None and (not runs or phase.begun > runs[-1].begun):
            runs.append(Run(phase.begun))
        if not runs:
            continue
        last = runs[-1]
        if phase.ready is not None and phase.ready >= last.begun:
            last = last._replace(ready=phase.ready)
        ends = [end for end in (phase.stopped, phase.ended) if end is not None and end >= last.begun]
        if last.end is None and ends:
            last = last._replace(end=min(ends), state=phase.state)
        runs[-1] = last
    return runs


def _of_workload(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Phase:
    """Reads the conditions Admitted, PodsReady, Finished and Evicted of a Workload.

    Evicted contains the reason why the Workload lost its admission.
    """
    found: dict[str, tuple[bool, int | None, str]] = {}
    for condition in _status(manifest, where, faults).items("conditions"):
        since = read_time(condition, "lastTransitionTime")
        is_so = condition.string("status") == "True"
        found[condition.string("type")] = (is_so, since, condition.string("reason"))
    none = (False, None, "")
    admitted, since, _ = found.get("Admitted", none)
    ready, ready_since, _ = found.get("PodsReady", none)
    finished, finished_since, how = found.get("Finished", none)
    evicted, _, why = found.get("Evicted", none)
    return Phase(
        since if admitted else None,
        ready_since if ready else None,
        None if admitted else since,
        finished_since if finished else None,
        how if finished else why if evicted else "",
    )


def _of_job(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Phase:
    """Reads the start and end of a Job. The API removes the start while the Job is suspended."""
    start, end = job_span(manifest, where, faults)
    suspended = None
    for condition in _status(manifest, where, faults).items("conditions"):
        if condition.string("type") == "Suspended" and condition.string("status") == "True":
            suspended = read_time(condition, "lastTransitionTime")
    return Phase(start, stopped=suspended, ended=end, state="suspended" if end is None else "")


def _of_pod(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Phase:
    start, end = pod_span(manifest, where, faults)
    return Phase(start, ended=end, state=_status(manifest, where, faults).string("phase"))


def _status(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Fields:
    return Fields(manifest, where, faults).child("status")


_PHASES: Mapping[tuple[str, str], Callable[[Mapping[str, Any], str, list[Fault]], Phase]] = {
    ("kueue.x-k8s.io", "Workload"): _of_workload,
    ("batch", "Job"): _of_job,
    ("", "Pod"): _of_pod,
}


def joined(lives: Iterable[Life]) -> list[Life]:
    """Joins consecutive objects that represent the same work.

    Kueue creates a new Workload for a Job if the pods of the Job were changed or the Workload was deleted.
    The next Workload of the same owner then continues the deleted Workload.
    """
    every = list(lives)
    of_owners: dict[tuple[str, ...], list[Life]] = {}
    for life in every:
        owners = tuple(uid for _, uid in life.last.owners if uid)
        if life.last.kind[1] == "Workload" and owners:
            of_owners.setdefault(owners, []).append(life)
    instead: dict[int, Life] = {}
    for several in of_owners.values():
        several.sort(key=lambda life: str(life.first.metadata.get("creationTimestamp") or ""))
        if len(several) > 1 and all(life.deleted for life in several[:-1]):
            runs = sorted((run for life in several for run in life.runs), key=lambda run: run.begun)
            whole = replace(several[-1], first=several[0].first, runs=runs)
            instead |= {id(life): whole for life in several}
    return list({id(life): life for life in (instead.get(id(each), each) for each in every)}.values())
