"""Trace readers: canonical Parquet, the Standard Workload Format, and the formats of published traces.

Only what registers them is imported with the plugin; a reader's own module is loaded when it first reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from harness import Reading, RegisterReader, hookimpl
from harness_plugins.readers.formats import FORMATS


def _reader(module: str) -> Callable[[Path, Mapping[str, Any]], Reading]:
    """The function `read` of a module of this package, which is imported when it is first called."""

    def read(path: Path, options: Mapping[str, Any]) -> Reading:
        reading: Reading = import_module(f"{__name__}.{module}").read(path, options)
        return reading

    return read


@hookimpl
def harness_register_readers(register: RegisterReader) -> None:
    """Register the built-in readers."""
    for kind in FORMATS:
        register(
            kind.name,
            _reader(kind.module),
            help=kind.help,
            suffixes=kind.suffixes,
            sniff=kind.sniff,
            options=kind.options,
            folder=kind.folder,
        )
