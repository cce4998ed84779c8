"""Reads job tables with any columns. A small language defines how a table becomes a trace."""

from __future__ import annotations

from harness_plugins.readers.tables.reading import read

__all__ = ["read"]
