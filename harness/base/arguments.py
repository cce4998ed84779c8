"""What is said where Python's callers give an argument of another type than it takes."""

from __future__ import annotations

from harness.base.errors import OptionError


def wrong(name: str, wanted: str, value: object) -> OptionError:
    """The error for an argument that has another type than it takes.

    Args:
        name: the argument.
        wanted: what it takes, for people.
        value: what was given.
    """
    return OptionError(f"{name} is {wanted}; not {about(value)}")


def about(value: object) -> str:
    """A value by its type, for messages."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
