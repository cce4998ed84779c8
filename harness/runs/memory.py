"""What is set in Python on a class or a function, as plain values that are equal in every process.

A value is told by what pickle would keep of it, and never by where it is in memory. One that cannot be told
so is named: nobody may take it for equal to another.
"""

from __future__ import annotations

import copyreg
import functools
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, EnumMeta
from functools import cached_property
from inspect import unwrap
from pathlib import Path
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

_OURS = "harness"
_MAIN = ("__main__", "__mp_main__")
"""A script's module, and what `multiprocessing` calls it in other processes."""

_MOST = 10_000
_DEEPEST = 40
_PROTOCOL = 4  # of pickle
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_MACHINERY = frozenset({"_abc_impl", "__annotate__", "__annotate_func__"})
"""What Python keeps in classes for itself."""

_STATE = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__")
"""Methods by which a class says what pickle keeps."""

_LRU_CACHE: type = type(functools.lru_cache(len))


def named(module: str) -> str:
    """A module's name, also while it is run as a script."""
    if module not in _MAIN:
        return module
    spec = sys.modules[module].__spec__
    return _MAIN[0] if spec is None else spec.name


def is_theirs(module: str) -> bool:
    """Whether a module is neither Python's nor ours, which count anyway."""
    top = module.partition(".")[0]
    return top != _OURS and (top in _MAIN or top not in sys.stdlib_module_names)


def is_of(function: FunctionType, file: str) -> bool:
    """Whether a function's code is from a file."""
    source = function.__code__.co_filename
    try:
        return source == file or Path(source).samefile(file)
    except OSError:
        return False


class Memory:
    """Tells values in memory as JSON.

    A class is told with its attributes and what it inherits, a function with what is set on it. What the file
    of a function tells is left out.

    Args:
        modules: of the packages of these, classes and functions are told by what is set on them; of any
            others, which do not count, by their names. None is all but Python's and ours.
        code: whether what functions do is told too.

    Attributes:
        untold: the first value that could not be told, and where it is; "" where all were.
    """

    def __init__(self, modules: Iterable[str] | None, *, code: bool = False) -> None:
        self.untold = ""
        self._tops: Collection[str] | None = None
        if modules is not None:
            self._tops = {named(module).partition(".")[0] for module in modules}
        self._code = code
        self._within: dict[int, int] = {}
        """The values within which one is being told, each with how deep it is."""
        self._left = _MOST
        self._written: tuple[str, ...] = ()
        """Modules in which Python writes functions itself, of the class that is being told."""

    def __call__(self, value: Any) -> Any:
        """One value with all that is in it."""
        if type(value) in _PLAIN:
            return repr(value)
        depth = self._within.get(id(value))
        if depth is not None:
            return ["within", depth]
        if self._left == 0 or len(self._within) == _DEEPEST:
            what = f"more than {_MOST:,} values" if self._left == 0 else "values that are nested too deep"
            return self._give_up(what)
        self._left -= 1
        self._within[id(value)] = len(self._within)
        try:
            return self._compound(value)
        finally:
            del self._within[id(value)]

    def _give_up(self, what: str) -> Any:
        self.untold = self.untold or what
        return what

    def _compound(self, value: Any) -> Any:
        """A value that consists of others."""
        kind = type(value)
        if kind in (tuple, list):
            return [kind.__name__, *map(self, value)]
        if kind in (dict, MappingProxyType):
            return ["dict", *([self(key), self(each)] for key, each in value.items())]
        if isinstance(value, (set, frozenset)):
            state = self._attributes(getattr(value, "__dict__", {}))
            return [self._kind(value), sorted(json.dumps(self(each)) for each in value), state]
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, Enum):
            return [self(kind), self._attributes(vars(value))]
        if isinstance(value, ModuleType):
            return ["module", value.__name__]
        parts = self._parts(value)
        if parts is not None:
            return [kind.__qualname__, *map(self, parts)]
        return self._instance(value)

    def _parts(self, value: Any) -> Iterable[Any] | None:
        """What one of Python's own things consists of, which pickle would not take apart; None of others."""
        if isinstance(value, (staticmethod, classmethod)):
            return (value.__func__,)
        if isinstance(value, MethodType):
            return value.__func__, value.__self__
        if isinstance(value, property):
            return value.fget, value.fset, value.fdel
        if isinstance(value, cached_property):
            return value.func, value.attrname
        if isinstance(value, _LRU_CACHE):
            return (vars(value),)
        if isinstance(value, CodeType):
            return (
                *(value.co_code, value.co_exceptiontable, value.co_flags),
                *(value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount),
                *(value.co_names, value.co_varnames, value.co_consts),
            )
        return None

    def _kind(self, value: Any) -> Any:
        """The type of a value, where it is not one of Python's by its name."""
        return self(type(value)) if is_theirs(type(value).__module__) else type(value).__qualname__

    def _counts(self, module: str) -> bool:
        """Whether what is set on things of a module counts."""
        return is_theirs(module) and (self._tops is None or named(module).partition(".")[0] in self._tops)

    # --- classes and functions ----------------------------------------------------------------------------

    def _class(self, value: type) -> Any:
        name = [named(value.__module__), value.__qualname__]
        if not self._counts(value.__module__):
            return name
        made_by = [] if type(value) is type else [self(type(value))]
        own: dict[str, Any] = dict(vars(value))
        if isinstance(value, EnumMeta):
            members: dict[str, Any] = dict(value.__members__)
            own = {key: each for key, each in own.items() if key not in members and not key.startswith("_")}
            own |= members
        bases = [self(base) for base in value.__bases__]
        if "__dataclass_fields__" not in own and "_field_defaults" not in own:
            return [*name, made_by, bases, self._attributes(own)]
        before, self._written = self._written, (value.__module__, f"namedtuple_{value.__name__}")
        try:
            return [*name, made_by, bases, self._attributes(own)]
        finally:
            self._written = before

    def _attributes(self, own: Mapping[str, Any]) -> Any:
        """Attributes in the order of their names, without what Python keeps in classes for itself."""
        told = []
        for key in sorted(own):
            each, before = own[key], self.untold
            special = key.startswith("__") and key.endswith("__")
            if key in _MACHINERY or (special and not _does_something(each)):
                continue
            told.append([key, self(each)])
            if self.untold != before:
                self.untold = f"{key}: {self.untold}"
        return told

    def _function(self, value: FunctionType) -> Any:
        """A function by its name and what is set on it; with its code where no file tells that by name."""
        name = [named(value.__module__ or ""), value.__qualname__]
        home = value.__globals__.get("__name__") or ""
        if not is_theirs(home):
            return [*name, self(vars(value).get("__wrapped__"))]
        found = _is_found(value)
        if found and not self._counts(home):
            return name
        told = [
            *name,
            self(value.__defaults__),
            self(value.__kwdefaults__),
            self._attributes(vars(value)),
        ]
        code = value.__code__
        file = getattr(sys.modules.get(value.__module__ or ""), "__file__", None)
        whole = found and file is not None and code.co_qualname == value.__qualname__ and is_of(value, file)
        if whole and not self._code:
            return told
        written = code.co_filename == "<string>" and home in self._written
        if not written and not os.path.exists(code.co_filename):  # noqa: PTH110 - of a text
            self._give_up(f"{value.__qualname__} is in no file")
        return [*told, self(code), [self(_content(cell)) for cell in value.__closure__ or ()]]

    # --- other values -------------------------------------------------------------------------------------

    def _instance(self, value: Any) -> Any:
        """A value by what pickle would keep of it."""
        kind = type(value)
        what = f"a {kind.__module__}.{kind.__qualname__}"
        reduce: Callable[..., Any] | None = copyreg.dispatch_table.get(kind)
        if reduce is None and any(map(self._is_of_theirs, _methods(kind))):
            return self._give_up(what)
        try:
            ask: Any = kind.__reduce_ex__
            reduced: Any = ask(value, _PROTOCOL) if reduce is None else reduce(value)
            module = getattr(value, "__module__", None) or kind.__module__
        except Exception:  # whatever a value's own way of being pickled raises
            return self._give_up(what)
        if isinstance(reduced, str):
            return [module, reduced] if _at(module, reduced) is value else self._give_up(what)
        if not isinstance(reduced, tuple):
            return self._give_up(what)
        made_by, made_of, *others = reduced[:5]
        state, items, pairs = others + [None] * (3 - len(others))
        inside = [None if each is None else self(list(each)) for each in (items, pairs)]
        return [self(made_by), self(made_of), self._state(state), *inside]

    def _state(self, state: Any) -> Any:
        """What is in an object; the order in which its attributes were set does not count."""
        if type(state) is tuple and len(state) == 2:
            return [self._state(each) for each in state]
        if type(state) is dict and all(type(key) is str for key in state):
            return self._attributes(state)
        return self(state)

    def _is_of_theirs(self, method: Any) -> bool:
        """Whether a method is of the code that is looked at, so that nobody knows what it leaves out."""
        return isinstance(method, FunctionType) and self._counts(method.__globals__.get("__name__") or "")


def _methods(kind: type) -> list[Any]:
    return [getattr(kind, name, None) for name in _STATE]


def _does_something(value: Any) -> bool:
    """Whether a special attribute of a class is code."""
    return isinstance(value, (staticmethod, classmethod, property)) or (
        callable(value) and not isinstance(value, type)
    )


def _at(module: str, name: str) -> Any:
    """What is in a module by a name; None where there is nothing."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def _is_found(function: FunctionType) -> bool:
    """Whether a function is found in its module by its name, by itself or in what stands for it."""
    found = _at(function.__module__ or "", function.__qualname__)
    if isinstance(found, property):
        return function in (found.fget, found.fset, found.fdel)
    if isinstance(found, cached_property):
        return found.func is function
    found = getattr(found, "__func__", found)
    return found is function or (isinstance(found, FunctionType) and unwrap(found) is function)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # it has no value yet
