"""Reads traces in canonical Parquet, the Standard Workload Format, and the formats of published traces.

The plugin imports only the code that registers the readers. The module of a reader is imported when the
reader is first used.
"""

from __future__ import annotations

from harness import ReaderSpec, Register, hookimpl
from harness_plugins.readers.formats import FORMATS


@hookimpl
def harness_register_readers(register: Register[ReaderSpec]) -> None:
    """Registers the built-in readers."""
    for reader in FORMATS:
        register(reader)
