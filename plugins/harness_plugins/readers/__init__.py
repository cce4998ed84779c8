"""Reads traces in canonical Parquet, the Standard Workload Format, and the formats of published traces.

The plugin imports only the code that registers the readers. The module of a reader is imported when the
reader is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from harness import ReaderSpec, Register, hookimpl
from harness_plugins.readers.formats import FORMATS


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"{__name__}.{module}"), name)(*arguments)

    return call


@hookimpl
def harness_register_readers(register: Register[ReaderSpec]) -> None:
    """Registers the built-in readers."""
    for kind in FORMATS:
        register(
            ReaderSpec(
                kind.name,
                _later(kind.module or kind.name.replace("-", "_"), "read"),
                help=kind.help,
                suffixes=kind.suffixes,
                sniff=kind.sniff,
                options=kind.options,
                folder=kind.folder,
                advise=_later(kind.advise, "advise") if kind.advise else None,
                draft=_later(kind.draft, "suggest") if kind.draft else None,
            )
        )
