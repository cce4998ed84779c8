"""Converts policies to the form in which they are sent to a process: a name, a class, or source code."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from harness.base.errors import OptionError, PolicyError, told, why
from harness.policy import PolicyFactory

_MODULE = "evaluated_policy"
_CALLS = ("submit", "release", "cycle")
_LARGEST = 1_000_000
_PRELUDE = "import harness\nfrom harness import *\n\n"

Packed = Mapping[str, Any]


def packed(policy: str | Path | type) -> Packed:
    """Returns a policy in a form that can be sent to another process.

    `policy` is a class, a file with a class, the source text of a class (more than one line), or the name of
    a registered policy.

    Raises:
        OptionError: the policy can't be found, or its source is too long.
    """
    if isinstance(policy, type):
        return _of_class(policy)
    if isinstance(policy, Path) or str(policy).endswith(".py"):
        return _source(_read(Path(policy)), str(policy))
    if isinstance(policy, str):
        return _source(policy, "<policy>") if "\n" in policy else {"plugin": policy}
    raise OptionError(
        f"a policy is a class, a file, a source text or a registered name, not a {type(policy).__name__}"
    )


def unpacked(given: Packed) -> str | PolicyFactory:
    """Loads a policy in the process that runs it, which executes the policy's code.

    Raises:
        PolicyError: the code fails, or does not contain exactly one policy.
    """
    if "plugin" in given:
        return str(given["plugin"])
    try:
        if "module" in given:
            found: Any = import_module(given["module"])
            for name in given["name"].split("."):
                found = getattr(found, name)
            return found  # type: ignore[no-any-return]
        return _chosen(_module(given), given.get("name"))
    except PolicyError:
        raise
    except BaseException as error:  # Any error counts as a result, even SystemExit.
        raise PolicyError(f"the policy cannot be loaded: {told(error)}") from error


def _of_class(policy: type) -> Packed:
    module, name = policy.__module__, policy.__qualname__
    if module != "__main__" and "<locals>" not in name:
        return {"module": module, "name": name}
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is not None and "<locals>" not in name:
        return {**_source(_read(Path(file)), file), "name": name}
    try:
        text = dedent(inspect.getsource(policy))
    except (OSError, TypeError) as error:
        raise OptionError(
            f"the source of {name} cannot be found", hint="give its source text, or a file with it"
        ) from error
    return {**_source(_PRELUDE + text, f"<{name}>"), "name": policy.__name__}


def _source(text: str, file: str) -> Packed:
    if len(text) > _LARGEST:
        raise OptionError(f"the policy has {len(text):,} characters; at most {_LARGEST:,} are allowed")
    return {"source": text, "file": file}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise OptionError(
            f"the policy {path} cannot be read: {why(error, 'it is not UTF-8 text')}"
        ) from error


def _module(given: Packed) -> ModuleType:
    module = ModuleType(_MODULE)
    module.__file__ = given["file"]
    sys.modules[_MODULE] = module
    text = given["source"]
    linecache.cache[given["file"]] = (len(text), None, text.splitlines(keepends=True), given["file"])
    exec(compile(text, given["file"], "exec"), module.__dict__)  # noqa: S102 - what this process is for
    return module


def _chosen(module: ModuleType, name: str | None) -> PolicyFactory:
    """Returns the policy of a module, which is the named class, or the only class without subclasses."""
    classes = [each for each in vars(module).values() if isinstance(each, type) and _is_policy(each)]
    last = [each for each in classes if not any(each in other.__mro__[1:] for other in classes)]
    found = [each for each in classes if each.__name__ == name] if name is not None else last
    if len(found) != 1:
        names = ", ".join(each.__name__ for each in found) or "none"
        raise PolicyError(
            f"the code must contain one class with the methods {', '.join(_CALLS)}; it contains {names}",
            hint="put helpers into the same class, or give the class itself",
        )
    return found[0]


def _is_policy(of: type) -> bool:
    return of.__module__ == _MODULE and all(hasattr(of, call) for call in _CALLS)
