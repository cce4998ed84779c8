"""Converts a `Request`, which describes a replay, to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.runs.request import Request
from harness.runs.settings import SETTINGS
from harness.trace.calibration import Calibration

_SCHEMA = "1"
_PARTS = [part.name for part in fields(Request) if part.name not in SETTINGS]
_IN_JSON: Mapping[str, tuple[type, ...]] = {
    "plugin": (str, NoneType),
    "cluster": (str, NoneType),
    "options": (dict,),
    "label": (str, NoneType),
    "calibration": (dict, NoneType),
    "force": (bool,),
    "twin": (str, NoneType),
    "alone": (str, NoneType),
}
"""Maps each choice that is not necessarily a text to its JSON types. Settings check their own types."""


def to_json(request: Request) -> dict[str, Any]:
    """Returns a request as plain values. See `Request.to_json`."""
    steps = None if request.calibration is None else request.calibration.texts()
    kept = [
        f"{name} is {_about(value)}"
        for name, value, portable in (
            ("trace", request.trace, isinstance(request.trace, Path)),
            ("cluster", request.cluster, request.cluster is None or isinstance(request.cluster, Path)),
            ("plugin", request.plugin, request.plugin is None or isinstance(request.plugin, str)),
            ("calibration", request.calibration, _calibration(steps) == request.calibration),
            *((f"option {name}", value, _is_plain(value)) for name, value in request.options.items()),
        )
        if not portable
    ]
    if kept:
        raise OptionError(
            f"request {request.called} cannot be written as JSON: {', '.join(kept)}",
            hint="give paths, registered plugins and options as strings; only pickle can store values in "
            "memory",
        )
    return {
        "schema": _SCHEMA,
        **{name: getattr(request, name) for name in _PARTS},
        **request.settings.texts(),
        "trace": str(request.trace),
        "cluster": None if request.cluster is None else str(request.cluster),
        "options": dict(request.options),
        "calibration": steps,
        "output": str(request.output),
        "twin": None if request.twin is None else str(request.twin),
    }


def values_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the choices of a request from its JSON form. See `Request.from_json`."""
    if not isinstance(document, Mapping):
        raise OptionError(
            f"a request is read from a mapping, but this is {_about(document)}",
            hint="json.loads makes a mapping from a string",
        )
    values = {**document}
    if values.pop("schema", None) != _SCHEMA:
        raise OptionError(f"this is not a request of schema {_SCHEMA!r}", hint="Request.to_json() makes one")
    known = [*_PARTS, *SETTINGS]
    for name, value in values.items():
        if name not in known:
            raise OptionError(f"a request has no {name!r}", hint=did_you_mean(str(name), known))
        if name not in SETTINGS and not isinstance(value, _IN_JSON.get(name, str)):
            raise OptionError(f"request: {name} cannot be {value!r}")
    if "trace" not in values:
        raise OptionError("a request must name a trace")
    return {**values, "calibration": _calibration(values.get("calibration"))}


def _calibration(steps: Mapping[str, Any] | None) -> Calibration | None:
    """Returns a calibration from the texts of its steps."""
    known = [item.name for item in fields(Calibration)]
    for name, text in (steps or {}).items():
        if name not in known:
            raise OptionError(f"calibration has no {name!r}", hint=did_you_mean(str(name), known))
        if not isinstance(text, str):
            raise OptionError(f"calibration: {name} cannot be {text!r}")
    return None if steps is None else Calibration.parse(**steps)


def _is_plain(value: object) -> bool:
    """Returns True if a value is the same after it is stored as JSON."""
    return value is None or type(value) in (str, bool, int) or (type(value) is float and isfinite(value))


def _about(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return f"{type(value).__name__} {name}" if name else f"a {type(value).__name__}"
