"""Suggestions for a name that a run does not know."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from harness.base.options import did_you_mean


def close_to(name: str, known: Iterable[str]) -> str:
    """A hint with the known names that are most like an unknown one."""
    names = list(known)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    return f"did you mean {', '.join(map(repr, close))}?" if len(close) > 1 else did_you_mean(name, names)
