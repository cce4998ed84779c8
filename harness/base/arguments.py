"""Error messages for Python callers that pass arguments of a wrong type."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from harness.base.errors import OptionError


def check_type(name: str, types: tuple[Any, ...], wanted: str, value: object) -> None:
    """Check the type of an argument. True and False are not numbers.

    Raises:
        OptionError: the value has none of the types.
    """
    no_number = isinstance(value, bool) and Integral in types
    if no_number or not isinstance(value, types):
        raise wrong(name, wanted, value)


def wrong(name: str, wanted: str, value: object) -> OptionError:
    """Returns the error for an argument of a wrong type."""
    return OptionError(f"{name} must be {wanted}, not {about(value)}")


def about(value: object) -> str:
    """Describes a value by its type, for messages."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
