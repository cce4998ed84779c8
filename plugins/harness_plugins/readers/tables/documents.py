"""Reads tables from JSON documents and JSON lines. The objects are the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.errors import IN_UTF8, Fault, TraceError
from harness.base.json_text import parse_json
from harness.readers.source import not_json
from harness_plugins.readers.tables.parts import Part, Pick, lengths

_EXACT = 2**53
_INDEX = "index"


def is_json(data: bytes) -> bool:
    """Returns True if a file seems to be JSON, or to have JSON in its lines."""
    return data.lstrip()[:1] in (b"{", b"[")


def read_documents(path: Path, data: bytes, pick: Pick, *, inside: str = "") -> Part:
    """Reads the wanted columns of a JSON document, or of lines with one object each.

    `pick` chooses the columns to read. `inside` is the name of the list with the rows, which is inside each
    element. "" means that the elements themselves are the rows.

    Raises:
        TraceError: the JSON is invalid, an element is not an object, or a column has values that are neither
            numbers nor text.
    """
    return _part(path, list(_records(path, data, inside)), pick)


def first_records(data: bytes, most: int) -> list[dict[str, Any]]:
    """Returns the first objects of a JSON document, or of lines with one object each.

    Raises:
        ValueError: the data have neither form.
    """
    text = data.decode()
    try:
        document = parse_json(text, nan_is_null=True)
    except ValueError:
        lines = (line for line in text.splitlines() if line.strip())
        document = [parse_json(line, nan_is_null=True) for line in islice(lines, most)]
    several = _elements(document)
    return [each for each in several[:most] if isinstance(each, dict)]


def _elements(document: Any) -> list[Any]:
    """Returns the elements of a document. It may be an object as pandas writes tables.

    Such an object has the rows by number (`index`), the cells of each column by number (`columns`), or lists
    of names and of rows (`split`). Numbers that do not count the rows from 0 become a column, as in
    `reset_index` of pandas.
    """
    if not isinstance(document, dict):
        return document if isinstance(document, list) else [document]
    inner = list(document.values())
    if inner and all(isinstance(each, dict) for each in inner):
        if all(name.isdecimal() for name in document):
            return _numbered(document)
        numbers = dict.fromkeys(number for column in inner for number in column)
        if numbers and all(number.isdecimal() for number in numbers):
            return _numbered(
                {number: {name: each.get(number) for name, each in document.items()} for number in numbers}
            )
    names, rows = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(rows, list):
        # A row of another length is no row of this table, so its cells must not get the names of columns.
        fits = all(isinstance(row, list) and len(row) == len(names) for row in rows)
        return [dict(zip(map(str, names), row, strict=True)) for row in rows] if fits else [document]
    return [document]


def _numbered(rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows with their numbers, unless these only count the rows."""
    if list(rows) == [str(place) for place in range(len(rows))]:
        return list(rows.values())
    return [{_INDEX: number, **row} for number, row in rows.items()]


def inner_list(records: Sequence[dict[str, Any]]) -> str:
    """Returns the name of the list of objects inside each element, or "" if there is none or several."""
    inner = [
        name
        for name in (records[0] if records else {})
        if all(_has_objects(each.get(name)) for each in records)
    ]
    return inner[0] if len(inner) == 1 else ""


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def table_of(path: Path, records: Sequence[dict[str, Any]], inside: str) -> pl.DataFrame:
    """Returns objects as a table of the columns that have numbers or text."""
    rows = list(_rows(path, records, inside))
    has = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in has:
        try:
            columns.append(_series(path, name, [each.get(name) for each in rows]))
        except (UnicodeEncodeError, pl.exceptions.PolarsError, TraceError):
            continue
    return pl.DataFrame(columns)


def _part(path: Path, records: Sequence[dict[str, Any]], pick: Pick) -> Part:
    has = list(dict.fromkeys(name for record in records for name in record))
    columns = []
    for name in pick(has):
        try:
            columns.append(_series(path, name, [each.get(name) for each in records]))
        except (UnicodeEncodeError, pl.exceptions.PolarsError) as error:
            what = f"has a value that is neither text nor a number: {str(error).splitlines()[0]}"
            raise TraceError(str(path), [Fault(f"column {name}", what)]) from error
    return Part(pl.DataFrame(columns), has)


def _records(path: Path, data: bytes, inside: str) -> Iterator[dict[str, Any]]:
    """Yields the objects of a JSON document or of JSON lines, or the objects in the list `inside` of each."""
    try:
        document = _elements(parse_json(data.decode(), nan_is_null=True))
    except UnicodeDecodeError as error:
        raise TraceError(
            str(path), [Fault("", f"is not UTF-8 text: {error.reason}")], hint=IN_UTF8
        ) from error
    except ValueError as error:
        document = list(_lines(path, data, error))
    yield from _rows(path, document, inside)


def _rows(path: Path, document: Sequence[Any], inside: str) -> Iterator[dict[str, Any]]:
    """Yields the elements, or the objects in each element's list, with the element's other values."""
    for place, each in enumerate(document, start=1):
        several = [each]
        if inside and isinstance(each, dict):
            found = each.get(inside)
            if not isinstance(found, list):
                raise TraceError(str(path), [Fault(f"element {place:,}", f"has no list {inside}")])
            outer = {name: value for name, value in each.items() if name != inside}
            several = [{**outer, **item} if isinstance(item, dict) else item for item in found]
        for item in several:
            if not isinstance(item, dict):
                raise TraceError(str(path), [Fault(f"element {place:,}", "is not a JSON object")])
            yield _flat(item)


def _flat(item: dict[str, Any]) -> dict[str, Any]:
    """Returns an object with the values of the objects inside it, under names such as `resources.cpu`."""
    if not any(isinstance(value, dict) for value in item.values()):
        return item
    found: dict[str, Any] = {}
    for name, value in item.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": each for inner, each in _flat(value).items()}
        else:
            found[name] = value
    return found


def _lines(path: Path, data: bytes, whole: ValueError) -> Iterator[Any]:
    """Yields the value of each line. `whole` says why the lines are not one document."""
    found = 0
    for place, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield parse_json(line.decode(), nan_is_null=True)
                found += 1
            except ValueError as error:
                if not found and isinstance(whole, json.JSONDecodeError):
                    raise TraceError(str(path), [not_json(whole)]) from error
                what = "is neither a JSON value nor part of a JSON document"
                if not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
                    what = str(error)
                raise TraceError(str(path), [Fault(f"line {place:,}", what)]) from error


def _series(path: Path, name: str, values: list[Any]) -> pl.Series:
    """Returns the values of a JSON column in one type. If some values are text, numbers become text."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pl.Series(name, values, pl.Null)
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {list}:
        return lengths([None if value is None else len(value) for value in values]).alias(name)
    if kinds <= {int}:
        if max(abs(value) for value in values if value is not None) < 2**63:
            return pl.Series(name, values, pl.Int64)
        kinds = {int, str}
    large = any(type(value) is int and abs(value) > _EXACT for value in values)
    if kinds <= {int, float} and not large:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    if kinds <= {int, float, str}:
        return pl.Series(name, [_as_text(value) for value in values], pl.String)
    wrong = next(place for place, value in enumerate(values, start=1) if type(value) in (dict, list, bool))
    value = json.dumps(values[wrong - 1])
    what = f"{value:.60} is neither a number nor text, unlike the values in other rows"
    raise TraceError(str(path), [Fault(f"row {wrong:,}, column {name}", what)])


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
