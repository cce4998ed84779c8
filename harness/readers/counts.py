"""Counts with nouns and verbs, for the notes and faults of readers: `1 job was`, `15 rows`, `once`."""

from harness.base.text import agreeing, counted, times

__all__ = ["agreeing", "counted", "times"]
