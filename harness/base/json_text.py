"""Reads and writes JSON text.

Reading rejects deep nesting and long numbers that later code can't handle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, TypeVar

_T = TypeVar("_T")

DEEPEST = 100
"""The maximum depth of nesting. Deeper values would later exhaust the interpreter's stack."""

_LONGEST_NUMBER = 100

_encoded = json.JSONEncoder(allow_nan=False).encode


def parse_json(
    text: str | bytes,
    *,
    pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None,
    nan_is_null: bool = False,
) -> Any:
    """Returns the value of JSON text.

    Args:
        text: the text, or bytes in UTF-8.
        pairs: a function that creates an object from pairs of name and value. By default, the last value of a
            repeated name is used.
        nan_is_null: whether `NaN`, which some programs write, is read as null instead of causing an error.

    Raises:
        ValueError: the text is not JSON, is nested more than 100 levels deep, or has a number that is not
            finite or has more than 100 digits.
    """
    constant = _nan_as_null if nan_is_null else None
    content = _bounded(lambda: json.loads(text, object_pairs_hook=pairs, parse_constant=constant))
    _require_plain(content)
    return content


def leading_json(
    text: str, start: int, *, pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
) -> tuple[Any, int]:
    """Returns the JSON value that begins at an index in a text, and the index of its end.

    `start` is the index of the value's first character. For `pairs`, see `parse_json`.

    Raises:
        ValueError: see `parse_json`.
    """
    decoder = json.JSONDecoder(object_pairs_hook=pairs)
    content, end = _bounded(lambda: decoder.raw_decode(text, start))
    _require_plain(content)
    return content, end


def json_items(text: str) -> Iterator[Any]:
    """Yields the JSON values that follow each other in a text. Each item of a list is a value.

    Raises:
        ValueError: see `parse_json`.
    """
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        else:
            value, at = leading_json(text, at)
            yield from value if isinstance(value, list) else (value,)


def indented_json(content: object, indent: str = "") -> str:
    """Returns JSON text with one line for each field of an object, and one line for each item of a list.

    Objects in objects are indented further. In contrast, an item of a list is always on one line, even if it
    is an object. As a result, long lists stay compact, and are written five times as fast.

    Args:
        content: the content. The names of fields must be strings.
        indent: the spaces at the beginning of the line to which the caller appends the text.

    Raises:
        ValueError: the content has a number that is not finite.
    """
    inner = indent + "  "
    if isinstance(content, Mapping) and content:
        fields = (f"{_encoded(name)}: {indented_json(value, inner)}" for name, value in content.items())
        return f"{{\n{inner}" + f",\n{inner}".join(fields) + f"\n{indent}}}"
    if isinstance(content, (list, tuple)) and content:
        items = (_encoded(item) for item in content)
        return f"[\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}]"
    return _encoded(content)


def _nan_as_null(word: str) -> float | None:
    return None if word == "NaN" else float(word)


_DEEP = f"is nested more than {DEEPEST} levels deep"
_LONG = f"has a number with more than {_LONGEST_NUMBER} digits"


def _bounded(read: Callable[[], _T]) -> _T:
    """Returns the result of Python's decoder, and converts errors about its limits into errors of harness."""
    try:
        return read()
    except RecursionError as error:
        raise ValueError(_DEEP) from error
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # Python refuses to read very long numbers
        raise ValueError(_LONG) from error


def mapping_of(value: Any, name: str) -> Mapping[str, Any]:
    """Returns `value[name]` if `value` and this field are both mappings, or else an empty mapping."""
    inner = value.get(name) if value.__class__ is dict or isinstance(value, Mapping) else None
    return inner if inner.__class__ is dict or isinstance(inner, Mapping) else {}


def _require_plain(content: Any) -> None:
    level = [content]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for value in level:
            if value.__class__ is str:  # the most frequent type
                continue
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            elif isinstance(value, float) and not isfinite(value):
                raise ValueError(f"contains {value}, which is not a number in JSON")
            elif isinstance(value, int) and abs(value) >= 10**_LONGEST_NUMBER:
                raise ValueError(_LONG)
        if not inner:
            return
        level = inner
    raise ValueError(_DEEP)
