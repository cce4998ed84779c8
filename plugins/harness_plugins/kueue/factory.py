"""Creates the policies `kueue-classic` and `fairsharing` from a cluster and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from threading import local
from typing import TYPE_CHECKING, Any

from harness.base.errors import ClusterError, Fault, OptionError
from harness.base.options import did_you_mean
from harness.base.units import SECOND, format_duration
from harness.models.cluster import (
    DEFAULT_STRATEGIES,
    AdmissionFairSharing,
    Cluster,
    ClusterQueue,
    KueueConfiguration,
    Release,
    WaitForPodsReady,
    controller_release,
    nearest_release,
)
from harness.models.never import OverTime
from harness.policy import Job, Never, Possible, View
from harness_plugins.kueue.impossible import Impossible, Verdict
from harness_plugins.kueue.manifests.as_read import as_read
from harness_plugins.kueue.manifests.imported import used_flavor_resources
from harness_plugins.kueue.manifests.places import on_missing_nodes
from harness_plugins.kueue.options import (
    BY_NAMESPACE,
    MIN_RUN_TIME,
    PREEMPTION_RATE,
    parse_check_delays,
    parse_gates,
    parse_guarantees,
    parse_rate,
    parse_release,
    parse_strategies,
    parse_weights,
)
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.previews.minimum_run_time import MinimumRunTime
from harness_plugins.kueue.previews.preemption_rate import PreemptionRate
from harness_plugins.kueue.previews.previews import Previews
from harness_plugins.kueue.rules.admission_checks import AdmissionChecks
from harness_plugins.kueue.rules.feature_gates import Gates, gates_from
from harness_plugins.kueue.rules.wait_for_pods_ready import PodsReady
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.cache import Cache

if TYPE_CHECKING:
    from harness_plugins.kueue.binding import Binder


class _Checked(local):
    """The last cluster whose jobs this thread checked, with the gates, and the object that judged the jobs.

    The replay after the check uses the same object, so that each request is read and judged only once.
    Threads don't share these objects, because they number the requests.
    """

    last: tuple[Cluster, Gates, Impossible] | None = None


_checked = _Checked()


def classic(
    cluster: Cluster, view: View, options: Mapping[str, Any], shortcuts: Shortcuts | None = None
) -> KueuePolicy:
    """Creates Kueue with classic preemption, even if its Configuration enables fair sharing.

    Args:
        cluster: the queues and flavors.
        view: not used.
        options: the values of all options.
        shortcuts: the shortcuts to use. None means all of them.
    """
    return _policy(cluster, options, None, {}, shortcuts)


def fair_sharing(
    cluster: Cluster, view: View, options: Mapping[str, Any], shortcuts: Shortcuts | None = None
) -> KueuePolicy:
    """Creates Kueue with fair sharing. The arguments are the same as for `classic`.

    Raises:
        OptionError: there is a weight for a name that is neither a ClusterQueue nor a Cohort.
    """
    weights = parse_weights(options["weights"])
    known = {**cluster.cluster_queues, **cluster.cohorts}
    for name in weights:
        if name not in known:
            raise OptionError(
                f"option weights: there is no ClusterQueue or Cohort {name!r}", hint=did_you_mean(name, known)
            )
    strategies = parse_strategies(options["preemptionStrategies"]) or _configuration(cluster).strategies
    return _policy(cluster, options, strategies or DEFAULT_STRATEGIES, weights, shortcuts)


def _policy(
    cluster: Cluster,
    options: Mapping[str, Any],
    strategies: tuple[str, ...] | None,
    weights: Mapping[str, float],
    shortcuts: Shortcuts | None,
) -> KueuePolicy:
    gates = _gates(cluster, options)
    run_time, rate = _previews(cluster, options)
    if run_time is not None or rate is not None:
        gates = replace(gates, always_reclaims=False)
    cluster = as_read(cluster, gates)
    shared = _shared(cluster, gates)
    scheduler = Scheduler(
        cluster,
        gates,
        strategies,
        weights=weights,
        admission=_admission(cluster),
        by_namespace=options["localQueueIdentity"] == BY_NAMESPACE,
        evicted_last=_configuration(cluster).evicted_last,
        also=used_flavor_resources(cluster.workloads),
        rate=rate,
        shortcuts=shortcuts,
        asking=None if shared is None else shared.asking,
    )
    binder = _binder(cluster)
    failures = None
    nodes_fail = cluster.nodes_change or on_missing_nodes(cluster)
    if binder is not None and nodes_fail and scheduler.topologies is not None:
        from harness_plugins.kueue.binding import BoundPods
        from harness_plugins.kueue.node_failures import NodeFailures

        failures = partial(NodeFailures, scheduler, cluster, gates, BoundPods(binder))
    return KueuePolicy(
        scheduler,
        cluster,
        latency=options["evictionLatency"],
        binder=binder,
        pods_ready=pods_ready(_configuration(cluster), gates),
        impossible=_verdicts(cluster, gates, binder) if shared is None else shared.judge,
        checks=AdmissionChecks(cluster, parse_check_delays(options["admissionCheckDelay"])),
        previews=None if run_time is None and rate is None else Previews(scheduler, run_time, rate),
        failures=failures,
    )


def _previews(
    cluster: Cluster, options: Mapping[str, Any]
) -> tuple[MinimumRunTime | None, PreemptionRate | None]:
    guarantees = parse_guarantees(options[MIN_RUN_TIME])
    everybody, limits = parse_rate(options[PREEMPTION_RATE])
    for option, names in ((MIN_RUN_TIME, guarantees.queues), (PREEMPTION_RATE, limits)):
        for name in names:
            if name not in cluster.cluster_queues:
                raise OptionError(
                    f"option {option}: there is no ClusterQueue {name!r}",
                    hint=did_you_mean(name, cluster.cluster_queues),
                )
    return (
        MinimumRunTime(guarantees) if guarantees.is_on else None,
        PreemptionRate(everybody, limits) if everybody is not None or limits else None,
    )


def impossible(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Returns a function that returns the reason why a job can never start, or None if it might start.

    The function gives the same results for both Kueue policies.
    """
    gates = _gates(cluster, options)
    shared = _shared(cluster, gates)
    if shared is None and not cluster.changes:
        read = as_read(cluster, gates)
        shared = Impossible(read, Cache(read), gates, _binder(cluster))
        _checked.last = cluster, gates, shared
    judge = _verdicts(cluster, gates, _binder(cluster)) if shared is None else shared.judge

    def never(job: Job) -> Never | None:
        verdict = judge(job)
        return None if verdict is None else verdict.never

    return never


def _shared(cluster: Cluster, gates: Gates) -> Impossible | None:
    """Returns the object that judged the jobs of a cluster that never changes, or None."""
    last = _checked.last
    return last[2] if last is not None and last[0] is cluster and last[1] == gates else None


def _verdicts(cluster: Cluster, gates: Gates, binder: Binder | None) -> Callable[[Job], Verdict | None]:
    """Returns a function that finds jobs that can never start. Jobs that fit on no node are not queued.

    A deleted ClusterQueue can lend quota as long as some workload holds its quota.
    """
    lenders: dict[str, ClusterQueue] = {}

    def judge(state: Cluster) -> Callable[[Job], Verdict | None]:
        lenders.update(state.cluster_queues)
        lending = (
            state if len(lenders) == len(state.cluster_queues) else replace(state, cluster_queues=lenders)
        )
        return Impossible(as_read(state, gates), Cache(as_read(lending, gates)), gates, binder).judge

    if all(edit.kind == "Node" for instant in cluster.changes for edit in instant.edits):
        return judge(cluster)
    over_time = OverTime(cluster, judge)

    def verdict(job: Job) -> Verdict | None:
        found = over_time(job)
        return min(found, key=attrgetter("waits")) if found else None

    return verdict


def release_of(cluster: Cluster, options: Mapping[str, Any]) -> Release:
    """Returns the requested release, or the release of the cluster's controller, or the newest release."""
    return parse_release(options["kueueVersion"]) or controller_release(cluster.kueue_controller)


def _about_release(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    release, controller = release_of(cluster, options), cluster.kueue_controller
    if options["kueueVersion"]:
        return
    if controller is None:
        yield (
            f"no manifest names the release of Kueue, so the plugin decides like {release}, the newest "
            "recorded release; --set kueueVersion=v0.17 selects another release"
        )
        return
    told = f"Kueue decides like {release}: {controller.where} runs {controller.tag}"
    if nearest_release(controller.tag) is None:
        yield f"{told}, which is not a release; {release} is the newest recorded one"
    elif controller.tag.removeprefix("v") != str(release).removeprefix("v"):
        yield f"{told}, which is not known; {release} is the nearest known one"
    else:
        yield told


def assumptions(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on the Kueue release, and on the default timeout for pods that are not ready."""
    for option, preview in zip((MIN_RUN_TIME, PREEMPTION_RATE), _previews(cluster, options), strict=True):
        if preview is not None:
            yield f"preview {option}={options[option]}: Kueue has no such rule, so results cannot be verified"
    yield from _about_release(cluster, options)
    waits = _waits(_configuration(cluster), _gates(cluster, options))
    if waits is not None and not _configuration(cluster).pods_ready_given:
        yield (
            "waitForPodsReady is on, which is Kueue's default since 0.19: a workload is evicted if its "
            f"pods are not all ready {format_duration(waits.timeout)} after its admission; "
            "--set featureGates=DisableWaitForPodsReady=true turns it off"
        )


def pods_ready(configuration: KueueConfiguration, gates: Gates) -> PodsReady | None:
    """Returns a tracker for pods that are not ready, or None if Kueue does not check readiness."""
    waits = _waits(configuration, gates)
    return None if waits is None else PodsReady(waits)


def _waits(configuration: KueueConfiguration, gates: Gates) -> WaitForPodsReady | None:
    on = configuration.pods_ready_given or gates.rules.waits_for_pods
    found = configuration.pods_ready if on and not gates.disable_wait_for_pods_ready else None
    if found is None:
        return None
    if not gates.rules.recovery_times_out:  # a given 0s then is a time limit, too
        found = replace(found, recovery_timeout=found.recovery_timeout or 0 if found.recovery_given else None)
    if not gates.rules.spares_first_backoff:
        found = replace(found, backoff_base=min(found.backoff_base, found.backoff_max))
    return found


def _binder(cluster: Cluster) -> Binder | None:
    if not cluster.nodes and not cluster.nodes_change:
        return None
    from harness_plugins.kueue.binding import Binder

    return Binder(cluster)


def _configuration(cluster: Cluster) -> KueueConfiguration:
    return cluster.kueue or KueueConfiguration()


def _admission(cluster: Cluster) -> AdmissionFairSharing | None:
    """Returns the settings for the usage of LocalQueues."""
    admission = _configuration(cluster).admission
    if admission is not None and admission.sampling_interval < SECOND:
        fault = Fault(
            "Configuration of Kueue: admissionFairSharing.usageSamplingInterval",
            "must be 1s or more, because a replay computes every sample",
        )
        raise ClusterError(cluster.source or "the manifests", [fault])
    return admission


def _gates(cluster: Cluster, options: Mapping[str, Any]) -> Gates:
    configuration = _configuration(cluster)
    settings = {**configuration.gates, **parse_gates(options["featureGates"])}
    return gates_from(settings, release_of(cluster, options), configuration.other_gates)
