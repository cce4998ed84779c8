"""docs/defaults.md: a default that is written down decides as one that is left out, and none is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml
from doc_pages import ROOT
from field_lists import listed_kinds

from harness import Policy, View
from harness.base.options import resolve
from harness.cluster.kinds.kueue_configuration import GATES
from harness.cluster.kinds.kueue_gates import is_on, why_refused
from harness.cluster.kinds.kueue_releases import NEWEST
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.policy import Arrival
from harness.testing import Script, replayed

Manifest = dict[str, Any]

_ROW = re.compile(
    r"^\| `(?P<path>[^`]+)` \| `(?P<value>[^`]*)` \||"
    r"^`(?P<long_path>[^`]+)`[^|\n]*:\n```\n(?P<long_value>.*?)```",
    re.MULTILINE | re.DOTALL,
)
_KOORDINATOR = "quota.scheduling.koordinator.sh/"
_CORE = 1000


class Default(NamedTuple):
    """A row of the page: a field of a kind, and its default."""

    kind: str
    path: str
    value: Any

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}"


def defaults() -> Iterator[Default]:
    """Every row, and what is too long for one, under the heading of its kind."""
    page = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        for row in _ROW.finditer(section):
            path, value = row["path"] or row["long_path"], row["value"] or row["long_value"]
            yield Default(section.splitlines()[0], path, yaml.safe_load(value))


ROWS = tuple(defaults())


# --- a world of each kind -----------------------------------------------------------------------------------


def named(kind: str, name: str, version: str, namespace: str = "", **fields: Any) -> Manifest:
    """An object."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def kueue(kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    """An object of Kueue's."""
    return named(kind, name, "kueue.x-k8s.io/v1beta2", namespace, **fields)


def node(name: str, cpu: int) -> Manifest:
    """A node."""
    amounts = {"cpu": cpu, "memory": f"{cpu}Gi", "pods": 20}
    return named("Node", name, "v1", status={"allocatable": amounts})


def cluster_queue(name: str, **spec: Any) -> Manifest:
    """A ClusterQueue of two flavors in a cohort, with nothing that has a default but the namespaces."""
    flavors = [
        {"name": each, "resources": [{"name": "cpu", "nominalQuota": nominal}]}
        for each, nominal in (("f", 4), ("g", 3))
    ]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    return kueue(
        "ClusterQueue",
        name,
        spec={"cohortName": "all", "namespaceSelector": {}, "resourceGroups": groups, **spec},
    )


def workload(name: str, priority: int | None, **status: Any) -> Manifest:
    """A Workload of one pod of two cores that waits, or holds quota."""
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}]}}
    said = {} if priority is None else {"priority": priority}
    spec = {"queueName": "a", "podSets": [{"template": template}], **said}
    made = kueue("Workload", name, "default", spec=spec, status=status)
    made["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return made


def admitted(name: str) -> Manifest:
    """A Workload that holds quota."""
    since = {"status": "True", "reason": "-", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    usage = {"flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 2}, "count": 1}
    return workload(
        name,
        0,
        admission={"clusterQueue": "a", "podSetAssignments": [usage]},
        conditions=[{"type": each, **since} for each in ("QuotaReserved", "Admitted")],
    )


PREEMPTING = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
KUEUE: tuple[Manifest, ...] = (
    kueue("ResourceFlavor", "f", spec={}),
    kueue("ResourceFlavor", "g", spec={}),
    kueue("Cohort", "all", spec={}),
    cluster_queue("a"),
    cluster_queue("b", preemption=PREEMPTING),
    kueue("LocalQueue", "a", "default", spec={"clusterQueue": "a"}),
    kueue("LocalQueue", "b", "default", spec={"clusterQueue": "b"}),
    workload("waits", None),
    admitted("held"),
    node("n1", 6),
    node("n2", 5),
)
CONFIGURATION: Manifest = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
OLDER = CONFIGURATION | {"apiVersion": "config.kueue.x-k8s.io/v1beta1"}
SCHEDULER: Manifest = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{}],
}
QUOTAS = (
    named(
        "ElasticQuota",
        "a",
        "scheduling.x-k8s.io/v1alpha1",
        "default",
        spec={"max": {"cpu": 8, "memory": "8Gi"}},
    ),
    node("n1", 6),
    node("n2", 5),
)


def koordinators(name: str, nominal: int) -> Manifest:
    """A quota of Koordinator's: a label that it notes for itself tells it from the others."""
    made = named(
        "ElasticQuota",
        name,
        "scheduling.sigs.k8s.io/v1alpha1",
        "default",
        spec={"min": {"cpu": nominal}, "max": {"cpu": 8}},
    )
    made["metadata"]["labels"] = {f"{_KOORDINATOR}profile": "p"}
    return made


WORLDS: Mapping[str, tuple[Manifest, ...]] = {
    "Kueue's Configuration": (*KUEUE, CONFIGURATION),
    "Kueue's Configuration of v1beta1": (*KUEUE, OLDER),
    "ClusterQueue": KUEUE,
    "Cohort": KUEUE,
    "LocalQueue": KUEUE,
    "Workload": KUEUE,
    "KubeSchedulerConfiguration": (node("n1", 6), node("n2", 5), SCHEDULER),
    "ElasticQuota of scheduler-plugins": QUOTAS,
    "ElasticQuota of Koordinator": (koordinators("a", 4), koordinators("b", 4), node("n1", 6), node("n2", 5)),
}
"""What the fields of a kind are set in."""

_KIND = {
    "Kueue's Configuration": "Configuration",
    "Kueue's Configuration of v1beta1": "Configuration",
    "ElasticQuota of scheduler-plugins": "ElasticQuota",
    "ElasticQuota of Koordinator": "ElasticQuota",
}
_BESIDE: Mapping[str, Manifest] = {
    "admissionFairSharing.usageSamplingInterval": {"admissionFairSharing": {"usageHalfLifeTime": "1h"}},
    "resources.transformations[].strategy": {"resources": {"transformations": [{"input": "x"}]}},
    "spec.flavorFungibility.preference": {
        "spec": {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}}
    },
}
"""What has to stand beside a field."""

_ENABLED = ("waitForPodsReady", "fairSharing")
"""Sections that v1beta1 has to enable."""


class Jobs(Script):
    """Jobs of the trace, and those that a replay begins with."""

    def after(self, running: Sequence[Arrival]) -> Jobs:
        """These jobs behind those."""
        made = Jobs()
        made._arrivals = [
            (replace(job, index=place), *rest)
            for place, (job, *rest) in enumerate([*running, *self._arrivals])
        ]
        return made


def jobs() -> Jobs:
    """More than there is room for, of three priorities; some never start up, and some are slow to."""
    made = Jobs()
    for number in range(24):
        made.job(
            f"j{number:02}",
            at=90 * (number // 3),
            seconds=300 + 700 * (number % 4),
            queue="ab"[number % 2],
            priority=100 * (number % 3),
            pods=1 + number % 2,
            grace=30,
            startup=None if number % 13 == 5 else 400 * (number % 2),
            cpu=_CORE * (1 + number % 3),
        )
    return made


# --- setting a default --------------------------------------------------------------------------------------


def laid_over(base: Any, more: Any) -> Any:
    """Mappings merged; of anything else the second."""
    if isinstance(base, dict) and isinstance(more, dict):
        return base | {name: laid_over(base.get(name), value) for name, value in more.items()}
    return deepcopy(more)


def holders(item: Any, path: str) -> list[tuple[dict[str, Any], str]]:
    """The mappings that may have the last field of a path, which are made where there are none."""
    first, _, rest = path.partition(".")
    name = first.removesuffix("[]")
    if not rest:
        return [(item, name)]
    if first.endswith("[]"):
        return [found for each in item.get(name) or () for found in holders(each, rest)]
    if not isinstance(item.get(name), dict):
        if "[]" in rest:
            return []
        item[name] = {}
    return holders(item[name], rest)


def places(default: Default, item: Manifest) -> list[tuple[dict[str, Any], str]]:
    """Where a field of a row is, also an argument of a plugin, and a label of Koordinator's."""
    path = default.path
    if path.startswith("profiles[].pluginConfig[]."):
        _, _, plugin, argument = path.split(".", 3)
        args: dict[str, Any] = {}
        item["profiles"][0]["pluginConfig"] = [{"name": plugin, "args": args}]
        return [(args, argument)]
    if path.startswith(("labels.", "annotations.")):
        part, name = path.split(".")
        return [(item["metadata"].setdefault(part, {}), _KOORDINATOR + name)]
    if path.startswith("featureGates."):
        return [(item.setdefault("featureGates", {}), path.removeprefix("featureGates."))]
    return holders(item, path)


def beside(default: Default) -> Manifest:
    """What has to stand beside a field, in its object."""
    section, _, name = default.path.partition(".")
    if default.kind.endswith("v1beta1") and section in _ENABLED and name not in ("", "enable"):
        return {section: {"enable": True}}
    return dict(_BESIDE.get(default.path, {}))


def world(kind: str, rows: Iterable[Default], *, written: bool) -> list[Manifest]:
    """The manifests without some fields, or with their defaults, in all objects of the kind."""
    made = []
    for item in deepcopy(WORLDS[kind]):
        if item["kind"] == _KIND.get(kind, kind):
            for default in rows:
                item = laid_over(item, beside(default))
                for holder, name in places(default, item):
                    holder.pop(name, None)
                    if written:
                        holder[name] = deepcopy(default.value)
        made.append(item)
    return made


def plugins_of(kind: str) -> tuple[str, ...]:
    """Whose decisions a kind is for."""
    if kind.startswith("ElasticQuota"):
        return ("elasticquota",)
    return ("default-preemption",) if kind.startswith("Kube") else ("kueue-classic", "fairsharing")


@cache
def happened(text: str, plugin: str) -> tuple[str, ...]:
    """Everything that a plugin decides with manifests."""
    spec = load().policy(plugin)
    cluster = cluster_from(yaml.safe_load(text), "test")

    def make(where: Cluster, view: View, given: Mapping[str, Any]) -> Policy:
        return spec.factory(where, view, resolve(spec.options, given, owner=plugin))

    there = [] if spec.running is None else spec.running(cluster, 0)
    return tuple(map(str, replayed(make, jobs().after(there), cluster, until=12_000).rows))


def decide_alike(kind: str, one: list[Manifest], other: list[Manifest]) -> bool:
    """Whether all plugins that a kind is for decide the same."""
    texts = yaml.safe_dump(one), yaml.safe_dump(other)
    return all(len({happened(text, plugin) for text in texts}) == 1 for plugin in plugins_of(kind))


@pytest.mark.parametrize("default", ROWS, ids=str)
def test_a_default_that_is_written_down_decides_as_one_that_is_left_out(default: Default) -> None:
    """The model of the cluster is the same, with its warnings; or what it keeps of it makes no difference."""
    without, with_it = (world(default.kind, [default], written=each) for each in (False, True))
    assert without != with_it
    read, written = (cluster_from(each, "test") for each in (without, with_it))
    assert read.warnings == written.warnings
    assert read.digest == written.digest or decide_alike(default.kind, without, with_it)


@pytest.mark.parametrize("kind", WORLDS)
def test_all_defaults_of_a_kind_that_are_written_down_at_once_decide_as_none(kind: str) -> None:
    """But for fields of sections that are absent by default, and those that need others beside them."""
    absent = tuple(f"{each.path}." for each in ROWS if each.kind == kind and each.value is None)
    rows = [
        each for each in ROWS if each.kind == kind and not beside(each) and not each.path.startswith(absent)
    ]
    assert decide_alike(kind, world(kind, rows, written=False), world(kind, rows, written=True))


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_without_a_configuration_kueue_decides_as_with_one_that_says_nothing(plugin: str) -> None:
    """That is, by the defaults of v1beta2."""
    told = happened(yaml.safe_dump([*KUEUE, CONFIGURATION]), plugin)
    assert happened(yaml.safe_dump([*KUEUE]), plugin) == told
    assert happened(yaml.safe_dump([*KUEUE, OLDER]), plugin) != told


def test_every_default_of_the_published_schemas_stands_in_its_table() -> None:
    """With its value, in every apiVersion; those of metadata and of pods are not the kinds' own."""
    rows = {(each.kind, each.path): each.value for each in ROWS}
    kinds = ("ClusterQueue", "Cohort", "LocalQueue", "Workload", "KubeSchedulerConfiguration")
    found = 0
    for listed in listed_kinds():
        if listed.kind in kinds and listed.group != "scheduling.k8s.io":
            for item in listed.fields:
                if item.default is not None and not item.path.startswith(
                    ("metadata", "spec.podSets[].template")
                ):
                    assert rows[listed.kind, item.path] == item.default, item.path
                    found += 1
    assert found > 30


def test_every_gate_that_is_modelled_stands_in_its_table() -> None:
    """With its default; those that the newest release does not have are on the page of releases."""
    kind = "Kueue's Configuration"
    gates = {each.path: each.value for each in ROWS if each.kind == kind}
    there = [name for name in GATES if not why_refused({name: is_on(name, NEWEST)}, NEWEST)]
    told = {f"featureGates.{name}": is_on(name, NEWEST) for name in there}
    assert {path: value for path, value in gates.items() if path.startswith("featureGates.")} == told
