"""Creates a `Cluster` from manifests in files or in memory, or reports all of their faults together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, Fault
from harness.base.frozen import Frozen
from harness.base.json_text import mapping_of
from harness.base.options import did_you_mean
from harness.cluster.changes.timed import OverTime, check_names, check_objects, has_times
from harness.cluster.coverage.not_read import NOT_READ as KINDS_NOT_READ
from harness.cluster.draft import INDEX, NOT_READ, Draft, unmodelled
from harness.cluster.kinds.active_checks import with_active_checks
from harness.cluster.kinds.kind import Kind
from harness.cluster.kinds.kueue import implied_cohorts
from harness.cluster.kinds.kueue_configuration import GATES, with_gates
from harness.cluster.kinds.kueue_controller import controller_gates, is_kueue_controller, kueue_controller
from harness.cluster.kinds.table import CHECKS, KINDS, KUEUE_CONFIGURATION, Kinds
from harness.cluster.model import Cluster, frozen
from harness.cluster.owners import matched
from harness.cluster.yaml.documents import Document, read_documents
from harness.cluster.yaml.fields import Fields, WebhookFault, shown
from harness.cluster.yaml.sources import files_of, text_of

_CONFIGURATION = "controller_manager_config.yaml"
"""The key of Kueue's ConfigMap `kueue-manager-config` that contains the Configuration."""

_SCHEDULERS = re.compile(r"""^["{\s]*(?:apiVersion|kind)\b.*KubeSchedulerConfiguration""", re.MULTILINE)
"""Matches the text of a KubeSchedulerConfiguration in a ConfigMap, whose key is not always the same."""


def load_cluster(path: str | Path) -> Cluster:
    """Load the cluster that manifests describe, as printed by `kubectl get -o yaml` or `-o json`.

    Args:
        path: a file (plain or gzipped), a folder, or `-` for standard input. Several paths, separated by
            commas, form one cluster. A folder stands for all .yaml, .yml and .json files (also .gz) in it and
            its subfolders, sorted by path, except for hidden files.

    Raises:
        ClusterError: a file can't be read, or its manifests are faulty. Each fault states the document,
            object and field, and the file if there are several.
    """
    path, faults = Path(path), list[Fault]()
    documents, complete = read_manifests(path, faults)
    if not documents and not faults:
        raise ClusterError(
            str(path), [Fault("", "holds no manifest")], hint="kubectl get nodes,clusterqueues -o yaml > FILE"
        )
    made = replace(cluster_of(documents, str(path), faults, complete=complete), files=(str(path),))
    made.__dict__["follows_manifests"] = True
    return made


def read_manifests(path: Path, faults: list[Fault]) -> tuple[list[Document], bool]:
    """Returns the documents of files and folders as they are, and whether all documents could be read.

    Raises:
        ClusterError: a file can't be read at all.
    """
    documents: list[Document] = []
    complete = True
    for where, file in files_of(path):
        found, whole = _documents(file, where, faults)
        documents += found
        complete = complete and whole
    return documents, complete


def _documents(path: Path, where: str, faults: list[Fault]) -> tuple[list[Document], bool]:
    """Returns the documents of a file, and whether all could be read. Messages start with `where`."""
    own: list[Fault] = []
    documents, complete = read_documents(text_of(path), own)
    if where:
        documents = [Document(f"{where}, {each.where}", each.content) for each in documents]
        own = [Fault(f"{where}, {fault.where}", fault.what) for fault in own]
    faults += own
    return documents, complete


def cluster_from(
    documents: Iterable[Mapping[str, Any]], source: str, *, webhooks: bool = True, kinds: Kinds = KINDS
) -> Cluster:
    """Make the cluster that parsed manifests describe.

    Args:
        documents: manifests as JSON values. The cluster keeps references to them, so don't change them later.
        source: the origin of the manifests, for messages.
        webhooks: False accepts objects that the admission webhooks of a cluster would reject. A component
            that runs without an API server accepts them, too.
        kinds: the kinds to read. The default is the built-in kinds and the kinds of installed plugins.

    Raises:
        ClusterError: the manifests are faulty.
    """
    numbered = [Document(f"document {number}", content) for number, content in enumerate(documents, 1)]
    return cluster_of(numbered, source, [], webhooks=webhooks, kinds=kinds)


def cluster_of(
    documents: Iterable[Document],
    source: str,
    faults: list[Fault],
    *,
    complete: bool = True,
    webhooks: bool = True,
    kinds: Kinds = KINDS,
    at_once: bool = False,
) -> Cluster:
    """Make the cluster that documents describe. See `cluster_from`.

    `faults` are the faults found so far. If a document could not be read, `complete` is false, and references
    to missing objects are not faults. `at_once` says whether the documents apply at one time, and lack the
    annotations with their own times.

    Raises:
        ClusterError: there are faults.
    """
    draft = Draft(faults=faults)
    not_read: Counter[tuple[str, str]] = Counter()
    brought: dict[Callable[[Draft], None], None] = {}
    items = [item for document in documents for item in unpacked(document, faults)]
    manifests = [item.content for item in items]
    for item in () if at_once else items:
        check_names(item, faults)
    check_objects(items, faults)
    timed = [content for content in manifests if has_times(content)]
    if timed:
        items = list(OverTime(items, faults).at_first())
    for item in items:
        known = read_object(item, draft, not_read, kinds)
        if known is not None and known.check is not None:
            brought[known.check] = None
    if complete:  # otherwise, objects of a broken document would seem to be missing
        for check in (*CHECKS, *brought):
            check(draft)
    if not webhooks:
        faults = [fault for fault in faults if not isinstance(fault, WebhookFault)]
    if faults:
        raise ClusterError(source, faults)
    workloads, pods = matched(
        tuple(draft.workloads.values()), draft.pods.values(), draft.succeeded, manifests
    )
    gates = controller_gates(manifests)
    for name in sorted(gates.keys() - set(GATES)):
        what = f"--feature-gates sets {name}, but harness assumes that this gate has its default value"
        draft.warnings.add("Kueue's controller", "", what)
    for each in workloads:
        if each.job_ended:
            draft.warnings.add("Workload", each.key, "counts as finished, because its job has ended")
    return Cluster(
        nodes=frozen(draft.nodes),
        namespaces=frozen(draft.namespaces),
        priority_classes=frozen(draft.priority_classes),
        workload_priority_classes=frozen(draft.workload_priority_classes),
        topologies=frozen(draft.topologies),
        flavors=frozen(draft.flavors),
        cluster_queues=frozen(with_active_checks(draft.cluster_queues, manifests)),
        cohorts=frozen(implied_cohorts(draft)),
        local_queues=Frozen(draft.local_queues),
        workloads=workloads,
        pods=pods,
        disruption_budgets=tuple(draft.disruption_budgets.values()),
        pod_groups=Frozen(draft.pod_groups),
        scheduling_groups=Frozen(draft.scheduling_groups),
        claim_templates=Frozen(draft.claim_templates),
        runtime_classes=frozen(draft.runtime_classes),
        limit_ranges=Frozen(draft.limit_ranges),
        elastic_quotas=frozen(draft.quotas),
        custom_resources=frozen(
            {kind: frozen(found) for kind, found in sorted(draft.brought.items()) if found}
        ),
        scheduler=next(iter(draft.schedulers.values()), None),
        kueue=with_gates(next(iter(draft.kueue_configurations), None), gates),
        kueue_controller=kueue_controller(manifests),
        warnings=(
            *draft.warnings.sentences(),
            *(_said_of(*kind, count) for kind, count in sorted(not_read.items()) if count),
        ),
        source=source,
        manifests=tuple(manifests),
        timed=tuple(timed),
    )


def _said_of(kind: str, version: str, count: int) -> str:
    instead = KINDS_NOT_READ.get((version.rpartition("/")[0], kind))
    objects = "object is" if count == 1 else "objects are"
    return f"{kind} ({version}): {count:,} {objects} {NOT_READ}" + (f": {instead}" if instead else "")


_TABLE = ("NAME ", "NAMESPACE ")
"""The beginnings of the tables that `kubectl get` prints by default."""


def unpacked(document: Document, faults: list[Fault]) -> Iterator[Document]:
    """Yields the objects of a document, which is either one object or a `kubectl get` list of objects.

    A ConfigMap of Kueue or of a scheduler is replaced by the configurations that it contains as text.
    """
    content = document.content
    if not isinstance(content, Mapping):
        remedy = "; add -o yaml to kubectl get" if str(content).startswith(_TABLE) else ""
        faults.append(Fault(document.where, f"must be a Kubernetes object, not {shown(content)}{remedy}"))
        return
    kind, items = content.get("kind"), content.get("items")
    if kind == "ConfigMap":
        yield from _configurations_in(document, faults)
        return
    if not (isinstance(kind, str) and kind.endswith("List") and "items" in content):
        yield document
        return
    if items is None:  # Go writes an empty list as null
        return
    if not isinstance(items, list):
        faults.append(Fault(f"{document.where}: items", f"must be a list, not {shown(items)}"))
        return
    # In a typed list, the API server omits the kind and apiVersion of the items, because the kind of the list
    # implies them.
    implied = (
        {} if kind == "List" else {"apiVersion": content.get("apiVersion"), "kind": kind[: -len("List")]}
    )
    for number, item in enumerate(items, 1):
        missing = implied if isinstance(item, Mapping) else {}
        missing = {name: value for name, value in missing.items() if name not in item}
        where = f"{document.where}, item {number}"
        yield from unpacked(Document(where, {**missing, **item} if missing else item), faults)


def _configurations_in(config_map: Document, faults: list[Fault]) -> Iterator[Document]:
    """Yields the configurations of Kueue or a scheduler in a ConfigMap, or else the ConfigMap itself."""
    data = mapping_of(config_map.content, "data")
    texts = {key: text for key, text in data.items() if isinstance(text, str) and _configures(key, text)}
    if not texts:
        yield config_map
    for key, text in texts.items():
        where = f"{config_map.where}, ConfigMap {_name(config_map.content)}".rstrip() + f", {key}"
        own: list[Fault] = []
        for each in read_documents(text, own)[0]:
            yield Document(f"{where}, {each.where}", each.content)
        faults += (Fault(f"{where}, {fault.where}", fault.what) for fault in own)


def _configures(key: str, text: str) -> bool:
    of_kueue = key == _CONFIGURATION and KUEUE_CONFIGURATION in text  # other controllers use this key, too
    return of_kueue or _SCHEDULERS.search(text) is not None


def read_object(
    document: Document, draft: Draft, not_read: Counter[tuple[str, str]], kinds: Kinds = KINDS
) -> Kind | None:
    """Read one object into the draft, and warn about its unmodelled fields.

    The result is the object's kind. If harness does not read this kind, the result is None, and the object is
    counted in `not_read`.
    """
    content: Mapping[str, Any] = document.content
    kind, version, name = content.get("kind"), content.get("apiVersion"), _name(content)
    if not isinstance(kind, str) or not isinstance(version, str) or not kind or not version:
        draft.faults.append(Fault(document.where, "must have 'kind' and 'apiVersion', both as text"))
        return None
    where = f"{document.where}, {kind} {name}" if document.where else f"{kind} {name}"
    fields = Fields(content, where.rstrip(), draft.faults)
    group, _, number = version.rpartition("/")
    known = kinds.get((group, kind))
    if known is None:
        not_read[kind, version] += not is_kueue_controller(content)
        return None
    if number not in known.versions:
        wanted = " or ".join(f"{group}/{known}" if group else known for known in known.versions)
        fields.fault("apiVersion", f"{version} is not supported; use {wanted}")
        return None
    before = len(draft.faults)
    known.read(fields, draft)
    for path, word in fields.words():
        draft.warnings.add(
            kind, name, f"{path} is text here, but an API server reads {word} without quotes as a boolean"
        )
    for found in known.coverage.of(number).findings(content):
        path = found.path
        if found.wanted:
            faulty = {INDEX.sub("[]", fault.where) for fault in draft.faults[before:]}
            if f"{fields.where}: {path}" not in faulty:  # no reader has read the field
                fields.fault(path, f"must be {found.wanted}")
        elif known.coverage.strict and found.row is None:
            hint = did_you_mean(path.rpartition(".")[2], found.known)
            fields.fault(path, f"is not a field of {kind} in {version}, so an API server refuses it; {hint}")
        else:
            draft.warnings.add(kind, name, unmodelled(found))
    return known


def _name(content: Mapping[str, Any]) -> str:
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return ""
    namespace, name = metadata.get("namespace"), str(metadata["name"])
    return f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name
