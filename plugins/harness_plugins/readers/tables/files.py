"""Files of a table: Parquet, JSON and text, of which only the columns that are asked for are read.

Columns of one name are joined over all files. Empty and narrower ones are widened, and times become UTC
file by file.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import Fault, TraceError
from harness.json_text import parse_json
from harness.options import did_you_mean
from harness.readers.cells import text as text_field
from harness.readers.delimited import open_table
from harness.readers.source import contents, unpacked_contents
from harness_plugins.readers.tables.mapping import TableMapping
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.values import ROW, WIDE, Columns

_PARQUET = b"PAR1"
_TAR = (257, b"ustar")
_NAMED = 40
_EXACT = 2**53
_HEAD = 512
_TABS = (".tsv", ".tab")


@dataclass(frozen=True)
class Rows:
    """The rows of all files.

    Attributes:
        root: the file or folder.
        frame: the columns that are wanted, by names of ours, and the number of each row.
        columns: these columns, by the names that they have in the files.
        parts: each file, and how many rows the files before it have.
        twice: column -> how many of its typed times without a zone stand in an hour that occurs twice.
    """

    root: Path
    frame: pl.DataFrame
    columns: Columns
    parts: Sequence[tuple[str, int]]
    twice: Mapping[str, int]

    def place(self, row: int) -> str:
        """Where a row is: its file, if there are several, and its number there from 1."""
        name, before = max((part for part in self.parts if part[1] <= row), key=lambda part: part[1])
        where = f"row {row - before + 1:,}"
        return f"{name}: {where}" if len(self.parts) > 1 else where


def find_files(path: Path, pattern: str, more: Sequence[Path] = ()) -> list[Path]:
    """The file itself, or those of a folder that a pattern names; then further ones.

    Raises:
        TraceError: the folder has none.
    """
    if not path.is_dir():
        return [path, *more]
    try:
        found = [each for each in path.glob(pattern or "**/*") if each.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise TraceError(str(path), [Fault("files", f"{pattern!r} is no pattern: {error}")]) from error
    kept = sorted(
        each for each in found if not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    first, _, rest = pattern.partition("/")
    if not kept and rest and fnmatchcase(path.name, first):  # the folder itself is the pattern's first part
        return find_files(path, rest, more)
    if not kept:
        raise TraceError(str(path), [Fault("files", f"no file in it fits {pattern or '**/*'!r}")])
    return [*kept, *more]


def read_rows(root: Path, paths: Sequence[Path], mapping: TableMapping, clock: Clock) -> Rows:
    """The rows of some files, in their order.

    Raises:
        TraceError: a file cannot be read, or a column is in none of them.
    """
    wanted = mapping.wanted
    frames: list[pl.DataFrame] = []
    names: list[str] = []
    parts: list[tuple[str, int]] = []
    rows = 0
    twice: Counter[str] = Counter()
    for path in paths:
        label = (
            path.relative_to(root).as_posix() if root.is_dir() and path.is_relative_to(root) else path.name
        )
        for frame, has in _frames(path, mapping, wanted):
            names += has
            if len(paths) > 1 and not set(has) & set(wanted):
                what = f"has none of the columns that the mapping names ({', '.join(wanted)})"
                raise TraceError(str(path), [Fault("", what)], hint="files: names the files of the table")
            frame = _in_zone(path, frame, clock, twice)
            parts.append((label, rows))
            frames.append(frame)
            rows += frame.height
    known = list(dict.fromkeys(names))
    missing = [name for name in wanted if name not in known]
    if missing:
        raise TraceError(str(root), [Fault(f"column {name}", _missing(name, known)) for name in missing])
    joined = _joined(root, frames, parts, wanted)
    called = {name: f"c{place}" for place, name in enumerate(wanted)}
    ours = pl.DataFrame([joined[name].alias(called[name]) for name in wanted])
    return Rows(root, ours.with_row_index(ROW), Columns(dict(joined.schema), called), parts, twice)


def _in_zone(path: Path, frame: pl.DataFrame, clock: Clock, twice: Counter[str]) -> pl.DataFrame:
    """A frame whose typed times without a zone are those of the clock.

    Raises:
        TraceError: the zone's clocks skip such a time.
    """
    columns = []
    for column in frame:
        if column.dtype != pl.Datetime("us"):
            columns.append(column)
            continue
        moments = clock.moments(pl.lit(column))
        earlier, later = (pl.select(each).to_series() for each in moments)
        if earlier.null_count() > column.null_count():
            row = int((column.is_not_null() & earlier.is_null()).arg_max() or 0)
            what = f"{column[row]} does not exist in {clock.zone}, whose clocks skip it"
            raise TraceError(str(path), [Fault(f"row {row + 1:,}, column {column.name}", what)])
        twice[column.name] += int((earlier != later).sum())
        columns.append(earlier.cast(pl.Datetime("us", "UTC")).alias(column.name))
    return pl.DataFrame(columns)


def _missing(name: str, known: Sequence[str]) -> str:
    near = did_you_mean(name, known)
    has = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more" if len(known) > _NAMED else "")
    return f"is in no file; {near or f'there are {has}'}"


def _joined(
    root: Path, frames: Sequence[pl.DataFrame], parts: Sequence[tuple[str, int]], wanted: Sequence[str]
) -> pl.DataFrame:
    """Frames one after the other, each column in the widest of its types."""
    types: dict[str, pl.DataType] = {}
    for frame, (label, _) in zip(frames, parts, strict=True):
        for name, dtype in frame.schema.items():
            known = types.get(name, pl.Null())
            wider = _wider(known, dtype)
            if wider == pl.Float64 and known != dtype and any(map(_is_large, _pieces(frames, name))):
                wider = None
            if wider is None:
                what = f"is {dtype} in {label}, and {known} in the files before it"
                raise TraceError(str(root), [Fault(f"column {name}", what)])
            types[name] = wider
    return pl.DataFrame([_column_of(frames, name, types[name]) for name in wanted])


def _column_of(frames: Sequence[pl.DataFrame], name: str, dtype: pl.DataType) -> pl.Series:
    """A column of all frames; null where one has it not."""
    pieces = (
        frame[name].cast(dtype) if name in frame.columns else pl.Series(name, [None] * frame.height, dtype)
        for frame in frames
    )
    return pl.concat([pl.Series(name, [], dtype), *pieces])


def _wider(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """A type that holds what both hold; None where there is none."""
    if one == other or other == pl.Null:
        return one
    if one == pl.Null:
        return other
    if one.is_integer() and other.is_integer():
        return WIDE()
    if one.is_numeric() and other.is_numeric():
        return pl.Float64()
    return None


def _pieces(frames: Sequence[pl.DataFrame], name: str) -> Iterator[pl.Series]:
    return (frame[name] for frame in frames if name in frame.columns)


def _is_large(column: pl.Series) -> bool:
    """Whether a column has whole numbers that no float holds."""
    return column.dtype.is_integer() and bool((column.cast(WIDE).abs() > _EXACT).any())


def _frames(
    path: Path, mapping: TableMapping, wanted: Sequence[str]
) -> Iterator[tuple[pl.DataFrame, list[str]]]:
    """The tables of a file with the columns that are wanted, and the names of all its columns."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_PARQUET):
        yield _parquet(path, path, wanted)
        return
    data = unpacked_contents(path)
    if data is not None and data.startswith(_PARQUET):
        yield _parquet(path, pa.BufferReader(data), wanted)
        return
    data = contents(path)
    place, mark = _TAR
    if data[place : place + len(mark)] == mark:
        for name, inside in _members(path, data):
            yield _text(Path(f"{path}/{name}"), inside, mapping, wanted)
        return
    yield _text(path, data, mapping, wanted)


def _members(path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is not None:
                    yield member.name, file.read()
    except tarfile.TarError as error:
        raise TraceError(str(path), [Fault("", f"is not a whole tar archive: {error}")]) from error


def _text(
    path: Path, data: bytes, mapping: TableMapping, wanted: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    """JSON, JSON lines, or text with delimiters: by the first character."""
    if data.lstrip()[:1] in (b"{", b"["):
        return _of_records(path, list(_records(path, data, mapping.records)), wanted)
    delimiter = mapping.delimiter or ("\t" if any(each in _TABS for each in path.suffixes) else ",")
    table = open_table(path, header=mapping.header, delimiter=delimiter, data=data)
    has = list(table.names)
    there = [name for name in wanted if name in has]
    table = replace(table, lines=list(table.lines))
    if not there or not table.lines:
        return pl.DataFrame(schema=dict.fromkeys(there, pl.String)), has
    cells = table.typed([text_field(name).or_empty() for name in there])
    return cells.select(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in there), has


def _records(path: Path, data: bytes, inside: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON document, or of lines with one each; `inside` names the list that has them."""
    try:
        document = [parse_json(data.decode())]
        if isinstance(document[0], list):
            (document,) = document
    except UnicodeDecodeError as error:
        raise TraceError(str(path), [Fault("", f"is not UTF-8 text: {error.reason}")]) from error
    except ValueError:
        document = list(_lines(path, data))
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
                raise TraceError(str(path), [Fault(f"element {place:,}", "is no JSON object")])
            yield item


def _lines(path: Path, data: bytes) -> Iterator[Any]:
    for place, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield parse_json(line.decode())
            except ValueError as error:
                what = "is neither JSON by itself nor part of a whole document"
                raise TraceError(str(path), [Fault(f"line {place:,}", what)]) from error


def _of_records(
    path: Path, records: Sequence[dict[str, Any]], wanted: Sequence[str]
) -> tuple[pl.DataFrame, list[str]]:
    has = list(dict.fromkeys(name for record in records for name in record))
    there = [name for name in wanted if name in has]
    columns = []
    for name in there:
        try:
            columns.append(_series(path, name, [each.get(name) for each in records]))
        except (UnicodeEncodeError, pl.exceptions.PolarsError) as error:
            what = f"holds what is no text or number: {str(error).splitlines()[0]}"
            raise TraceError(str(path), [Fault(f"column {name}", what)]) from error
    return pl.DataFrame(columns), has


def _series(path: Path, name: str, values: list[Any]) -> pl.Series:
    """The values of a JSON column in one type: numbers beside texts become texts."""
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
    raise TraceError(
        str(path), [Fault(f"row {wrong:,}, column {name}", "holds neither numbers nor texts alone")]
    )


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _parquet(path: Path, source: Any, wanted: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """The columns of a Parquet file that are wanted; no other is read."""
    try:
        with pq.ParquetFile(source, pre_buffer=False) as file:
            schema = file.schema_arrow
            there = [name for name in wanted if name in schema.names]
            twice = [name for name in there if schema.names.count(name) > 1]
            if twice:
                raise TraceError(
                    str(path), [Fault(f"column {name}", "is there more than once") for name in twice]
                )
            table = file.read(columns=there, use_threads=False)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(str(path), [Fault("", f"is not a whole Parquet file: {reason}")]) from error
    columns = []
    for name in there:
        try:
            columns.append(_column(table[name]).alias(name))
        except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError) as error:
            kind, reason = schema.field(name).type, str(error).splitlines()[0]
            what = f"is {kind}, which a mapping does not read: {reason}"
            raise TraceError(str(path), [Fault(f"column {name}", what)]) from error
    return pl.DataFrame(columns), list(schema.names)


def _column(column: pa.ChunkedArray) -> pl.Series:
    """A column in one of the types that terms have."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
        )
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.timestamp("us", "UTC" if kind.tz else None), safe=kind.unit != "ns")
    elif pa.types.is_date(kind):
        column = pc.cast(column, pa.timestamp("us"))
    elif pa.types.is_duration(kind):
        column = pc.cast(column, pa.duration("us"), safe=kind.unit != "ns")
    elif pa.types.is_decimal(kind) or pa.types.is_large_string(kind):
        column = pc.cast(column, pa.string())
    elif pa.types.is_float16(kind):
        column = pc.cast(column, pa.float32())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return lengths(pc.list_value_length(column).to_pylist())
    elif not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        or pa.types.is_string(kind) or pa.types.is_null(kind)
    ):  # fmt: skip
        raise TypeError("it has numbers, texts, times, spans of time, lists and true or false")
    found = pl.DataFrame(pa.table({"column": column})).to_series()
    return found.fill_nan(None) if found.dtype.is_float() else found


def lengths(values: Sequence[int | None]) -> pl.Series:
    """Lists as their lengths alone, which is all that a term asks of them."""
    known = pl.Series(values, dtype=pl.Int64)
    return pl.select(pl.when(known.is_not_null()).then(pl.struct(length=known))).to_series()
