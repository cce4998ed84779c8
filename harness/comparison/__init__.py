"""Runs of the same jobs side by side: what was measured, what changed, and whether that means anything."""

from harness.comparison.changes import Change, Row, Verdict
from harness.comparison.comparison import Comparison

__all__ = ["Change", "Comparison", "Row", "Verdict"]
