"""Identifies the code that a result depends on by checksums of its files.

After a change of a policy's file, results of the older code are not reused. If a file has changed after its
module was imported, it no longer shows the loaded code. In that case, or if the code has no file (as in a
cell of a notebook), the code counts as unknown. A result of unknown code is never reused for another request.

If a module exists both as source and in compiled form, Python loads the compiled file, so this file's
checksum is used. The compiled build of `harness` is an exception: the checksums are those of its sources, as
in the plain build. The sources must be those that were compiled.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b, sha256
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from harness.base.build import compiled_sources
from harness.plugins.loading import own_modules
from harness.plugins.registries import MetricSpec, PolicySpec
from harness.runs.python_values import Memory, is_theirs, named

_OURS = "harness"
_APART = (
    "__main__.py", "analysis", "base/build.py", "cli", "compiled.json", "plugins/conformance.py",
    "plugins/scaffold", "readers/live", "runs/elsewhere.py", "runs/executors.py", "runs/processes.py",
    "studies/benchmark", "studies/experiments", "studies/forecasting", "studies/reproduced",
    "studies/simulation", "studies/tuning", "testing", "trace/bundled", "trace/bundled.py", "trace/generate",
)  # fmt: skip
"""The parts of `harness` that neither make nor record decisions. All other parts count, even future ones."""

_METRICS = "analysis/metrics"
_HOME = Path(__file__).parents[1]
_EXTENSIONS = tuple(EXTENSION_SUFFIXES)  # The longest suffixes come first.
_SOURCES = (*SOURCE_SUFFIXES, *_EXTENSIONS)


class Code(NamedTuple):
    """A piece of code.

    Attributes:
        sha256: the checksum of its files. If the files do not represent the code, this is the checksum of its
            objects in memory.
        unknown: why the files do not represent what the code does, or "" if they do.
        changed: whether the code is unknown because a file has changed since it was loaded.
    """

    sha256: str
    unknown: str = ""
    changed: bool = False


Looked: TypeAlias = dict[tuple[str, int], Code]
"""Maps the type and id of a subject to its code."""

_kept: ContextVar[Looked | None] = ContextVar("_kept", default=None)


@contextmanager
def looked_at_once(kept: Looked) -> Iterator[None]:
    """Examine each piece of code only once during the block. This is for callers that make many runs.

    Pass the same `kept` to the next block to reuse the results of this block.
    """
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)


def _once(what: str, subject: object, look: Callable[[], Code]) -> Code:
    kept = _kept.get()
    if kept is None:
        return look()
    key = (what, id(subject))
    if key not in kept:
        kept[key] = look()
    return kept[key]


def code_of_harness() -> Code:
    """Returns the code of those parts of `harness` that make or record decisions."""
    return _once(_OURS, None, lambda: _whole([_Files(_OURS, _within(_HOME, _APART))]))


def code_of_policy(spec: PolicySpec) -> Code:
    """Returns the code of a policy: the packages of its plugin, its class, and the classes it inherits from.

    The built-in plugins are included for all policies, because any policy may build on them. A class that was
    passed in from Python must be an attribute of its module. A class that is defined in a function may depend
    on variables of that function, so its code counts as unknown.
    """
    ours = {name for module in own_modules() if (name := module.partition(".")[0]) != _OURS}
    return _once("policy", spec.factory, lambda: _code_of(spec.factory, spec.module, ours))


def look_at(policy: PolicySpec) -> None:
    """Examine the code of a replay, so that later changes of the code are detected."""
    code_of_harness()
    code_of_policy(policy)


def code_of_metric(spec: MetricSpec) -> Code:
    """Returns the code of a metric. For a metric of `harness`, this is the code of the metrics' package."""
    if spec.module.partition(".")[0] == _OURS:
        return code_of_room(_METRICS)
    return _once("metric", spec.compute, lambda: _code_of(spec.compute, spec.module))


def codes_of_metrics(specs: Iterable[MetricSpec]) -> dict[str, Code]:
    """Returns the code of each metric by name, and examines a package with several metrics only once."""
    kept = _kept.get()
    with looked_at_once({} if kept is None else kept):
        return {spec.name: code_of_metric(spec) for spec in specs}


def code_of_room(name: str) -> Code:
    """Returns the code of one package of `harness`, for results that depend on this package."""
    return _once(name, None, lambda: _whole([_Files(_OURS, _within(_HOME / name))]))


def _code_of(subject: Any, module: str, besides: Iterable[str] = ()) -> Code:
    """Returns the code of an object that a plugin registers. The module is "" for an object from Python."""
    classes = [subject, *(each for each in getattr(subject, "__mro__", ())[1:] if is_theirs(each.__module__))]
    names = {*besides, module, *(named(getattr(each, "__module__", None) or module) for each in classes)} - {
        ""
    }
    files = [_files_of(name) for name in sorted(_packages(names))]
    if module:
        return _whole(files)
    memory = Memory()  # Attributes that were set in Python are not in any file.
    code = _whole(files, [memory.of(each) for each in classes])
    return Code(code.sha256, memory.untold) if memory.untold and not code.changed else code


# --- files ------------------------------------------------------------------------------------------------

# In nanoseconds. A file that is read sooner after a write could be rewritten with the same times.
_SETTLED = 10**10

_Stands: TypeAlias = tuple[int, int, int, int]


class _Files(NamedTuple):
    """The files of a package or module: maps names that don't depend on the installation to paths."""

    top: str
    paths: Mapping[str, str]


def _packages(modules: Iterable[str]) -> set[str]:
    """Returns the outermost packages to which modules belong, except for namespace packages."""
    found = set()
    for module in modules:
        name = module.partition(":")[0]
        parts = name.split(".")
        tops = (".".join(parts[:count]) for count in range(1, len(parts)))
        found.add(next((top for top in tops if _origin(top) is not None), name))
    return found


def _origin(module: str) -> str | None:
    """Returns the file of a module or of a package's `__init__`, or None if there is no file."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        return getattr(loaded, "__file__", None)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


def _files_of(module: str) -> _Files:
    origin = _origin(module)
    if origin is None:
        return _Files(module, {})
    path = Path(origin)
    if path.stem != "__init__":
        return _Files(module, {path.name: origin})
    return _Files(module, _within(path.parent))


def _within(folder: Path, apart: Sequence[str] = ()) -> dict[str, str]:
    """Returns all files below a folder, except for bytecode, hidden files, and the files in `apart`."""
    found: dict[str, str] = {}
    top = str(folder)
    for path, folders, files in os.walk(top):
        at = path[len(top) + 1 :].replace(os.sep, "/") + "/" if path != top else ""
        folders[:] = [
            name for name in folders if not name.startswith(("__pycache__", ".")) and at + name not in apart
        ]
        for name in files:
            if not name.startswith(".") and not name.endswith((".pyc", "~")) and at + name not in apart:
                found[at + name] = f"{path}{os.sep}{name}"
    return found


def _that_count(paths: Mapping[str, str], *, ours: bool) -> Mapping[str, str]:
    """Returns the files, but only one of the source and the compiled file of a module.

    The sources count if a build of `harness` compiled the package and recorded them (`ours`).
    """
    extensions = [name for name in paths if name.endswith(_EXTENSIONS)]
    if not extensions:
        return paths
    if ours:
        return {name: path for name, path in paths.items() if not name.endswith(_EXTENSIONS)}
    modules = [name.removesuffix(next(filter(name.endswith, _EXTENSIONS))) for name in extensions]
    hidden = {module + source for module in modules for source in SOURCE_SUFFIXES}
    return {name: path for name, path in paths.items() if name not in hidden}


def _whole(several: Sequence[_Files], others: Sequence[Any] = ()) -> Code:
    """Combine several packages into one code. The checksum also covers `others`."""
    lines: list[Any] = []
    for files in several:
        modules, compiled = _modules(files.top), compiled_sources().get(files.top, {})
        if not any(name.endswith(_SOURCES) for name in files.paths):
            return Code(_sum([lines, files.top, others]), f"the source code of {files.top} cannot be found")
        for name, path in sorted(_that_count(files.paths, ours=bool(compiled)).items()):
            try:
                content = _content_of(path)
            except OSError as error:
                return Code(_sum([lines, others]), f"{path} cannot be read: {error.strerror}")
            if compiled.get(name, content) != content:
                why = f"{path} was changed after it had been compiled"
                return Code(_sum([lines, others]), why, changed=True)
            if not _is_loaded(path, content, modules.get(path)):
                why = f"{path} was changed after it had been imported"
                return Code(_sum([lines, others]), why, changed=True)
            lines.append([files.top, name, content])
    return Code(_sum([lines, others]))


_sums: dict[str, tuple[_Stands, str]] = {}
"""Maps each file to its state when it was read and to its checksum, because replays check files often."""


def _content_of(path: str) -> str:
    """Returns the checksum of a file, which is read again only if it may have changed."""
    stands = _stands(path)
    known = _sums.get(path)
    if known is not None and known[0] == stands:
        return known[1]
    with open(path, "rb") as file:  # noqa: PTH123 - making a Path costs more than this check
        content = blake2b(file.read()).hexdigest()
    if _is_settled(stands):
        _sums[path] = (stands, content)
    return content


def _stands(path: str) -> _Stands:
    """Returns values that change whenever the file is written."""
    about = os.stat(path)  # noqa: PTH116 - a Path is slow
    return about.st_ctime_ns, about.st_mtime_ns, about.st_size, about.st_ino


def _is_settled(stands: _Stands) -> bool:
    """Returns True if another write would change the state of a file.

    A file that was written a moment ago could be written again with the same times, so it is not settled.
    """
    return time.time_ns() - max(stands[:2]) > _SETTLED


# --- what is loaded ---------------------------------------------------------------------------------------

_first: dict[str, tuple[str, object]] = {}
"""Maps each file to its checksum when it was first examined, and to the import that had loaded it by then."""


def _modules(top: str) -> dict[str, object]:
    """Maps the file of each loaded module of a package to an object that identifies the import."""
    found: dict[str, object] = {}
    within = f"{top}."
    for name, module in list(sys.modules.items()):
        if (name == top or name.startswith(within)) and isinstance(module, ModuleType):
            file = getattr(module, "__file__", None)
            if file is not None:
                found[file] = module.__spec__ or module
    return found


def _is_loaded(path: str, content: str, loaded: object) -> bool:
    """Returns True if a file has not changed since its module was imported, or its module is not loaded."""
    before, earlier = _first.get(path, (content, loaded))
    same = before == content or loaded is None or (earlier is not None and loaded is not earlier)
    if same:
        _first[path] = (content, loaded)
    elif earlier is None:
        _first[path] = ("", loaded)  # The module may have been loaded either before or after the change.
    return same


def _sum(content: Any) -> str:
    return sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
