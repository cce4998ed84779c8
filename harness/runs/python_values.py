"""Converts attributes of classes and functions to plain values that are equal in every process.

The attributes are those that were set in Python. Plain values and instances of Python's own classes can be
converted. If an attribute has any other value, such as an object of a user's class, the code counts as
unknown. Code without a file, such as a cell of a notebook, counts as unknown too. Unknown code is never equal
to other code.
"""

from __future__ import annotations

import copyreg
import json
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property, lru_cache
from inspect import unwrap
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType
from typing import Any

_OURS = "harness"
_MAIN = ("__main__", "__mp_main__")
"""The names of a script's module in the main process and in processes of `multiprocessing`."""

_PROTOCOL = 4  # The protocol of pickle.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_AROUND = (staticmethod, classmethod, type(lru_cache(len)))
_MACHINERY = frozenset({"_abc_impl", "__annotate__", "__annotate_func__"})
"""Attributes that Python itself sets on classes."""


def named(module: str) -> str:
    """Returns the real name of a module, even if the module runs as a script."""
    if module not in _MAIN:
        return module
    spec = sys.modules[module].__spec__
    return _MAIN[0] if spec is None else spec.name


def is_theirs(module: str) -> bool:
    """Returns True if a module is a third party's, and belongs neither to Python nor to harness."""
    top = module.partition(".")[0]
    return top != _OURS and (top in _MAIN or top not in sys.stdlib_module_names)


class Memory:
    """Converts classes and functions to JSON values.

    Attributes:
        untold: the first value that is not in a file and can't be compared, or "".
    """

    def __init__(self) -> None:
        self.untold = ""
        self._file = ""
        self._generated = False

    def of(self, subject: Any) -> Any:
        """Convert a class or function that was given in Python, with all attributes that were set on it."""
        self._file, self._generated = "", False
        if not isinstance(subject, (type, FunctionType)):
            self._give_up(f"{subject!r} is neither a class nor a function")
            return self._told(subject)
        name = f"{subject.__module__}.{subject.__qualname__}"
        if not _is_found(subject):
            self._give_up(f"{name} cannot be found under this name")
        self._file = getattr(sys.modules.get(subject.__module__), "__file__", None) or ""
        if not self._file:
            self._give_up(f"{name} is in no file")
        before = self.untold
        told = self._told(subject)
        if isinstance(subject, type):
            self._generated = "__dataclass_fields__" in vars(subject)
            told = [told, self._attributes(vars(subject))]
        if self.untold != before:
            self.untold = f"{name} has a value that cannot be compared: {self.untold}"
        return told

    def _give_up(self, what: str) -> str:
        self.untold = self.untold or what
        return what

    def _told(self, value: Any) -> Any:
        try:
            return self(value)
        except RecursionError:
            return self._give_up("values that are nested too deeply")

    def _attributes(self, own: Mapping[str, Any]) -> Any:
        """Convert attributes, sorted by name, except for those that Python sets on classes."""
        told = []
        for key in sorted(own):
            special = key.startswith("__") and key.endswith("__")
            if key in _MACHINERY or (special and not _does_something(own[key])):
                continue
            before = self.untold
            told.append([key, self._told(own[key])])
            if self.untold != before:
                self.untold = f"{key}: {self.untold}"
        return told

    def __call__(self, value: Any) -> Any:
        """Convert one value with all nested values. A class is represented by its name.

        Raises:
            RecursionError: the value is nested too deeply, or contains itself.
        """
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)
        if kind in (tuple, list):
            return [kind.__name__, *map(self, value)]
        if kind is dict:
            return ["dict", *([self(key), self(each)] for key, each in value.items())]
        if kind in (set, frozenset):
            return [kind.__name__, *sorted(json.dumps(self(each)) for each in value)]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, (type, BuiltinFunctionType)):
            return _name(value)
        if isinstance(value, Enum):
            return [*_name(kind), value.name]
        if isinstance(value, CodeType):
            told = (value.co_code, value.co_exceptiontable, value.co_flags, value.co_consts)
            return self(
                (*told, value.co_names, value.co_varnames, value.co_argcount, value.co_kwonlyargcount)
            )
        if isinstance(value, property):
            return [kind.__name__, *map(self, (value.fget, value.fset, value.fdel))]
        if isinstance(value, cached_property):
            return [kind.__name__, self(value.func)]
        return (
            [kind.__name__, self(value.__wrapped__)] if isinstance(value, _AROUND) else self._instance(value)
        )

    def _function(self, value: FunctionType) -> Any:
        if not is_theirs(value.__globals__.get("__name__") or ""):
            return _name(value)
        code = unwrap(value).__code__
        generated = self._generated and code.co_filename == "<string>"
        if not generated and not _is_same(code.co_filename, self._file):
            self._give_up(f"it is not from {Path(self._file).name}" if self._file else "it is in no file")
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, vars(value))
        return [*_name(value), *map(self, parts), *(self(_content(cell)) for cell in value.__closure__ or ())]

    def _instance(self, value: Any) -> Any:
        """Convert an instance of one of Python's classes by the parts that pickle would store."""
        kind = type(value)
        what = f"a {kind.__module__}.{kind.__qualname__}"
        if is_theirs(kind.__module__):
            return self._give_up(what)
        reduce: Callable[..., Any] | None = copyreg.dispatch_table.get(kind)
        try:
            reduced = value.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(value)
        except Exception:  # A class that can't be pickled may raise any error.
            return self._give_up(what)
        if isinstance(reduced, str):
            return [*_name(kind), reduced]
        return [*_name(kind), *(self(list(part) if hasattr(part, "__next__") else part) for part in reduced)]


def _name(value: Any) -> list[str]:
    return [named(value.__module__ or ""), value.__qualname__]


def _is_found(subject: Any) -> bool:
    found: Any = sys.modules.get(subject.__module__)
    for part in subject.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is subject


def _is_same(one: str, other: str) -> bool:
    try:
        return one == other or Path(one).samefile(other)
    except OSError:
        return False


def _does_something(value: Any) -> bool:
    return isinstance(value, (staticmethod, classmethod, property)) or (
        callable(value) and not isinstance(value, type)
    )


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # The attribute has no value yet.
