"""What the arguments of a replay may be: what Python's callers give instead is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from harness.cluster.model import Cluster
from harness.engine.losses import Losses
from harness.errors import OptionError
from harness.trace.calibration import Calibration
from harness.trace.trace import Trace

_PATHS = (str, Path)
_TAKES: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "trace": ((*_PATHS, Trace), "the path of a trace, or a Trace"),
    "plugin": ((str, Callable, NoneType), "a plugin's name, or a class or function that makes a policy"),
    "cluster": ((*_PATHS, Cluster, NoneType), "the path of manifests, or a Cluster"),
    "options": ((Mapping, NoneType), "a mapping of names to values"),
    "label": ((str, NoneType), "a text"),
    "on_preemption": ((str, Losses), "a text such as 'restart' or 'checkpoint=30m', or Losses"),
    "calibration": ((Calibration, NoneType), "a Calibration, such as Calibration.parse(window='10d..17d')"),
    "output": (_PATHS, "the path of a folder"),
    "twin": ((str, NoneType), "a text such as '3@7', or a Twin"),
    "alone": ((str, NoneType), "the name of a quota"),
}
"""Argument -> the types that it may have, and the same for people."""


def check_arguments(given: Mapping[str, object]) -> None:
    """See that arguments are what a replay can take.

    Args:
        given: name -> value, of all in `_TAKES`.

    Raises:
        OptionError: one is not; says what it takes.
    """
    for name, (types, wanted) in _TAKES.items():
        value = given[name]
        if not isinstance(value, types) and not (name == "twin" and _is_twin(value)):
            raise OptionError(f"{name} is {wanted}; not {_about(value)}")


def _is_twin(value: object) -> bool:
    from harness.trace.shake import Twin  # most replays are of no twin, and import nothing of them

    return isinstance(value, Twin)


def _about(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
