"""Draws charts with altair, which is optional. Each module is imported when it draws its first chart.

Encodings are objects such as `alt.Y("high:Q")`, because altair finds the class of a mere text slowly.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.analysis.report.charts import (
        axes,
        bars,
        counts,
        factors,
        frontier,
        gantt,
        levels,
        record,
        waits,
    )

__all__ = ["axes", "bars", "counts", "factors", "frontier", "gantt", "levels", "record", "waits"]


def __getattr__(name: str) -> ModuleType:
    """Imports a module on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'harness.analysis.report.charts' has no attribute {name!r}")
    return import_module(f"harness.analysis.report.charts.{name}")
