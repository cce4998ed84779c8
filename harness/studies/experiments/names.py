"""Names of experiments, of their inputs and of what varies."""

from __future__ import annotations

from pathlib import Path

from harness.cluster.derive import plain_stem
from harness.runs.labels import checked_label


def name_of(text: str) -> str:
    """A name that can be a folder's anywhere, and part of a label.

    Raises:
        OptionError: it cannot.
    """
    return checked_label(text)


def label_of(path: Path) -> str:
    """What a file is called where nobody says: its name without endings."""
    stem = plain_stem(path)
    for ending in (".cluster", ".patch"):
        stem = stem.removesuffix(ending)
    return "".join(char if char.isalnum() or char in "-_.+" else "-" for char in stem).lstrip(".-") or "input"
