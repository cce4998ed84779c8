"""Reads the topology request of each row, from columns or from Kueue's annotations in a pod template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from harness.base.json_text import mapping_of, parse_json
from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.cluster.kinds.topology import LAYERS, PODSET
from harness.trace.job_rows import pods_of
from harness.trace.rules import Rule

REQUIRED = "topology_required"
PREFERRED = "topology_preferred"
UNCONSTRAINED = "topology_unconstrained"
SLICE = "topology_slice"
SLICE_SIZE = "topology_slice_size"
GROUP = "topology_group"

_ONE_OF = (REQUIRED, PREFERRED, UNCONSTRAINED)
_MOST_LAYERS = 3
_ANNOTATIONS: Mapping[str, str] = {
    REQUIRED: f"{PODSET}required-topology",
    PREFERRED: f"{PODSET}preferred-topology",
    UNCONSTRAINED: f"{PODSET}unconstrained-topology",
    SLICE: f"{PODSET}slice-required-topology",
    SLICE_SIZE: f"{PODSET}slice-size",
    GROUP: f"{PODSET}group-name",
}
"""Maps columns to the equivalent annotations of a pod template. Kueue's job controllers read these
annotations.
"""
_NONE_SAID = dict.fromkeys(_ANNOTATIONS)


def topology_rules(frame: pl.DataFrame) -> Iterator[Rule]:
    """Yields the rules for the topology columns of a row. See `wrong_annotations` for templates."""
    said = [_said(name) for name in _ONE_OF if name in frame.columns]
    names = [name for name in _ONE_OF if name in frame.columns]
    for name in (REQUIRED, PREFERRED, SLICE, GROUP):
        if name in frame.columns:
            yield Rule(name, pl.col(name) == "", "is empty")
    for at, name in enumerate(names[1:], start=1):
        before = pl.any_horizontal(said[:at])
        yield Rule(name, _said(name) & before, f"is one of {', '.join(_ONE_OF)}: a pod set can have only one")
    if SLICE_SIZE in frame.columns:
        yield Rule(SLICE_SIZE, pl.col(SLICE_SIZE) < 1, "must be at least 1")
        many = "is more than the pods of the row; Kueue refuses such a job"
        yield Rule(SLICE_SIZE, pl.col(SLICE_SIZE) > pods_of(frame), many)
    for name, other in ((SLICE, SLICE_SIZE), (SLICE_SIZE, SLICE)):
        if name in frame.columns:
            missing = pl.col(other).is_null() if other in frame.columns else pl.lit(value=True)
            yield Rule(name, pl.col(name).is_not_null() & missing, f"needs {other}, too")


def _said(name: str) -> pl.Expr:
    return pl.col(name).fill_null(value=False) if name == UNCONSTRAINED else pl.col(name).is_not_null()


def wrong_annotations(template: str) -> str:
    """Returns a description of the first fault in the annotations of a pod template, or "" if all are valid.

    `template` is a JSON object.
    """
    said = _annotated(template)
    layers = _layers(template)
    if layers is None:
        rule = f"a JSON list of 1 to {_MOST_LAYERS} objects, each with a topology and a size from 1"
        return f"has the annotation {LAYERS}, which must be {rule}"
    if layers and not said.keys().isdisjoint((SLICE, SLICE_SIZE)):
        return (
            f"has slices in the annotation {LAYERS} and in another one: a pod set can have only one of them"
        )
    for name in said:
        if not isinstance(said[name], str):
            return f"has the annotation {_ANNOTATIONS[name]}, which must be text"
    given = [_ANNOTATIONS[name] for name in _ONE_OF if name in said and said[name] != "false"]
    if len(given) > 1:
        return f"has the annotations {' and '.join(given)}: a pod set can have only one"
    if (SLICE in said) != (SLICE_SIZE in said):
        return f"must have both or neither of {_ANNOTATIONS[SLICE]} and {_ANNOTATIONS[SLICE_SIZE]}"
    size = said.get(SLICE_SIZE, "1")
    if not (size.isascii() and size.isdecimal() and 1 <= int(size[:12]) < 2**31):
        return f"has the annotation {_ANNOTATIONS[SLICE_SIZE]}, which must be a number from 1"
    if said.get(UNCONSTRAINED, "true") not in ("true", "false"):
        return f"has the annotation {_ANNOTATIONS[UNCONSTRAINED]}, which must be 'true' or 'false'"
    return ""


def topology_of(value: Callable[[str], Any], template: str | None) -> TopologyRequest | None:
    """Returns the topology request of a row, from its columns or else from its template's annotations.

    `value` returns the row's value of a column, or None. `template` is the row's `pod_template`.
    """
    said = {name: value(name) for name in _ANNOTATIONS}
    layers: tuple[SliceLayer, ...] | None = ()
    if said == _NONE_SAID:
        if template is None or PODSET not in template:
            return None
        said, layers = _annotated(template), _layers(template)
        said[UNCONSTRAINED] = said.get(UNCONSTRAINED) == "true"
    level, size = said.get(SLICE), said.get(SLICE_SIZE)
    request = TopologyRequest(
        said.get(REQUIRED) or "",
        said.get(PREFERRED) or "",
        bool(said.get(UNCONSTRAINED)),
        (SliceLayer(level, int(size or 1)),) if level else layers or (),
        said.get(GROUP) or "",
    )
    return None if request == TopologyRequest() else request


def _annotated(template: str) -> dict[str, Any]:
    annotations = _annotations(template)
    return {name: annotations[key] for name, key in _ANNOTATIONS.items() if key in annotations}


def _layers(template: str) -> tuple[SliceLayer, ...] | None:
    """Returns the layers of slices in their annotation, () if there are none, and None if it is wrong."""
    text = _annotations(template).get(LAYERS)
    if text is None:
        return ()
    try:
        found = parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if not isinstance(found, list) or not 1 <= len(found) <= _MOST_LAYERS:
        return None
    layers = [(each.get("topology"), each.get("size")) for each in found if isinstance(each, dict)]
    named = [
        SliceLayer(level, size)
        for level, size in layers
        if isinstance(level, str) and level and size.__class__ is int and 1 <= size < 2**31
    ]
    return tuple(named) if len(named) == len(found) else None


def _annotations(template: str) -> Mapping[str, Any]:
    return mapping_of(mapping_of(parse_json(template), "metadata"), "annotations")
