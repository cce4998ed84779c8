"""Rules for names that users type on the command line and that become parts of file names."""

from __future__ import annotations

import re

from harness.base.errors import OptionError

LONGEST = 40
_LONGEST_LABEL = 63  # limit of label values in Kubernetes, which names a job's queue in a label

RULE = f"made of up to {LONGEST} letters, digits and the characters - _ . +, and begins with neither - nor ."


def is_name(value: object) -> bool:
    """Returns True if a value is a string that follows `RULE`, as labels and folder names must."""
    return isinstance(value, str) and is_word(value) and len(value) <= LONGEST


def is_word(value: object) -> bool:
    """Returns True if a value is a name as in `is_name`, but with any length."""
    if not isinstance(value, str) or value[:1] in ("", ".", "-"):
        return False
    return all(char.isalnum() or char in "-_.+" for char in value)


def as_word(text: str) -> str:
    """Converts a text to a name as in `is_word`, or to "" if no character can begin a name."""
    return "".join(char if char.isalnum() or char in "-_.+" else "-" for char in text).lstrip(".-")


def is_path(value: object) -> bool:
    """Returns True if a value is a name, or several names with `/` between them."""
    return isinstance(value, str) and all(map(is_name, value.split("/")))


def kubernetes_name(name: str) -> str:
    """Converts a name to one that Kubernetes accepts for objects and labels.

    Kubernetes accepts names that follow RFC 1123 and have at most 63 characters.
    """
    made = re.sub("[^a-z0-9-]+", "-", name.lower()).strip("-")[:_LONGEST_LABEL].strip("-")
    return made or "queue"


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
