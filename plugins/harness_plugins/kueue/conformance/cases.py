"""Reads recorded cases, with their Kueue Configuration, objects and arriving workloads.

A case with a field that the model ignores is an error, because a result that ignores a field would prove
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, final

from harness.base.errors import ClusterError, Fault
from harness.base.units import SECOND
from harness.models.cluster import (
    NEWEST,
    PRIORITY_BOOST,
    Cluster,
    KueueConfiguration,
    Workload,
    release_named,
)
from harness.models.manifests import (
    NOT_MODELLED,
    NOT_READ,
    WORKLOAD,
    Fields,
    cluster_from,
    nodes_replaced,
    replaced,
    workload_from,
)
from harness.policy import Instant, PodSet
from harness_plugins.kueue.manifests.as_read import as_read
from harness_plugins.kueue.rules.feature_gates import Gates, gates_from

_SECTIONS = ("admissionFairSharing", "fairSharing", "featureGates")
"""The sections of Kueue's Configuration that cases can have."""

_OVER_TIME = "waitForPodsReady"
"""A section that only cases with events over time can have."""

_UNKNOWN = "cannot be used: this field is unknown"

_FIELDS = {"id", "component", "source", "features", "config", "objects", "given", "expect", "recorded"}


class Setting(NamedTuple):
    """The cluster, node changes, configuration and feature gates of a case."""

    cluster: Cluster
    nodes: tuple[Instant, ...]
    configuration: KueueConfiguration
    gates: Gates


def setting_of(case: Mapping[str, Any], *, over_time: bool = False) -> Setting:
    """Reads the configuration and the objects of a case.

    If a case does not configure pod readiness, it was recorded without the workload controller and without
    the defaults of Kueue's manager. Readiness is then not checked.

    Raises:
        ClusterError: the case is invalid, or has fields that are not modelled.
        OptionError: a release is unknown, or a feature gate is not modelled or not part of that release.
    """
    config = case.get("config") or {}
    release = release_named(config.get("kueueVersion", str(NEWEST)))
    config = {name: value for name, value in config.items() if name != "kueueVersion"}
    manifest = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **config}
    make = partial(cluster_from, source=case["id"], webhooks=False)
    quotas, nodes = _events(case)
    cluster = replaced([*case["objects"], manifest], quotas, make)
    assert cluster.kueue is not None
    gates = gates_from(config.get("featureGates") or {}, release)
    sections = (*_SECTIONS, _OVER_TIME) if over_time else _SECTIONS
    faults = [Fault(f"config.{name}", _UNKNOWN) for name in config if name not in sections]
    faults += [Fault("", text) for text in cluster.warnings if NOT_MODELLED in text or NOT_READ in text]
    if faults:
        raise ClusterError(case["id"], faults)
    recorded = cluster.kueue if _OVER_TIME in config else replace(cluster.kueue, pods_ready=None)
    changes = tuple(nodes_replaced(cluster.nodes, nodes, make))
    return Setting(as_read(cluster, gates), changes, recorded, gates)


_Events: TypeAlias = list[tuple[int, Mapping[str, Any]]]


def _events(case: Mapping[str, Any]) -> tuple[_Events, list[tuple[int, Mapping[str, Any] | str]]]:
    """Returns the changes to objects, and the changes and removals of nodes, with their times."""
    faults: list[Fault] = []
    quotas: _Events = []
    nodes: list[tuple[int, Mapping[str, Any] | str]] = []
    for event in Fields(case["given"], case["id"], faults, "given").items("events"):
        at, manifest, gone = event.raw("at"), event.raw("object"), event.raw("delete")
        if not isinstance(at, (int, float)) or not (isinstance(manifest, Mapping) or isinstance(gone, str)):
            event.fault("at", "must be a number of seconds; the event also needs `object` or `delete`")
        elif not isinstance(manifest, Mapping):
            nodes.append((round(at * SECOND), gone))
        elif manifest.get("kind") == "Node":
            nodes.append((round(at * SECOND), manifest))
        else:
            quotas.append((round(at * SECOND), manifest))
    if faults:
        raise ClusterError(case["id"], faults)
    return quotas, nodes


@final
class Question:
    """The input of a case, such as its workloads. A field that the model does not read is an error."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._name = case["id"]
        self._known: dict[str, tuple[PodSet, ...]] = {}
        self._faults = [Fault(name, _UNKNOWN) for name in case if name not in _FIELDS]
        self.fields = Fields(case["given"], self._name, self._faults, "given")

    def workload(self, holder: Fields) -> Workload:
        """Returns the Workload that a mapping contains."""
        content = holder.raw("workload")
        manifest = Fields(content, self._name, self._faults, f"{holder.path}.workload")
        for finding in WORKLOAD.of("v1beta2").findings(content):
            manifest.fault(finding.path, _UNKNOWN)
        for name in manifest.child("metadata").raw("annotations") or ():
            if name != PRIORITY_BOOST:
                manifest.fault(f"metadata.annotations.{name}", _UNKNOWN)
        found = workload_from(manifest, self._known)
        if found.time_left is not None:
            manifest.fault(
                "spec.maximumExecutionTimeSeconds", "cannot be used: the limit would have no effect here"
            )
        if found.time_outs or found.requeue_at is not None:
            manifest.fault("status.requeueState", "cannot be used: the backoff would have no effect here")
        return found

    def number(self, fields: Fields, name: str) -> float | None:
        """Returns a non-negative number, such as seconds or milliseconds, or None if the field is absent."""
        value = fields.raw(name)
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0):
            return value
        fields.fault(name, f"must be a number >= 0, not {value!r}")
        return None

    def spans(self, fields: Fields, name: str) -> tuple[int | None, ...]:
        """Returns a list of whole seconds in microseconds. `null` becomes None, which means never.

        If the field is absent, the result is ().
        """
        found = fields.raw(name)
        if found is None:
            return ()
        if isinstance(found, list) and found and all(each is None or _is_whole(each) for each in found):
            return tuple(None if each is None else each * SECOND for each in found)
        fields.fault(name, f"must be a list of whole seconds or null, not {found!r}")
        return ()

    def finish(self) -> None:
        """Checks that every field was read.

        Raises:
            ClusterError: fields are invalid, or were not read.
        """
        faults = [*self._faults, *(Fault(path, _UNKNOWN) for path in self.fields.unread())]
        if faults:
            raise ClusterError(self._name, faults)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
