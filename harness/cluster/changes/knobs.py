"""Lists and sets knobs, which are numbers in a cluster's manifests that users can change by name.

A knob is identified by a path, such as `ClusterQueue/team-a.weight` or
`ClusterQueue/team-a.quota[nvidia.com/gpu]`. If there are several flavors, the path names one of them:
`ClusterQueue/team-a.quota[a100/nvidia.com/gpu]`. `KNOBS` lists the knobs of built-in kinds, and the
registration of a plugin's kind lists its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from typing import Any, NamedTuple

from harness.base.errors import InputError
from harness.base.options import did_you_mean
from harness.base.text import first_of
from harness.base.units import exact_number, format_amount, parse_quantity, round_up
from harness.cluster.changes.remake import remade, require_manifests
from harness.cluster.changes.timed import has_times
from harness.cluster.kinds.elastic import is_koordinators
from harness.cluster.kinds.kind import Knob
from harness.cluster.kinds.table import KINDS
from harness.cluster.model import MOST_NODES, Cluster
from harness.cluster.yaml.documents import Document
from harness.cluster.yaml.fields import shown

Value = int | float | Fraction | str | None
"""The value of a knob, which is a number, or text as in manifests (`500m`, `64Gi`). None removes the field.
"""

Values = Mapping[str, Any]
"""The values of knobs by path. They can also be nested by object and knob, or by object, knob and resource.
"""


_WEIGHT = Knob("weight", "spec.fairSharing.weight")
_KUEUE = (
    Knob("quota", "nominalQuota", "flavor", needed=True),
    Knob("borrowingLimit", "borrowingLimit", "flavor"),
    Knob("lendingLimit", "lendingLimit", "flavor"),
    _WEIGHT,
)

KNOBS: Mapping[str, tuple[Knob, ...]] = {
    "ClusterQueue": _KUEUE,
    "Cohort": _KUEUE,
    "LocalQueue": (_WEIGHT,),
    "ElasticQuota": (Knob("min", "min", "resource"), Knob("max", "max", "resource")),
    "NodePool": (Knob("count", "spec.count", needed=True, whole=True),),
}
"""Maps each built-in kind to its knobs. Elastic quotas have the kind `ElasticQuota`, even within a tree."""

_PATH = re.compile(r"(?P<object>.+)\.(?P<knob>[A-Za-z]+)(?:\[(?P<key>.*)\])?", re.DOTALL)
_BILLION = 10**9
_SHOWN = 3

Place = tuple[str | int, ...]
"""The path to a field in a manifest, which consists of names and indices."""


def knobs(cluster: Cluster, pattern: str | None = None) -> dict[str, int | Fraction | None]:
    """Returns the knobs of a cluster by path, with their exact values in the unit that manifests use.

    The units are cores, bytes and devices. The values are those in the manifests, before the cluster is
    scaled. A value is None if the manifests don't set the field.

    In `pattern`, `*` matches any text. The default matches all knobs.

    Raises:
        InputError: the cluster has no manifests, or no knob matches the pattern.
    """
    require_manifests(cluster)
    settings = list(_settings(cluster))
    chosen = settings if pattern is None else _chosen(pattern, settings)
    return {each.path: _number(_get(cluster.manifests[each.manifest], each.place)) for each in chosen}


def with_values(cluster: Cluster, values: Values) -> Cluster:
    """Returns a copy of a cluster with new values for some knobs.

    For the form of the values, see `Cluster.with_values`. If there are several values for a knob, the last
    value applies.

    Raises:
        InputError: an object or knob does not exist, or a value has the wrong type.
        ClusterError: the manifests with these values are faulty.
    """
    changed: dict[int, Any] = {}
    for (at, place), written in turned_places(cluster, values).items():
        if at not in changed:
            changed[at] = deepcopy(dict(cluster.manifests[at]))
        _put(changed[at], place, written)
    said = [f"{path} = {value}" for path, value in _flat(values)]
    documents = [Document("", changed.get(at, content)) for at, content in enumerate(cluster.manifests)]
    return remade(cluster, documents, f"{cluster.source} with {first_of(said, _SHOWN)}")


def turned_places(cluster: Cluster, values: Values) -> dict[tuple[int, Place], int | str | None]:
    """Returns the values that knobs set, by the number of the manifest and the path of the field in it.

    Raises:
        InputError: an object or knob does not exist, or a value has the wrong type.
    """
    require_manifests(cluster)
    settings = list(_settings(cluster))
    return {
        (each.manifest, each.place): _written(each, value)
        for path, value in _flat(values)
        for each in _chosen(path, settings)
    }


# --- where knobs are --------------------------------------------------------------------------------------


class _Owner(NamedTuple):
    """An object that has knobs, or a quota of a tree that has knobs.

    Its content is at `place` in the manifest.
    """

    kind: str
    name: str
    manifest: int
    place: Place
    content: Mapping[str, Any]
    knobs: tuple[Knob, ...]


class _Setting(NamedTuple):
    """A knob of one object. `alone` is True if the resource identifies the knob without a flavor."""

    owner: str
    knob: Knob
    flavor: str
    resource: str
    alone: bool
    manifest: int
    place: Place

    @property
    def full(self) -> str:
        return f"{self.flavor}/{self.resource}" if self.flavor else self.resource

    @property
    def key(self) -> str:
        """The shortest key that no other knob of the same name has."""
        return self.resource if self.alone else self.full

    @property
    def path(self) -> str:
        return f"{self.owner}.{self.knob.name}" + (f"[{self.key}]" if self.knob.by else "")


def _settings(cluster: Cluster) -> Iterator[_Setting]:
    """Yields every knob of every object.

    The manifests have been read without a fault, so their fields have the right types.
    """
    owners = list(_owners(cluster))
    named: dict[str, dict[str, None]] = {}
    for owner in owners:
        for knob in owner.knobs:
            if knob.by == "resource":
                found = _get(owner.content, tuple(knob.field.split("."))) or ()
                named.setdefault(owner.kind, {}).update(dict.fromkeys(found))
    for owner in owners:
        name = f"{owner.kind}/{owner.name}"
        for knob in owner.knobs:
            if knob.by == "flavor":
                quotas = list(_flavors(owner.content))
                resources = [resource for _, resource, _ in quotas]
                for flavor, resource, place in quotas:
                    alone = resources.count(resource) == 1
                    yield _Setting(name, knob, flavor, resource, alone, owner.manifest, (*place, knob.field))
                continue
            for resource in named[owner.kind] if knob.by else ("",):
                place = (*owner.place, *knob.field.split("."), *((resource,) if resource else ()))
                yield _Setting(name, knob, "", resource, True, owner.manifest, place)


def _owners(cluster: Cluster) -> Iterator[_Owner]:
    tree = any(content.get("kind") == "ElasticQuotaTree" for content in cluster.manifests)
    for number, content in enumerate(cluster.manifests):
        kind = str(content.get("kind"))
        known = KINDS.get((str(content.get("apiVersion")).rpartition("/")[0], kind))
        if known is None:
            continue  # Karpenter has a kind NodePool too
        if has_times(content):
            continue  # a timed patch sets its values only for some time
        metadata = content.get("metadata") or {}
        name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "default")
        knobs = known.knobs or KNOBS.get(kind, ())
        if kind == "ElasticQuotaTree":
            yield from _quotas_below(number, content["spec"]["root"], ("spec", "root"))
        elif kind == "ElasticQuota":
            name = name if is_koordinators(metadata) else namespace
            if name in cluster.elastic_quotas and not tree:
                yield _Owner(kind, name, number, ("spec",), content.get("spec") or {}, knobs)
        elif knobs:
            inside = kind == "LocalQueue" or (known.knobs and "namespace" in metadata)
            name = f"{namespace}/{name}" if inside else name
            yield _Owner(kind, name, number, (), content, knobs)


def _quotas_below(number: int, node: Mapping[str, Any], place: Place) -> Iterator[_Owner]:
    yield _Owner("ElasticQuota", str(node.get("name")), number, place, node, KNOBS["ElasticQuota"])
    for at, child in enumerate(node.get("children") or ()):
        yield from _quotas_below(number, child, (*place, "children", at))


def _flavors(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Place]]:
    groups = (content.get("spec") or {}).get("resourceGroups") or ()
    for first, group in enumerate(groups):
        for second, flavor in enumerate(group.get("flavors") or ()):
            for third, item in enumerate(flavor.get("resources") or ()):
                place = ("spec", "resourceGroups", first, "flavors", second, "resources", third)
                yield str(flavor["name"]), str(item["name"]), place


# --- which knobs a path names -----------------------------------------------------------------------------


def _chosen(path: str, settings: Sequence[_Setting]) -> list[_Setting]:
    """Returns the knobs that a path names. There is at least one."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise InputError(
            f"{path!r} is not the path of a knob",
            hint="write KIND/NAME.KNOB or KIND/NAME.KNOB[RESOURCE], such as ClusterQueue/team-a.weight",
        )
    owner, name, key = match["object"], match["knob"], match["key"]
    found = [each for each in settings if like(owner, each.owner)]
    if not found:
        owners = dict.fromkeys(each.owner for each in settings)
        raise InputError(f"{path}: there is no {owner} with knobs", hint=did_you_mean(owner, owners))
    of_name = [each for each in found if each.knob.name == name]
    if not of_name:
        names = dict.fromkeys(each.knob.name for each in found)
        raise InputError(f"{path}: {owner} has no knob {name!r}", hint=did_you_mean(name, names))
    if not of_name[0].knob.by:
        if key is not None:
            raise InputError(f"{path}: {name} has one value for all resources", hint=f"write {owner}.{name}")
        return of_name
    keys = dict.fromkeys(each.key for each in of_name)
    if not key:
        raise InputError(f"{path}: {name} needs a resource", hint=f"write {owner}.{name}[{next(iter(keys))}]")
    chosen = [
        each for of in dict.fromkeys(each.owner for each in of_name) for each in _of_key(key, of, of_name)
    ]
    if not chosen:
        raise InputError(f"{path}: {owner} has no {name} for {key!r}", hint=did_you_mean(key, keys))
    return chosen


def _of_key(key: str, owner: str, settings: Sequence[_Setting]) -> list[_Setting]:
    own = [each for each in settings if each.owner == owner]
    exact = [each for each in own if each.flavor and like(key, each.full)]
    found = exact or [each for each in own if like(key, each.resource)]
    for each in () if exact else found:
        if not each.alone:
            flavors = [other.flavor for other in own if other.resource == each.resource]
            raise InputError(
                f"{owner} has {each.resource} in several flavors ({', '.join(flavors)}): name the flavor "
                f"of the {each.knob.name}",
                hint=f"{each.path}, or {owner}.{each.knob.name}[*/{each.resource}] for all of them",
            )
    return found


def like(pattern: str, text: str) -> bool:
    """Returns True if a text matches a pattern. A `*` in the pattern matches any text."""
    if "*" not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _flat(values: Values) -> Iterator[tuple[str, Any]]:
    given: Any = values
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            f"{shown(values)} sets no knob",
            hint='write {"ClusterQueue/team-a": {"weight": 2}} or {"ClusterQueue/team-a.weight": 2}',
        )
    for name, value in values.items():
        if not isinstance(value, Mapping):
            yield str(name), value
            continue
        for knob, inner in value.items():
            for key, turned in _by_resource(inner):
                yield f"{name}.{knob}{key}", turned


def _by_resource(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields (key, value) pairs from a value, or from a table by resource or by flavor and resource."""
    if not isinstance(value, Mapping):
        yield "", value
        return
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from ((f"[{name}/{resource}]", each) for resource, each in inner.items())
        else:
            yield f"[{name}]", inner


# --- values -----------------------------------------------------------------------------------------------


def _written(setting: _Setting, value: Any) -> int | str | None:
    """Returns a value as it appears in a manifest. None removes the field."""
    knob, path = setting.knob, setting.path
    if value is None:
        if knob.needed:
            raise InputError(f"{path} cannot be removed", hint="give a value of 0 or more")
        return None
    number = _exact(path, value)
    if number < 0:
        raise InputError(f"{path}: {value} is below 0", hint="give a value of 0 or more")
    if knob.whole:
        if number.denominator != 1 or not 1 <= number <= MOST_NODES:
            raise InputError(f"{path}: {value} is not a whole number from 1 to {MOST_NODES:,}")
        return int(number)
    if isinstance(value, str):
        return value
    if number.denominator == 1:
        return int(number)
    if knob.by:
        return format_amount(setting.resource, round_up(setting.resource, number))
    return f"{math.ceil(number * _BILLION)}n"


def _exact(path: str, value: Any) -> Fraction:
    try:
        if isinstance(value, str):
            return parse_quantity(value)
        if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool):
            return value if isinstance(value, Fraction) else exact_number(str(value))
    except (InputError, ValueError) as error:
        raise InputError(f"{path}: {error}", hint="write a number, or text such as 500m or 64Gi") from error
    raise InputError(
        f"{path}: {shown(value)} is not a value", hint="write a number, or text such as 500m or 64Gi"
    )


def _number(value: Any) -> int | Fraction | None:
    if value is None:
        return None
    number = parse_quantity(value)
    return int(number) if number.denominator == 1 else number


def _get(content: Any, place: Place) -> Any:
    for step in place:
        content = content[step] if isinstance(step, int) else (content or {}).get(step)
    return content


def _put(content: Any, place: Place, value: int | str | None) -> None:
    *way, last = place
    for step in way:
        if not isinstance(step, int) and not content.get(step):
            content[step] = {}
        content = content[step]
    if value is None:
        content.pop(last, None)
    else:
        content[last] = value
