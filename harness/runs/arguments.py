"""Checks the types of arguments to replays, forecasts and simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.base.arguments import check_type, wrong
from harness.base.errors import OptionError, RunError
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.runs.run import Run
from harness.runs.settings import SETTINGS
from harness.trace.calibration import Calibration
from harness.trace.trace import Trace

if TYPE_CHECKING:
    from harness.runs.request import Request

Takes: TypeAlias = Mapping[str, tuple[tuple[Any, ...], str]]
"""Maps an argument to its allowed types, and to their description in error messages."""

_ANY = ((object,), "anything")
_PATHS = (str, Path)
_FILES = (str, PathLike)
_REPLAY: Takes = {
    "trace": ((*_PATHS, Trace), "the path of a trace, or a Trace"),
    "plugin": ((str, Callable, NoneType), "a plugin's name, or a class or function that makes a policy"),
    "cluster": ((*_PATHS, Cluster, NoneType), "the path of manifests, or a Cluster"),
    "options": ((Mapping, NoneType), "a mapping of names to values"),
    "label": ((str, NoneType), "a string"),
    "calibration": ((Calibration, NoneType), "a Calibration, such as Calibration.parse(window='10d..17d')"),
    "output": (_PATHS, "the path of a folder"),
    "twin": ((str, NoneType), "a string such as '3@7', or a Twin"),
    "alone": ((str, NoneType), "the name of a quota"),
    "force": ((bool,), "True or False"),
    "plugins": ((Plugins, NoneType), "the result of harness.plugins.load()"),
    "watch": ((Callable, NoneType), "a function"),
    "workers": ((Integral, NoneType), "a whole number of processes"),
    "executor": ((), "an executor with a method submit, such as dask.distributed.Client().get_executor()"),
    "spec": ((*_FILES, Mapping), "the path of a specification, or its fields as a mapping"),
    "baseline": ((str, NoneType), "the label or folder of a run, as a string"),
    "shake": ((Integral, str, NoneType), "a whole number of twins, a string such as '10@7', or a Shake"),
    "idle_causes": ((bool,), "True or False"),
    "isolated": ((bool,), "True or False"),
    "gantt": ((str, NoneType), "a string such as '1d..1d6h'"),
    "command": ((str, NoneType), "a string"),
    **{name: (setting.types, setting.wanted) for name, setting in SETTINGS.items() if setting.types},
}
"""The arguments of replays, comparisons and experiments."""

FORECAST: Takes = {
    **_REPLAY,
    "cluster": ((*_FILES, Cluster), "the path of the output of kubectl get for a cluster, or a Cluster"),
    "plugin": ((str, NoneType), "a plugin's name"),
    "history": ((*_FILES, Trace, NoneType), "the path of a trace, or a Trace"),
    "submit": ((*_FILES, Mapping, NoneType), "the path of a manifest, or the manifest as a mapping"),
    "futures": ((Integral,), "a whole number"),
    "horizon": ((Integral, str), "a duration such as '7d', or a whole number of microseconds"),
    "now": ((Integral, NoneType), "a whole number of microseconds since 1970"),
    "reader": ((str, NoneType), "the name of a reader"),
    "others": ((Mapping, NoneType), "a mapping of names to clusters"),
    "workloads": ((Sequence,), "a list of names of workloads"),
    "calibrate": ((Integral,), "a whole number"),
}


SIMULATION: Takes = {
    **FORECAST,
    "cluster": (
        (*_FILES, Cluster, NoneType),
        "the path of the output of kubectl get for a cluster, or a Cluster",
    ),
    "trace": ((*_FILES, Trace, NoneType), "the path of a trace, or a Trace"),
    "at": ((str, NoneType), "a time such as '30d12h', as a string"),
    "jobs": ((*_FILES, Mapping, Sequence), "the paths of job manifests, or the manifests as mappings"),
    "each": ((bool,), "True or False"),
    "changes": ((bool, NoneType), "True, False or None"),
}


def check_arguments(given: Mapping[str, object], takes: Takes = _REPLAY) -> None:
    """Check the arguments of a function that users call.

    `given` has the values by argument name, such as `locals()` at the beginning of the function. Names that
    are not in `takes` are not checked.

    Raises:
        OptionError: an argument has the wrong type. The message names the allowed types.
    """
    for name, value in given.items():
        types, wanted = takes.get(name, _ANY)
        if name == "executor":
            _check_executor(value, wanted)
        elif isinstance(value, types) or not _is_shaken(name, value):
            check_type(name, types, wanted, value)


def checked_requests(requests: object) -> list[Request]:
    """Returns the requests as a list.

    Raises:
        OptionError: the value is not an iterable of Requests.
    """
    from harness.runs.request import Request

    wanted = "a list of Requests"
    if isinstance(requests, (str, Mapping)) or not isinstance(requests, Iterable):
        raise wrong("requests", wanted, requests)
    found = list(requests)
    for each in found:
        if not isinstance(each, Request):
            raise wrong("requests", wanted, each)
    return found


def _is_shaken(name: str, value: object) -> bool:
    if name not in ("twin", "shake"):
        return False
    from harness.trace.shake import Shake, Twin  # Most replays have no twin, so they don't need this import.

    return isinstance(value, Twin if name == "twin" else Shake)


def _check_executor(executor: object, wanted: str) -> None:
    """Reject an executor that can't run functions, or that forks its processes from this process."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise wrong("executor", wanted, executor)
    # concurrent.futures.ProcessPoolExecutor sets this attribute.
    context = getattr(executor, "_mp_context", None)
    method = getattr(context, "get_start_method", None)
    if method is not None and method() == "fork":
        raise OptionError(
            "executor forks its processes from this one; forked processes would hang, because they lack "
            "threads, such as those of polars",
            hint="give the executor mp_context=multiprocessing.get_context('spawn')",
        )


def opened(runs: object) -> list[Run]:
    """Returns the given runs, after opening those that are given as folders.

    Raises:
        RunError: the value is a single run instead of a list, or a folder is not a run.
        OptionError: a value is neither a run nor a folder.
    """
    wanted = "a list of runs or their folders"
    if isinstance(runs, (Run, str, PathLike)):  # Otherwise, each letter of a text would count as a folder.
        raise RunError(f"{runs} is a single run", hint="give a list of runs, such as [first, second]")
    if isinstance(runs, Mapping) or not isinstance(runs, Iterable):
        raise wrong("runs", wanted, runs)
    found = list(runs)
    for each in found:
        if not isinstance(each, (Run, str, PathLike)):
            raise wrong("runs", wanted, each)
    return [each if isinstance(each, Run) else Run.open(each) for each in found]
