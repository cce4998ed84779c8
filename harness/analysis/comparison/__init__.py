"""Compares runs of the same jobs: the measured values, the changes, and whether a change is significant."""

from harness.analysis.comparison.changes import Change, Row, Verdict
from harness.analysis.comparison.comparison import Comparison

__all__ = ["Change", "Comparison", "Row", "Verdict"]
