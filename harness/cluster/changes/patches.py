"""Applies patches to the manifests of a cluster, in the same way as kustomize's strategic merge.

A patch consists of documents that contain a kind, a name, and only the fields that change. A patch can change
only existing objects. If an object, field or item does not exist, the fault states the place and suggests a
similar name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault
from harness.base.json_text import DEEPEST, mapping_of
from harness.base.options import did_you_mean
from harness.cluster.changes.event_rows import event_documents
from harness.cluster.changes.event_table import is_row, is_table, read_table, rows_of
from harness.cluster.changes.over_time import check_states
from harness.cluster.changes.remake import remade, require_manifests
from harness.cluster.changes.strategic_merge import DIRECTIVE, Added, Merge
from harness.cluster.changes.timed import FROM, has_times, timed
from harness.cluster.coverage.verdicts import Place
from harness.cluster.draft import INDEX
from harness.cluster.kinds.core import node_names, unpooled
from harness.cluster.kinds.table import KINDS
from harness.cluster.load import read_manifests, unpacked
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document
from harness.cluster.yaml.fields import shown

Patch = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]
"""A file or folder of patch documents, an event table (CSV or Parquet), or documents or rows as Python
values.
"""

_IN_PYTHON = "the patch"


def patched(cluster: Cluster, patch: Patch) -> Cluster:
    """Returns a copy of a cluster with a patch applied to its manifests.

    If the cluster was derived from a trace, the patch applies to its assumed manifests.

    Raises:
        ClusterError: the patch can't be read, refers to something that doesn't exist, or makes the
            manifests faulty.
        InputError: the cluster has no manifests.
    """
    require_manifests(cluster)
    source = str(patch) if isinstance(patch, (str, Path)) else _IN_PYTHON
    faults: list[Fault] = []
    documents = _documents(cluster, patch, faults)
    patches = [item for document in documents for item in unpacked(document, faults)]
    table = isinstance(patch, (str, Path)) and is_table(Path(patch))
    if not (patches or faults or table):  # a table without rows is a log in which nothing changed
        faults.append(Fault("", "contains no document; write 'kind', 'metadata.name' and the changed fields"))
    targets = [_target(each.content) for each in patches]
    names = {each.name for each in targets if each.kind == "Node"}
    world = _World(list(unpooled(cluster.manifests, names)), faults, cluster.manifests)
    for document in patches:
        if has_times(document.content):
            world.change_later(document)
        else:
            world.change(document)
    if not faults:
        world.check()
    if faults:
        raise ClusterError(source, faults)
    again = cluster.files and isinstance(patch, (str, Path))
    documents = world.documents()
    made = remade(cluster, documents, f"{cluster.source} with {source}")
    made = replace(made, files=(*cluster.files, source) if again else ())
    check_states(made, documents)
    return made


def _documents(cluster: Cluster, patch: Patch, faults: list[Fault]) -> Sequence[Document]:
    if isinstance(patch, (str, Path)):
        path = Path(patch)
        if is_table(path):
            return event_documents(cluster, read_table(path, faults), faults)
        return read_manifests(path, faults)[0]
    given: Any = patch
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
    if any(map(is_row, several)):
        return event_documents(cluster, rows_of(several, _IN_PYTHON, faults), faults)
    found = []
    for number, content in enumerate(several, 1):
        where = f"document {number}"
        wrong = _not_plain(content)
        if wrong:
            faults.append(Fault(where, wrong))
        else:
            found.append(Document(where, content))
    return found


def _not_plain(content: Any) -> str:
    """Returns a sentence about a part of a value that manifests can't contain, or "" if all are valid."""
    level = [content]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                if not all(isinstance(key, str) for key in value):
                    return "the names of fields must be text"
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif not (value is None or isinstance(value, (str, int, float))):
                return f"{shown(value)} is a {type(value).__name__}; write text, numbers, lists and mappings"
        if not inner:
            return ""
        level = inner
    return f"is nested more than {DEEPEST} levels deep"


class _Target(NamedTuple):
    """The object that a patch names. Parts that the patch doesn't specify are empty."""

    kind: str
    name: str
    namespace: str
    version: str

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name
        return f"{self.kind} {name}".rstrip()


def _target(content: Mapping[str, Any]) -> _Target:
    given = mapping_of(content, "metadata")
    kind, version = content.get("kind"), content.get("apiVersion")
    name, space = given.get("name"), given.get("namespace")
    return _Target(
        kind if isinstance(kind, str) else "",
        name if isinstance(name, str) else "",
        space if isinstance(space, str) else "",
        version if isinstance(version, str) else "",
    )


class _World:
    """The manifests of a cluster while patches are applied to them.

    If a patch names a node of a pool, `manifests` contain the pool's Nodes instead of the pool. `given` are
    the original manifests, with all pools.
    """

    def __init__(
        self, manifests: Sequence[Mapping[str, Any]], faults: list[Fault], given: Sequence[Mapping[str, Any]]
    ) -> None:
        self._given = given
        self._objects: list[Mapping[str, Any] | None] = list(manifests)
        self._faults = faults
        self._places: dict[str, list[int]] = {}
        self._named: dict[tuple[str, str], list[int]] = {}
        self._later: dict[int, int] = {}  # number of a timed patch -> number of the object that it changes
        first: dict[_Target, int] = {}
        for at, content in enumerate(manifests):
            target = _target(content)
            if target in first and has_times(content):
                self._later[at] = first[target]
                continue
            first.setdefault(target, at)
            self._places.setdefault(target.kind, []).append(at)
            self._named.setdefault((target.kind, target.name), []).append(at)
        self._patches: list[tuple[int, Document, Merge]] = []
        self._added: list[Document] = []

    def change(self, document: Document) -> None:
        """Apply one document to the object that it names, and to the timed patches of that object."""
        at, where = self._find(document)
        if at is None:
            return
        if at in self._later.values():
            metadata = document.content["metadata"]
            annotations = {**(metadata.get("annotations") or {}), FROM: "0"}
            content = {**document.content, "metadata": {**metadata, "annotations": annotations}}
            self.change_later(Document(document.where, content))
            return
        merge = Merge(where, self._faults)
        self._objects[at] = merge.merged(self._objects[at], document.content)
        self._patches.append((at, document, merge))

    def change_later(self, document: Document) -> None:
        """Apply a document with a time to the object that it names."""
        plain = timed(document, self._faults).document
        at, where = self._find(plain)
        if at is None:
            return
        there = self._objects[at]
        merge = Merge(where, self._faults)
        merge.merged(there, plain.content)
        self._patches.append((at, plain, merge))
        target = _target(there or {})
        exact = {"name": target.name, **({"namespace": target.namespace} if target.namespace else {})}
        metadata = {**document.content["metadata"], **exact}
        content = {**document.content, "apiVersion": target.version, "metadata": metadata}
        self._added.append(Document(document.where, content))
        self._later[len(self._objects) + len(self._added)] = at

    def documents(self) -> list[Document]:
        """Returns the remaining objects and their timed patches.

        If a changed object is faulty, the fault names the last patch of the object.
        """
        said = {at: document.where for at, document, _ in self._patches}
        gone = {at for at, content in enumerate(self._objects) if content is None}
        left = [
            Document(said.get(at, ""), content)
            for at, content in enumerate(self._objects)
            if content is not None and self._later.get(at) not in gone
        ]
        return [*left, *self._added]

    # --- which object -------------------------------------------------------------------------------------

    def _find(self, document: Document) -> tuple[int | None, str]:
        """Returns the number of the object that a patch names, and the name of the patch in messages.

        If there is no such object, a fault is added.
        """
        wanted = _target(document.content)
        where = f"{document.where}, {wanted}".rstrip(", ")
        return self._number(wanted, where), where

    def _number(self, wanted: _Target, where: str) -> int | None:
        if not wanted.kind:
            self._faults.append(Fault(where, "must have 'kind' and 'metadata.name' of the changed object"))
            return None
        named = self._there(self._named.get((wanted.kind, wanted.name), ()))
        if named:
            return self._exactly(wanted, named, where)
        there = self._there(self._places.get(wanted.kind, ()))
        pools = node_names(self._given) if wanted.kind in ("Node", "NodePool") else {}
        if wanted.kind == "NodePool" and wanted.name in pools:
            what = "another document changes one node of this pool, so the pool's nodes are separate Nodes"
            self._faults.append(Fault(where, f"{what}; change either the nodes or the pool, but not both"))
            return None
        of_pools = chain.from_iterable(pools.values()) if wanted.kind == "Node" else ()
        if not there and not pools:
            kinds = [
                kind for kind, places in self._places.items() if any(map(self._objects.__getitem__, places))
            ]
            what = f"the cluster has no {wanted.kind}; {did_you_mean(wanted.kind, kinds)}"
            self._faults.append(Fault(where, what))
            return None
        names = {*(each.name for each in there.values()), *of_pools} - {""}
        what = f"there is no {wanted.kind} {wanted.name!r}" if wanted.name else "metadata.name is missing"
        self._faults.append(Fault(where, f"{what}; {did_you_mean(wanted.name, names)}"))
        return None

    def _there(self, places: Iterable[int]) -> dict[int, _Target]:
        return {at: _target(content) for at in places if (content := self._objects[at])}

    def _exactly(self, wanted: _Target, named: Mapping[int, _Target], where: str) -> int | None:
        """Returns the object with this namespace and apiVersion, if several objects have the same name."""
        if wanted.namespace:
            spaces = {each.namespace or "default" for each in named.values()}
            named = {
                at: each for at, each in named.items() if (each.namespace or "default") == wanted.namespace
            }
            if not named:
                what = f"the object is in the namespace {', '.join(sorted(spaces))}, not {wanted.namespace}"
                self._faults.append(Fault(where, what))
                return None
        if wanted.version:
            versions = {each.version for each in named.values()}
            named = {at: each for at, each in named.items() if each.version == wanted.version}
            if not named:
                what = f"the object has the apiVersion {', '.join(sorted(versions))}, not {wanted.version}"
                self._faults.append(Fault(where, f"{what}; use that version, or omit the field"))
                return None
        if len(named) > 1:
            several = ", ".join(sorted(f"{each.version} {each}" for each in named.values()))
            self._faults.append(
                Fault(where, f"metadata.namespace or apiVersion must select one of these: {several}")
            )
            return None
        return next(iter(named))

    # --- what a kind has ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that patches use only fields that exist in their kinds, and add only plausible items."""
        for at, document, merge in self._patches:
            content = self._objects[at]
            if content is None:
                continue
            target = _target(content)
            group, _, version = target.version.rpartition("/")
            known = KINDS.get((group, target.kind))
            if known is not None and version in known.versions:
                check = _Check(merge.where, target.kind, self._faults)
                check.fields(document.content, known.coverage.of(version), "")
            for added in merge.added:
                self._check_added(added, merge.where)

    def _check_added(self, added: Added, where: str) -> None:
        """Check that the ResourceFlavor of a new flavor exists, and that a new quota is complete.

        Otherwise, the name is probably misspelled.
        """
        name = str(added.item.get("name", ""))
        if added.of == "flavors":
            flavors = [
                _target(content).name
                for at in self._places.get("ResourceFlavor", ())
                if (content := self._objects[at]) is not None
            ]
            if name not in flavors:
                what = f"there is neither a flavor {name!r} in this list nor a ResourceFlavor of that name"
                self._faults.append(Fault(f"{where}: {added.said}", f"{what}; {did_you_mean(name, flavors)}"))
        elif added.of == "children" and not ("min" in added.item and "max" in added.item):
            what = f"there is no quota {name!r} in this list; a new quota must have 'min' and 'max'"
            self._faults.append(Fault(f"{where}: {added.said}", what))


class _Check(NamedTuple):
    """Compares the fields of a patch with the fields of a kind."""

    where: str
    kind: str
    faults: list[Fault]

    def fields(self, patch: Mapping[str, Any], known: Place, path: str) -> None:
        if known.covers is not None or known.ends:
            return
        for name, value in patch.items():
            if name == DIRECTIVE:
                continue
            place = f"{path}.{name}" if path else name
            inner = known.find(name)
            if inner is None:
                self._unknown(name, place, known)
            elif isinstance(value, Mapping):
                self.fields(value, inner, place)
            elif isinstance(value, list) and inner.item is not None:
                for number, item in enumerate(value):
                    if isinstance(item, Mapping):
                        self.fields(item, inner.item, f"{place}[{number}]")

    def _unknown(self, name: str, place: str, known: Place) -> None:
        below = place.rpartition(".")[0]
        what = f"{self.kind} has no field {name}" + (f" in {INDEX.sub('[]', below)}" if below else "")
        self.faults.append(Fault(f"{self.where}: {place}", f"{what}; {did_you_mean(name, known.names)}"))
