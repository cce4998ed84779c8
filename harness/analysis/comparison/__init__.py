"""Runs of the same jobs side by side: what was measured, what changed, and whether that means anything."""

from harness.analysis.comparison.changes import Change, Row, Verdict
from harness.analysis.comparison.comparison import Comparison

__all__ = ["Change", "Comparison", "Row", "Verdict"]
