"""Which build of harness runs: the plain one, or one whose models and policies are compiled; or parts of two.

Both decide the same. The source files of what was compiled lie beside it; by these a run knows its code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_COMPILED = Path(__file__).parents[1] / "compiled.json"
"""Written where a wheel is compiled, by `hatch_build.py` of the checkout."""


@cache
def compiled_sources() -> Mapping[str, Mapping[str, str]]:
    """Package -> file within it that was compiled -> the sum of what was compiled; empty in a plain build."""
    if not _COMPILED.is_file():
        return {}
    sources: Mapping[str, Mapping[str, str]] = json.loads(_COMPILED.read_bytes())
    return sources


def is_compiled() -> bool:
    """Whether models and policies are compiled."""
    return bool(compiled_sources())


@cache
def version() -> str:
    """The version that is installed, looked up in its files, with the word `compiled` where it is so."""
    from importlib import metadata  # takes longer to import than all of help

    return metadata.version("harness-replay") + (", compiled" if is_compiled() else "")


def mixed() -> str | None:
    """Why the built-in plugins are not those of this `harness`, in a sentence; None where they are.

    In a checkout `python -m harness` imports the checkout's `harness`, and the plugins that are installed.
    """
    from importlib.util import find_spec

    ours, found = Path(__file__).parents[1], find_spec("harness_plugins")
    if found is None or found.origin is None:
        return None
    theirs = Path(found.origin).parent
    if theirs in (ours.with_name("harness_plugins"), ours.parent / "plugins" / "harness_plugins"):
        return None
    return f"harness is imported from {ours}, but its plugins from {theirs}"
