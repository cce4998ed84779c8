"""Counts with nouns and verbs, for notes and faults of readers: `1 job was`, `15 rows`, `a and 3 more`."""

from harness.base.text import agreeing, counted, first_of, times

__all__ = ["agreeing", "counted", "first_of", "times"]
