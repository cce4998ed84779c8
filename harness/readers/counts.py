"""Functions that format counts for messages of readers, such as `1 job was` and `a and 3 more`."""

from harness.base.text import agreeing, counted, first_of, times

__all__ = ["agreeing", "counted", "first_of", "times"]
