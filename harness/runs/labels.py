"""The rules for labels of runs."""

from __future__ import annotations

from harness.base.errors import OptionError
from harness.base.names import RULE, is_name


def checked_label(text: str) -> str:
    """Check a label, which may have the form `PLUGIN@NAME`, and return it.

    A label must be usable in folder names on all systems, and in `LABEL.KEY=VALUE`.

    Raises:
        OptionError: the text is not a valid label.
    """
    return "@".join(_part_of_label(part) for part in text.split("@", 1))


def _part_of_label(text: str) -> str:
    if not is_name(text):
        raise OptionError(f"{text!r} cannot be a label", hint=f"a label is {RULE}")
    return text
