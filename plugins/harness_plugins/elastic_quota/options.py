"""The options of the policies `elasticquota` and `auto`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness import Cluster, Option, boolean
from harness.base.errors import InputError
from harness.base.units import MINUTE, parse_duration
from harness.models.cluster import ACK, CAPACITY, KOORDINATORS, ElasticQuota, Instant, ever, semantics_of
from harness.models.ignored import ignored_scheduling_groups
from harness_plugins.kube.policy import ALONE, GANG, GANG_SCHEDULING, TOGETHER
from harness_plugins.kube.policy import OPTIONS as KUBE_OPTIONS
from harness_plugins.kube.policy import pods_alone as kube_pods_alone

ELASTIC_QUOTA = "ElasticQuota"
"""The kind of object that changes of elastic quotas refer to."""

WITH_REQUEST = "with-request"
BY_USAGE = "usage"
LEFT_OUT = "left-out"
TRIED = "tried"
BY_POD = "pod"
BY_CLUSTER = "cluster"

_MANIFESTS = {
    ACK: "an ElasticQuotaTree",
    CAPACITY: "ElasticQuotas without Koordinator's labels",
    KOORDINATORS: "ElasticQuotas with Koordinator's labels",
}
_LEFT_OUT = {
    ACK: "their labels about lending, weights and trees are ignored",
    CAPACITY: "only leaf quotas count, and lending between quotas is ignored",
}


def quotas_ever(cluster: Cluster) -> Mapping[str, ElasticQuota]:
    """Returns all elastic quotas that exist at any time."""
    return ever(cluster).elastic_quotas


def semantics_asked(cluster: Cluster, options: Mapping[str, Any]) -> str:
    """Returns the semantics that the options select. By default, the manifests of all quotas determine them.

    This includes quotas that are created or deleted during the replay.
    """
    return semantics_of(quotas_ever(cluster), options["semantics"])


def without_elastic_quotas(cluster: Cluster) -> Cluster:
    """Returns a copy of the cluster that never has any elastic quotas."""
    changes = (
        Instant(at, tuple(edit for edit in edits if edit.kind != ELASTIC_QUOTA))
        for at, edits in cluster.changes
    )
    return replace(cluster, elastic_quotas={}, changes=tuple(changes))


def places_gangs(cluster: Cluster, options: Mapping[str, Any]) -> bool:
    """Returns True if the pods of a gang are placed together, according to the options or the semantics."""
    gang: str | None = options[GANG.name]
    semantics = semantics_asked(cluster, options)
    return semantics == ACK if gang is None else gang == TOGETHER


def ignored_fields(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on the chosen semantics, and on manifests, options and pod groups without an effect."""
    asked: str | None = options["semantics"]
    quotas = quotas_ever(cluster)
    native = semantics_of(quotas)
    if quotas and asked is None and native != ACK:
        yield f"semantics={native}, because the cluster has {_MANIFESTS[native]}; set semantics to change it"
    elif quotas and asked not in (None, native):
        what = f"semantics={asked} is chosen, but the default for {_MANIFESTS[native]} is semantics={native}"
        yield what + (f": {_LEFT_OUT[asked]}" if native == KOORDINATORS else "")
    for semantics, only in _OF.items():
        for option in only if semantics != semantics_of(quotas, asked) else ():
            if options.get(option.name, option.default) != option.default:
                yield f"{option.name} has an effect only with semantics={semantics}"
    if not places_gangs(cluster, options):
        yield from kube_pods_alone(cluster, {**options, GANG.name: ALONE})
    yield from ignored_scheduling_groups(cluster)


def parse_label(text: str) -> tuple[str, str | None] | None:
    """Parses `key` or `key=value`. The value None means any value. For an empty text, returns None."""
    key, equals, value = text.partition("=")
    if not key and equals:
        raise InputError(f"{text!r} is not a label; write key or key=value")
    return (key, value if equals else None) if key else None


def _checked_label(text: str) -> str:
    parse_label(text)
    return text


_OF_ACK = (
    Option(
        "claims",
        WITH_REQUEST,
        "with ack, which amount must be within a quota's min before the quota can reclaim its guarantee: "
        "its usage, or its usage plus the request",
        choices=(BY_USAGE, WITH_REQUEST),
    ),
    Option(
        "protectedLabel",
        "",
        "with ack, a label (key or key=value) of pods that are never victims",
        type=_checked_label,
    ),
    Option("evictDaemonSets", False, "with ack, preempt Pods of DaemonSets like other Pods", type=boolean),
    Option(
        "cordonedNodes",
        LEFT_OUT,
        "with ack, whether a single pod preempts on cordoned nodes that it tolerates",
        choices=(LEFT_OUT, TRIED),
    ),
)

_KOORDINATORS = "with koordinator, "
_OF_KOORDINATOR = (
    Option(
        "revokeAfter",
        2 * MINUTE,
        f"{_KOORDINATORS}how long a quota may exceed its runtime before pods are evicted",
        type=parse_duration,
    ),
    Option(
        "quirks",
        True,
        f"{_KOORDINATORS}reproduce details that are found only in Koordinator's code",
        type=boolean,
    ),
    Option(
        "enableMinQuotaScale",
        True,
        f"{_KOORDINATORS}scale down the min of quotas if all mins together exceed the nodes' capacity",
        type=boolean,
    ),
    Option(
        "enableCheckParentQuota",
        False,
        f"{_KOORDINATORS}a pod must also fit within the parent quotas",
        type=boolean,
    ),
    Option(
        "multiQuotaTree",
        False,
        f"{_KOORDINATORS}the quotas of a tree share the capacity of its root",
        type=boolean,
    ),
)

_OF = {ACK: _OF_ACK, KOORDINATORS: _OF_KOORDINATOR}

OPTIONS = (
    Option(
        "semantics",
        None,
        "admission and preemption rules: ACK's, scheduler-plugins' or Koordinator's; default: by manifests",
        choices=(ACK, CAPACITY, KOORDINATORS),
    ),
    Option(
        GANG.name,
        None,
        "place the pods of a gang together or individually; default: together with ack, else individually",
        choices=(TOGETHER, ALONE),
    ),
    *_OF_ACK,
    *_OF_KOORDINATOR,
    *(option for option in KUBE_OPTIONS if option not in (GANG, GANG_SCHEDULING)),
)

OPTIONS_OF_AUTO = (
    Option(
        "autoBy",
        BY_POD,
        "pod: pods without a quota use default preemption; cluster: quotas, if any, decide for all pods",
        choices=(BY_POD, BY_CLUSTER),
    ),
    *OPTIONS,
)
