"""Checks and derives names of experiments, of their inputs and of their factors."""

from __future__ import annotations

from pathlib import Path

from harness.base.names import checked_label
from harness.cluster.derive import plain_stem


def name_of(text: str) -> str:
    """Returns a name if it can be a folder's name on any system, and part of a label.

    Raises:
        OptionError: the name can't be used in this way.
    """
    return checked_label(text)


def label_of(path: Path) -> str:
    """Returns the default label of a file, which is its name without suffixes."""
    stem = plain_stem(path)
    for ending in (".cluster", ".patch"):
        stem = stem.removesuffix(ending)
    return "".join(char if char.isalnum() or char in "-_.+" else "-" for char in stem).lstrip(".-") or "input"
