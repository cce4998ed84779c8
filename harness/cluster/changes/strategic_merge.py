"""Implements Kubernetes' strategic merge for JSON values.

The fields of a patch override the fields of an object.

Mappings are merged field by field, and `null` deletes a field. If the items of a list have a key, the list is
merged item by item: existing items keep their positions, and new items are appended. Any other list is
replaced. The directives `$patch: delete` and `$patch: replace` apply to the mapping or item that contains
them. If an item consists only of a directive, the directive applies to the whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.base.errors import Fault
from harness.base.options import did_you_mean
from harness.cluster.yaml.fields import shown

DIRECTIVE = "$patch"
_DIRECTIVES = ("delete", "merge", "replace")

_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "admissionChecks": "name",
    "children": "name",
    "conditions": "type",
    "containers": "name",
    "disabled": "name",
    "enabled": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "flavors": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "pluginConfig": "name",
    "podSetAssignments": "name",
    "podSets": "name",
    "ports": "containerPort",
    "profiles": "schedulerName",
    "reclaimablePods": "name",
    "replicatedJobs": "name",
    "resourceClaims": "name",
    "resources": "name",
    "schedulingGates": "name",
    "taints": "key",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Maps the name of a list to the field that identifies its items.

Kubernetes defines the keys of its own kinds. In other kinds, the key is the field with the name of the item.
As in Kubernetes, some lists are replaced: tolerations, the node taints of a flavor, and the terms of
selectors and affinities. If a patch specifies effects, taints are also distinguished by effect, as in
`kubectl taint`.
"""

_USUAL = {"schedulerName": "default-scheduler"}
"""Maps a field that identifies items to the value that it has by default."""

_GROUPS = "resourceGroups"


class Added(NamedTuple):
    """A new item of a list, with the name of the list and the place of the item in the patch."""

    of: str
    item: Mapping[str, Any]
    said: str


@dataclass
class Merge:
    """Merges patches into one object.

    Attributes:
        where: the name of the patch in messages.
        added: the items that patches have added to lists.
    """

    where: str
    faults: list[Fault]
    added: list[Added] = field(default_factory=list)

    def merged(self, there: Any, patch: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the object with the patch applied, or None if the patch deletes the object.

        The original object does not change.
        """
        result = self._mapping(there, patch, "")
        return result if isinstance(result, dict) else None

    # --- mappings -----------------------------------------------------------------------------------------

    def _mapping(self, there: Any, patch: Mapping[str, Any], said: str) -> Any:
        """Returns a mapping with the patch applied, or `_GONE` if the patch deletes the mapping."""
        directive = self._directive(patch, said)
        if directive == "delete":
            return _GONE
        if directive == "replace" or not isinstance(there, Mapping):
            there = {}
        result = dict(there)
        for name, value in patch.items():
            if name.startswith("$"):
                continue
            merged = self._value(name, there.get(name), value, f"{said}.{name}" if said else name)
            if merged is _GONE:
                result.pop(name, None)
            else:
                result[name] = merged
        return result

    def _value(self, name: str, there: Any, patch: Any, said: str) -> Any:
        if patch is None:
            return _GONE
        if isinstance(patch, Mapping):
            return self._mapping(there, patch, said)
        if isinstance(patch, list):
            return self._list(name, there if isinstance(there, list) else [], patch, said)
        return patch

    def _directive(self, patch: Mapping[str, Any], said: str) -> str:
        for name in patch:
            if name.startswith("$") and name != DIRECTIVE:
                self._fault(said, f"{name} is not supported; use {DIRECTIVE}")
        value = patch.get(DIRECTIVE, "merge")
        if value not in _DIRECTIVES:
            self._fault(said, f"{DIRECTIVE} must be {', '.join(_DIRECTIVES)}, not {shown(value)}")
            return "merge"
        return str(value)

    # --- lists --------------------------------------------------------------------------------------------

    def _list(self, name: str, there: list[Any], patch: list[Any], said: str) -> Any:
        of_list = [item for item in patch if isinstance(item, Mapping) and list(item) == [DIRECTIVE]]
        for item in of_list:
            directive = self._directive(item, said)
            if directive == "delete":
                return _GONE
            if directive == "replace":
                there = []
        items = [(at, item) for at, item in enumerate(patch) if not any(item is each for each in of_list)]
        find = self._finder(name, [item for _, item in items], there)
        if find is None:
            return [self._whole(item, f"{said}[{at}]") for at, item in items]
        if there and not items:
            self._fault(said, f"an empty list changes nothing; [{{{DIRECTIVE}: delete}}] deletes the list")
        result = list(there)
        for number, item in items:
            place, before = f"{said}[{number}]", len(self.added)
            at = find(result, item, place)
            if at is None:
                continue
            if at == len(result) and item.get(DIRECTIVE) == "delete":
                self._not_there(name, result, item, place)
                continue
            merged = self._mapping(result[at] if at < len(result) else None, item, place)
            if at == len(result):
                self.added.append(Added(name, merged, place))
            result[at : at + 1] = [] if merged is _GONE else [merged]
            if name == _GROUPS and merged is not _GONE:
                self._check_covered(merged, self.added[before:])
        return result

    def _whole(self, item: Any, said: str) -> Any:
        merged = item if item is None else self._value("", None, item, said)
        if merged is _GONE:
            self._fault(
                said, f"the patch replaces this whole list; omit the item instead of adding {DIRECTIVE} to it"
            )
        return merged

    def _finder(self, name: str, items: Sequence[Any], there: Sequence[Any]) -> _Finder | None:
        """Returns the function that finds items of a list, or None if the patch replaces the whole list."""
        if name not in _KEYS and name != _GROUPS:
            return None
        if not all(isinstance(each, Mapping) for each in (*items, *there)):
            return None
        if name == _GROUPS:
            return self._group
        return self._by_key(_KEYS[name], effects=name == "taints")

    def _by_key(self, key: str, *, effects: bool) -> _Finder:
        """Returns the function that finds items by a key and, with `effects`, also by their effects."""

        def find(there: Sequence[Any], item: Mapping[str, Any], place: str) -> int | None:
            value = item.get(key, _USUAL.get(key))
            if value is None:
                self._fault(place, f"must have {key}, which identifies the items of this list")
                return None
            found = [
                at
                for at, each in enumerate(there)
                if each.get(key, _USUAL.get(key)) == value
                and not (effects and each.get("effect") != item.get("effect", each.get("effect")))
            ]
            if len(found) > 1:
                self._fault(place, f"{len(found)} items have the {key} {value!r}; replace the list instead")
                return None
            return found[0] if found else len(there)

        return find

    def _group(self, there: Sequence[Any], item: Mapping[str, Any], place: str) -> int | None:
        """Returns the index of the resource group that a patch refers to by covered resources or flavors."""
        resources, flavors = set(_texts(item.get("coveredResources"))), set(_names(item.get("flavors")))
        found = [at for at, each in enumerate(there) if set(_texts(each.get("coveredResources"))) & resources]
        if resources and not found:
            return len(there)
        if not resources:
            found = [at for at, each in enumerate(there) if set(_names(each.get("flavors"))) & flavors]
            if not found and len(there) == 1:
                found = [0]
        if len(found) == 1:
            return found[0]
        if found:
            self._fault(place, "spans several resource groups; write one item for each group")
        else:
            known = [name for each in there for name in _names(each.get("flavors"))]
            wanted = ", ".join(sorted(flavors)) or "which is meant"
            meant = "; ".join(did_you_mean(name, known) for name in sorted(flavors)[:1])
            self._fault(
                place, f"no resource group has {wanted}; {meant or 'write coveredResources or a flavor'}"
            )
        return None

    def _check_covered(self, group: Mapping[str, Any], added: Sequence[Added]) -> None:
        """Check that the group covers the new resources of a flavor.

        A resource that isn't covered is probably misspelled.
        """
        covered = list(_texts(group.get("coveredResources")))
        for each in added:
            resource = each.item.get("name")
            if each.of == "resources" and resource not in covered:
                what = f"the group does not cover {shown(resource)}; {did_you_mean(str(resource), covered)}"
                self._fault(each.said, what)

    def _not_there(self, name: str, there: Sequence[Any], item: Mapping[str, Any], place: str) -> None:
        key = _KEYS.get(name, "coveredResources")
        known = [str(each.get(key)) for each in there]
        what = f"there is no item with {key} {shown(item.get(key))} to delete"
        self._fault(place, f"{what}; {did_you_mean(str(item.get(key)), known)}")

    def _fault(self, said: str, what: str) -> None:
        self.faults.append(Fault(f"{self.where}: {said}" if said else self.where, what))


_Finder = Callable[[Sequence[Any], Mapping[str, Any], str], int | None]
"""A function that finds the index of an item. It returns the length of the list for a new item, or None after
a fault.
"""

_GONE: Any = object()  # marks a value that a patch deletes


def _texts(value: Any) -> Iterator[str]:
    yield from (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from _texts([each.get("name") for each in value if isinstance(each, Mapping)])
