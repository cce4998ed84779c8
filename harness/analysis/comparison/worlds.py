"""Lists the differences between two runs in their plugins, options, settings, traces and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.comparison.distinction import (
    CLUSTER,
    EVENTS,
    NODES,
    OPTION,
    PLUGIN,
    SETTING,
    TRACE,
    Distinction,
)
from harness.analysis.comparison.nodes import node_distinctions
from harness.analysis.comparison.pairs import trace_text
from harness.base.options import factor_text, option_text
from harness.base.text import first_of
from harness.base.units import exact_duration, format_amount
from harness.cluster.content import FLAVORS, NOTHING, QUOTAS, default_of
from harness.runs.epochs import summary
from harness.runs.run import Run
from harness.runs.settings import SETTINGS

_NONE = "none"
_SHORT = 12
_FACTORS = ("scale_arrivals", "scale_cluster")
_USUAL = {"scale_cluster": "1"}

_TOLD_OF_NEW = 4  # How many fields to show of an object that only one cluster has.
_NONE_COUNTED: Mapping[str, Any] = {"count": 0, "sha256": ""}

Info = Mapping[str, Any]


def distinctions(base: Run, run: Run, runs: Sequence[Run]) -> list[Distinction]:
    """Lists a run's differences from the baseline.

    `runs` contains all compared runs. If the baseline's plugin lacks an option, this option is listed only if
    its value differs between runs of the same plugin.
    """
    ours, theirs = base.info, run.info
    same_plugin = [
        each.info["policy"]["options"]
        for each in runs
        if each.info["policy"]["name"] == theirs["policy"]["name"]
    ]
    return [
        *_plugin(ours["policy"], theirs["policy"]),
        *_options(ours["policy"], theirs["policy"], same_plugin),
        *_settings(ours["settings"], theirs["settings"]),
        *_trace(base, run),
        *_events(ours["cluster"], theirs["cluster"]),
        *cluster_distinctions(ours["cluster"], theirs["cluster"]),
    ]


def _plugin(base: Info, other: Info) -> Iterator[Distinction]:
    if base["name"] != other["name"]:
        yield Distinction(PLUGIN, "", "", base["name"], other["name"])
    elif base.get("version") != other.get("version"):
        versions = [each.get("version") or _NONE for each in (base, other)]
        yield Distinction(PLUGIN, base["name"], "version", *versions)
    elif "code" in base and "code" in other and base["code"] != other["code"]:
        sums = [each["code"]["sha256"][:_SHORT] for each in (base, other)]
        yield Distinction(PLUGIN, base["name"], "code", *sums)


def _options(ours: Info, theirs: Info, same_plugin: Sequence[Info]) -> Iterator[Distinction]:
    """Yields the options that differ between the two runs, or among the runs of this plugin."""
    base, other = ours["options"], theirs["options"]
    for name, value in other.items():
        text = _option(theirs, name)
        if name in base and base[name] != value:
            yield Distinction(OPTION, name, "", _option(ours, name), text)
        elif name not in base and any(options.get(name) != value for options in same_plugin):
            yield Distinction(OPTION, name, "", None, text)


def _option(policy: Info, name: str) -> str:
    return option_text(policy["options"][name], duration=name in policy.get("durations", ()), nothing=_NONE)


def _settings(base: Info, other: Info) -> Iterator[Distinction]:
    for key in (setting.key for setting in SETTINGS.values()):
        drawn = key != "seed" or (key in base and key in other)
        if drawn and base.get(key) != other.get(key):
            values = [_setting(key, each.get(key)) for each in (base, other)]
            yield Distinction(SETTING, _called(key), "", *values)
    changes = [each.get("calibration", {}) for each in (base, other)]
    for step in dict.fromkeys((*changes[0], *changes[1])):
        values = [_setting(step, each.get(step, _USUAL.get(step))) for each in changes]
        if values[0] != values[1]:
            yield Distinction(SETTING, _called(step), "", *values)


def _trace(base: Run, run: Run) -> Iterator[Distinction]:
    if base.info["trace"]["sha256"] != run.info["trace"]["sha256"]:
        yield Distinction(TRACE, "", "", trace_text(base), trace_text(run))


def _events(base: Info, other: Info) -> Iterator[Distinction]:
    found = [each.get("events", []) for each in (base, other)]
    if found[0] != found[1]:
        yield Distinction(EVENTS, "", "", *(summary(each) or None for each in found))


def _called(key: str) -> str:
    return f"--{key.removesuffix('_us').replace('_', '-')}"


def _setting(key: str, value: Any) -> str:
    if value is None:
        return _NONE
    if key in _FACTORS:
        return factor_text(value)
    return exact_duration(value) if key.endswith("_us") else str(value)


def cluster_distinctions(base: Info, other: Info) -> list[Distinction]:
    """Lists the differences object by object; `base` and `other` are the `cluster` entries of `run.json`."""
    if base["sha256"] == other["sha256"]:
        return []
    if "content" not in base or "content" not in other:
        unknown = "a run of schema 2 records only the size and the quotas of its cluster"
        return [Distinction(CLUSTER, "", unknown, None, None), *_sizes(base, other)]
    mine, theirs = base["content"], other["content"]
    found = [
        *_objects(mine["objects"], theirs["objects"]),
        *node_distinctions(mine, theirs),
        *_counted(mine["counted"], theirs["counted"]),
    ]
    if not found and base.get("events") != other.get("events"):
        return []  # If the number of events differs, a separate distinction says so.
    same = "the manifests differ only in parts that harness does not model, such as the order of objects"
    return found or [Distinction(CLUSTER, "", same, None, None)]


# --- objects ----------------------------------------------------------------------------------------------


def _objects(base: Info, other: Info) -> Iterator[Distinction]:
    """Yields differences between objects. If only one cluster has an object, its first fields are shown."""
    for kind in dict.fromkeys((*base, *other)):
        mine, theirs = base.get(kind, {}), other.get(kind, {})
        for name in sorted({*mine, *theirs}):
            before, after = mine.get(name), theirs.get(name)
            if before is None:
                yield Distinction(kind, name, "", None, _fields(after))
            elif after is None:
                yield Distinction(kind, name, "", _fields(before), None)
            elif before != after:
                yield from _changes(kind, name, before, after)


def _changes(kind: str, name: str, before: Info, after: Info) -> Iterator[Distinction]:
    plain = not len({flavor for flavor in map(_flavor, (*before, *after)) if flavor}) > 1
    for field in dict.fromkeys((*before, *after)):
        values = [each.get(field) or _not_given(kind, field, each) for each in (before, after)]
        if values[0] != values[1]:
            yield Distinction(kind, name, _short(field) if plain else field, *values)


def _not_given(kind: str, field: str, fields: Info) -> str:
    """Returns the value of a field that an object omits. The name of a single flavor is in its quotas."""
    if field == FLAVORS:
        return next(filter(None, map(_flavor, fields)), NOTHING)
    return default_of(kind, field)


def _fields(fields: Info) -> str:
    plain = not len({flavor for flavor in map(_flavor, fields) if flavor}) > 1
    told = [f"{_short(field) if plain else field} {value}" for field, value in fields.items()]
    return first_of(told, _TOLD_OF_NEW, "field")


def _flavor(field: str) -> str:
    """Returns the flavor in a field's name, such as `nominal default/cpu`; "" if the name has none."""
    word, _, rest = field.partition(" ")
    return rest.partition("/")[0] if word in QUOTAS else ""


def _short(field: str) -> str:
    flavor = _flavor(field)
    return field.replace(f" {flavor}/", " ", 1) if flavor else field


# --- counted objects, and runs that record little of a cluster ------------------------------------------


def _counted(base: Info, other: Info) -> Iterator[Distinction]:
    for what in dict.fromkeys((*base, *other)):
        before, after = (each.get(what, _NONE_COUNTED) for each in (base, other))
        if before["count"] != after["count"]:
            yield Distinction(what, "", "count", f"{before['count']:,}", f"{after['count']:,}")
        elif before != after:
            yield Distinction(what, "", "sha256", before["sha256"], after["sha256"])


def _sizes(base: Info, other: Info) -> Iterator[Distinction]:
    if base["nodes"] != other["nodes"]:
        yield Distinction(NODES, "", "count", f"{base['nodes']:,}", f"{other['nodes']:,}")
    for resource in sorted({*base["capacity"], *other["capacity"]}):
        sizes = [format_amount(resource, each["capacity"].get(resource, 0)) for each in (base, other)]
        if sizes[0] != sizes[1]:
            yield Distinction(CLUSTER, "", f"capacity {resource}", *sizes)
    mine, theirs = ({name: _plain(each) for name, each in info["queues"].items()} for info in (base, other))
    yield from _objects({"queue": mine}, {"queue": theirs})


def _plain(queue: Info) -> dict[str, str]:
    nominal = {f"nominal {key}": format_amount(key, amount) for key, amount in queue["nominal"].items()}
    return {"cohort": queue["cohort"] or NOTHING, "weight": queue["weight"], **nominal}
