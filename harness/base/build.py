"""Identifies the build of harness, which is plain or compiled, and detects a mix of two installations.

A compiled build has compiled models and policies. Both builds make the same decisions. The source files are
installed beside the compiled modules, and identify the code of a run.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_COMPILED = Path(__file__).parents[1] / "compiled.json"
"""The file that `hatch_build.py` of the checkout writes when a wheel is compiled."""


@cache
def compiled_sources() -> Mapping[str, Mapping[str, str]]:
    """Returns the checksum of each compiled file's source, by package and file. A plain build has none."""
    if not _COMPILED.is_file():
        return {}
    sources: Mapping[str, Mapping[str, str]] = json.loads(_COMPILED.read_bytes())
    return sources


def is_compiled() -> bool:
    """Returns True if models and policies are compiled."""
    return bool(compiled_sources())


@cache
def version() -> str:
    """Returns the installed version, followed by `compiled` for a compiled build."""
    from importlib import metadata  # importing it takes longer than printing help

    return metadata.version("harness-replay") + (", compiled" if is_compiled() else "")


@cache
def versions() -> Mapping[str, str]:
    """Returns the versions of harness, Python and the packages that write tables."""
    from importlib import metadata

    packages = {name: metadata.version(name) for name in ("polars", "pyarrow")}
    return {"harness": version(), "python": platform.python_version(), **packages}


def mixed() -> str | None:
    """Returns a warning if the built-in plugins don't belong to this `harness`, and None otherwise.

    In a checkout, `python -m harness` imports `harness` from the checkout, but the plugins from the
    installation.
    """
    from importlib.util import find_spec

    ours, found = Path(__file__).parents[1], find_spec("harness_plugins")
    if found is None or found.origin is None:
        return None
    theirs = Path(found.origin).parent
    if theirs in (ours.with_name("harness_plugins"), ours.parent / "plugins" / "harness_plugins"):
        return None
    return f"harness is imported from {ours}, but its plugins are imported from {theirs}"
