"""Calls the functions of a policy that are used outside a replay.

A plugin registers these functions: `running` (which jobs run), `never` (which jobs can never start),
`ignored_fields` and `assumes`. If a function fails or returns an invalid value, the error names the policy
and its plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.base.arguments import about
from harness.base.errors import PluginError
from harness.base.text import first_of
from harness.cluster.kinds.pods import Pod
from harness.cluster.kinds.workloads import Workload
from harness.cluster.model import Cluster
from harness.cluster.nodes_away import nodes_away, with_all_nodes
from harness.cluster.standing import standing_of
from harness.plugins.registries import PolicySpec
from harness.policy import Arrival, Job, Never, Possible

AWAY = "nodes that are away"
"""The `where` of a job that does not fit on the present nodes, but may fit when other nodes return."""

_NAMED = 3
_SENTENCES = "several strings"
_ARRIVALS = "arrivals, which are tuples (job, run time, checkpoint interval or None)"
_REASON = "for each job a Never(where, why) with two strings, or None"


def running_jobs(policy: PolicySpec, cluster: Cluster, at: int) -> Sequence[Arrival]:
    """Returns the jobs that are already running according to the manifests.

    The result is empty if the policy takes over no jobs. If the policy returns no progress for a job, its
    progress is the time that it has run by `Cluster.as_of`. See `harness.cluster.standing`.

    Raises:
        PluginError: the policy's function failed, or its answer is invalid.
    """
    if policy.running is None:
        return ()
    with policy.failing("running"):
        found = list(policy.running(cluster, at))
    for each in found:
        if not _is_arrival(each):
            raise _wrong(policy, "running", each, _ARRIVALS)
    return found if cluster.as_of is None else _with_progress(cluster, found, cluster.as_of)


def _with_progress(cluster: Cluster, arrivals: Iterable[Arrival], now: int) -> list[Arrival]:
    """Returns arrivals with the progress that jobs have made, according to the policy or the manifests."""
    several: list[Workload | Pod] = [*cluster.pods, *cluster.workloads]
    work = {each.key: each for each in several}
    found: list[Arrival] = []
    for arrival in arrivals:
        job = arrival[0]
        each = work.get(job.id)
        since = None if each is None or _lasts(each) else standing_of(cluster, each).since
        if len(arrival) < 5 and since is not None and since < now:
            startup = arrival[3] if len(arrival) == 4 else None
            arrival = job, arrival[1], arrival[2], startup, now - since
        found.append(arrival)
    return found


def _lasts(each: Workload | Pod) -> bool:
    """Returns True if the work never ends, like the pods of a DaemonSet, and therefore makes no progress."""
    return isinstance(each, Pod) and each.lasting


def ignored_fields(policy: PolicySpec, cluster: Cluster, options: Mapping[str, Any]) -> list[str]:
    """Returns sentences about fields in the manifests that the policy ignores.

    Raises:
        PluginError: the policy's function failed, or its answer is invalid.
    """
    return _sentences(policy, "ignored_fields", policy.ignored_fields, cluster, options)


def assumptions(policy: PolicySpec, cluster: Cluster, options: Mapping[str, Any]) -> list[str]:
    """Returns sentences about the policy's assumptions, which fill gaps in the manifests.

    Raises:
        PluginError: the policy's function failed, or its answer is invalid.
    """
    return _sentences(policy, "assumes", policy.assumes, cluster, options)


def foresight(policy: PolicySpec, cluster: Cluster, options: Mapping[str, Any]) -> Possible | None:
    """Returns a function that explains why a job can never start, or None if the policy has no such function.

    Raises:
        PluginError: the policy's function failed, or its answer is invalid. The returned function raises this
            error as well.
        InputError: the policy can't be made for the cluster.
    """
    if policy.never is None:
        return None
    with policy.failing("never"):
        possible = policy.never(cluster, options)
    if not callable(possible):
        raise _wrong(policy, "never", possible, "a function of a job")

    def asked(job: Job) -> Never | None:
        with policy.failing("never"):
            answer: object = possible(job)
        if answer is None or (isinstance(answer, Never) and all(isinstance(each, str) for each in answer)):
            return answer
        raise _wrong(policy, "never", answer, _REASON)

    return asked


def foresight_in_dump(policy: PolicySpec, cluster: Cluster, options: Mapping[str, Any]) -> Possible | None:
    """Does the same as `foresight`, but distinguishes jobs that may start when nodes of a dump return.

    A node that is cordoned or not ready may return. If a job fits on no other node, but may start when all
    nodes have returned, the answer has the `where` `AWAY`.

    Raises:
        PluginError: see `foresight`.
        InputError: see `foresight`.
    """
    possible, away = foresight(policy, cluster, options), nodes_away(cluster)
    later = foresight(policy, with_all_nodes(cluster), options) if away else None
    if possible is None or later is None:
        return possible

    def asked(job: Job) -> Never | None:
        found = possible(job)
        if found is None or later(job) is not None:
            return found
        return Never(AWAY, f"{found.why}; it may fit when {first_of(away, _NAMED)} can run pods again")

    return asked


def cannot_start(never: Never) -> str:
    """Returns the end of a sentence that says that a job can't start, and why."""
    return f"can {'start only later' if never.where == AWAY else 'never start'}: {never.why}"


def _sentences(
    policy: PolicySpec,
    function: str,
    ask: Callable[[Cluster, Mapping[str, Any]], Iterable[str]] | None,
    cluster: Cluster,
    options: Mapping[str, Any],
) -> list[str]:
    if ask is None:
        return []
    with policy.failing(function):
        answer: object = ask(cluster, options)
        if isinstance(answer, Iterable) and not isinstance(answer, str):
            answer = list(answer)
    if not isinstance(answer, list):
        raise _wrong(policy, function, answer, _SENTENCES)
    for each in answer:
        if not isinstance(each, str):
            raise _wrong(policy, function, each, _SENTENCES)
    return answer


def _is_arrival(value: object) -> bool:
    return isinstance(value, tuple) and len(value) >= 3 and isinstance(value[0], Job)


def _wrong(policy: PolicySpec, function: str, answer: object, wanted: str) -> PluginError:
    return PluginError(
        f"{policy.of_plugin}: its function '{function}' must return {wanted}, not {about(answer)}"
    )
