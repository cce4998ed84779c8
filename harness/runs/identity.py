"""Which code a result depends on, as sums of files: an edited policy is another one.

What counts is the code that is loaded. A file says what that is as long as it has not been changed since its
module was imported. If it was, or if there is no file at all (a notebook's cell), the code is unknown. A
result of unknown code is never taken for the answer to another question. Of a module that is there as source
and compiled, Python loads what was compiled, so that is what counts. Only of the compiled build of `harness`
the sources count, as in the plain one: they must be those that were compiled.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness.base.build import compiled_sources
from harness.plugins.loading import own_modules
from harness.runs.python_values import Memory, is_theirs, named

if TYPE_CHECKING:
    from harness.plugins.registries import MetricSpec, PolicySpec

_OURS = "harness"
_APART = (
    "__main__.py",
    "analysis",
    "base/build.py",
    "cli",
    "compiled.json",
    "plugins/conformance.py",
    "plugins/scaffold",
    "readers/live",
    "studies/dask_executor.py",
    "studies/executor.py",
    "studies/experiments",
    "studies/items.py",
    "studies/tuning",
    "testing",
    "trace/bundled",
    "trace/bundled.py",
    "trace/generate",
)
"""What of `harness` neither decides nor records; all else counts, also what is added later."""

_METRICS = "analysis/metrics"
_HOME = Path(__file__).parents[1]
_EXTENSIONS = tuple(EXTENSION_SUFFIXES)  # the longest first
_SOURCES = (*SOURCE_SUFFIXES, *_EXTENSIONS)


class Code(NamedTuple):
    """A piece of code.

    Attributes:
        sha256: of its files; where these do not tell, of what is in memory.
        unknown: why the files do not tell what the code does; "" where they do.
        changed: whether that is because a file was changed, so that the code is older than it.
    """

    sha256: str
    unknown: str = ""
    changed: bool = False


Looked: TypeAlias = dict[tuple[str, int], Code]
"""What was looked at -> its code."""

_kept: ContextVar[Looked | None] = ContextVar("_kept", default=None)


@contextmanager
def looked_at_once(kept: Looked) -> Iterator[None]:
    """While the block runs, code is looked at once, for whoever makes many runs of the code that is loaded.

    Args:
        kept: what was found, for the next block.
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
    """What decides and records of `harness`."""
    return _once(_OURS, None, lambda: _whole([_files_of_rooms()]))


def code_of_policy(spec: PolicySpec) -> Code:
    """The packages of a policy: of the plugin that registered it, of its class and of what that inherits.

    The built-in plugins count for all policies, for any may build on them. A class that was given in Python
    must be found in its module by its name. One that is defined in a function may depend on the variables
    around it, so that its files do not tell what it does.
    """
    ours = {name for module in own_modules() if (name := module.partition(".")[0]) != _OURS}
    return _once("policy", spec.factory, lambda: _code_of(spec.factory, spec.module, ours))


def look_at(policy: PolicySpec) -> None:
    """Look at the code of a replay, so that a later change of it is noticed."""
    code_of_harness()
    code_of_policy(policy)


def code_of_metric(spec: MetricSpec) -> Code:
    """The same of a metric; of `harness` it is the metrics' own room."""
    if spec.module.partition(".")[0] == _OURS:
        return code_of_room(_METRICS)
    return _once("metric", spec.compute, lambda: _code_of(spec.compute, spec.module))


def codes_of_metrics(specs: Iterable[MetricSpec]) -> dict[str, Code]:
    """The code of each of several metrics, by name; a package of many of them is looked at once."""
    kept = _kept.get()
    with looked_at_once({} if kept is None else kept):
        return {spec.name: code_of_metric(spec) for spec in specs}


def code_of_room(name: str) -> Code:
    """A room of `harness` that neither decides nor records, for results in which it counts all the same."""
    return _once(name, None, lambda: _whole([_Files(_OURS, _within(_HOME / name))]))


def _code_of(subject: Any, module: str, besides: Iterable[str] = ()) -> Code:
    """The code of something that a plugin registers.

    Args:
        subject: a class or a function.
        module: the module of the installed plugin; "" for what was given in Python.
        besides: packages that count too.
    """
    classes = [subject, *(each for each in getattr(subject, "__mro__", ())[1:] if is_theirs(each.__module__))]
    names = {*besides, module, *(named(getattr(each, "__module__", None) or module) for each in classes)} - {
        ""
    }
    files = [_files_of(name) for name in sorted(_packages(names))]
    if module:
        return _whole(files)
    memory = Memory()  # what is set in Python on a class or a function is in none of its files
    code = _whole(files, [memory.of(each) for each in classes])
    return Code(code.sha256, memory.untold) if memory.untold and not code.changed else code


# --- files ------------------------------------------------------------------------------------------------

_SETTLED = 10**10  # ns; what was written just before it was read may be written again with the same times

_Stands: TypeAlias = tuple[int, int, int, int]
"""How a file stands, see `_stands`."""


class _Files(NamedTuple):
    """The files of a package or a module: names that do not depend on where it is installed -> paths."""

    top: str
    paths: Mapping[str, str]


def _packages(modules: Iterable[str]) -> set[str]:
    """The packages to which modules belong: the outermost ones, a folder of packages not counting as one."""
    found = set()
    for module in modules:
        name = module.partition(":")[0]
        parts = name.split(".")
        tops = (".".join(parts[:count]) for count in range(1, len(parts)))
        found.add(next((top for top in tops if _origin(top) is not None), name))
    return found


def _origin(module: str) -> str | None:
    """The file of a module or of a package's beginning; None where there is none."""
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


def _files_of_rooms() -> _Files:
    """Files of those rooms of `harness` that count for every run."""
    return _Files(_OURS, _within(_HOME, _APART))


def _within(folder: Path, apart: Sequence[str] = ()) -> dict[str, str]:
    """All files below a folder but for bytecode, hidden ones, and what is `apart`."""
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
    """The files without one half of what is there as source and compiled.

    Args:
        paths: the files of a package.
        ours: whether a build of `harness` has compiled it, which says from what: then the sources count.
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
    """What packages come to together; `others` is what counts besides."""
    lines: list[Any] = []
    for files in several:
        modules, compiled = _modules(files.top), compiled_sources().get(files.top, {})
        if not any(name.endswith(_SOURCES) for name in files.paths):
            return Code(_sum([lines, files.top, others]), f"there is no source of {files.top}")
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
"""File -> how it stood when it was read, and its sum; a replay looks at the same files several times."""


def _content_of(path: str) -> str:
    """The sum of a file, read again only where it may have changed.

    Raises:
        OSError: it cannot be read.
    """
    stands = _stands(path)
    known = _sums.get(path)
    if known is not None and known[0] == stands:
        return known[1]
    with open(path, "rb") as file:  # noqa: PTH123 - making a Path costs more than the look
        content = sha256(file.read()).hexdigest()
    if _is_settled(stands):
        _sums[path] = (stands, content)
    return content


def _stands(path: str) -> _Stands:
    """What is another value after a file was written.

    Raises:
        OSError: it is not there.
    """
    about = os.stat(path)  # noqa: PTH116 - the same
    return about.st_ctime_ns, about.st_mtime_ns, about.st_size, about.st_ino


def _is_settled(stands: _Stands) -> bool:
    """Whether it would be another value already; not of what was just written, and may be again at once."""
    return time.time_ns() - max(stands[:2]) > _SETTLED


# --- what is loaded ---------------------------------------------------------------------------------------

_first: dict[str, tuple[str, object]] = {}
"""File -> its sum when it was first looked at, and the import that had loaded it by then."""


def _modules(top: str) -> dict[str, object]:
    """File -> what tells the import of its module from an earlier one; of all modules that are loaded."""
    found: dict[str, object] = {}
    within = f"{top}."
    for name, module in list(sys.modules.items()):
        if (name == top or name.startswith(within)) and isinstance(module, ModuleType):
            file = getattr(module, "__file__", None)
            if file is not None:
                found[file] = module.__spec__ or module
    return found


def _is_loaded(path: str, content: str, loaded: object) -> bool:
    """Whether a file's content is what its module, if there is one, was made of.

    Args:
        path: the file.
        content: its sum.
        loaded: the import of its module; None where it is not loaded.
    """
    before, earlier = _first.get(path, (content, loaded))
    same = before == content or loaded is None or (earlier is not None and loaded is not earlier)
    if same:
        _first[path] = (content, loaded)
    elif earlier is None:
        _first[path] = ("", loaded)  # nobody knows whether it was loaded before the change or after
    return same


def _sum(content: Any) -> str:
    return sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
