"""What runs may be called."""

from __future__ import annotations

from harness.base.errors import OptionError
from harness.base.names import RULE, is_name


def checked_label(text: str) -> str:
    """A label that can be part of a folder's name anywhere, and of `LABEL.KEY=VALUE`; `PLUGIN@NAME` is one.

    Raises:
        OptionError: it cannot.
    """
    return "@".join(_part_of_label(part) for part in text.split("@", 1))


def _part_of_label(text: str) -> str:
    if not is_name(text):
        raise OptionError(f"{text!r} cannot be a label", hint=f"use {RULE}")
    return text
