"""Reads a trace, which has the rows of a file in the canonical schema and facts about their origin.

`open_trace` is the only way to get a trace from a file. It chooses a registered reader for any format,
including the canonical Parquet, and checks every rule of the schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from harness.base.errors import FAULTS_SHOWN, Fault, PluginError, TraceError, is_of_plugin, told, why
from harness.base.files.standard_input import CALLED, STANDARD_INPUT, standard_input_file
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.base.values import Fixed, fixed
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.plugins.reading import Reading, fault_of
from harness.plugins.registries import ReaderSpec
from harness.trace.choose import advice, choose_reader
from harness.trace.homes import homed, homed_rows, map_hint
from harness.trace.rules import placed
from harness.trace.schema import REQUIRED
from harness.trace.validate import checked, cluster_faults, unknown_names

_NOTHING: Mapping[str, Any] = {}

_ROWS = 1 << 16  # rows per step, because a table may not fit into memory
_SIZE = 8  # bytes
_NUMBERS = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64,
    pl.Boolean,
)  # fmt: skip


@fixed(slots=False)
class Trace(Fixed):
    """A valid trace. Two traces are equal if all their metadata and all values of their frames are equal.

    Attributes:
        path: the source file.
        frame: the canonical columns in the schema's types, followed by all other columns. It has one row per
            job or, with `pod_set`, one row per pod set. Times are as in the file.
        kind: whether `submit_time` is a timestamp or a duration.
        time_zone: the zone of the timestamps, or None if they have none.
        origin: the time at which simulated time is 0, in microseconds since the epoch. It is the first
            submission, rounded down to a whole second, or 0 for durations without a chosen window.
        sha256: the hash of the file's bytes, or of all files in a folder. It is "" if it was not requested.
        metadata: the file's own metadata (`harness.source`, `harness.license`, ...).
        rows_read: the number of job records in the source.
        left_out: the number of job records that are not in `frame`, for each reason.
        notes: sentences about conventions that the reader applied.
        reader: the name of the reader.
        options: all options of the reader, including the defaults.
        calibration: the text of each deliberate change (`harness.trace.calibration`).
    """

    path: Path
    frame: pl.DataFrame
    kind: Literal["timestamp", "duration"]
    time_zone: str | None
    origin: int
    sha256: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    rows_read: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reader: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    calibration: Mapping[str, str] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        if self is other:
            return True
        told = [each.name for each in fields(Trace) if each.name != "frame"]
        return all(getattr(self, name) == getattr(other, name) for name in told) and self.frame.equals(
            other.frame
        )

    def __hash__(self) -> int:
        return hash((self.path, self.sha256, self.origin))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all values of the frame.

        It does not depend on the file, the reader or the program.
        """
        return frame_digest(self.frame, self.kind, str(self.time_zone), str(self.origin))


def open_trace(
    path: Path | str,
    plugins: Plugins,
    *,
    reader: str | None = None,
    options: Mapping[str, Any] = _NOTHING,
    cluster: Cluster | None = None,
    hashed: bool = True,
) -> Trace:
    """Read a trace and check it.

    Args:
        path: the file, or `-` for standard input.
        plugins: the plugins that provide readers.
        reader: the reader's name. By default, the file's suffix decides, and then its first bytes.
        options: the reader's options. Missing options have their defaults.
        cluster: a cluster that the trace must fit, or None.
        hashed: whether to hash the file, which requires reading all of its bytes.

    Raises:
        TraceError: the file cannot be read, or breaks the schema. The error lists every fault.
        PluginError: the reader does not exist, or it failed.
        OptionError: the reader has no such option, or the value is invalid.
    """
    path = Path(path)
    if path == STANDARD_INPUT:
        return _open_standard_input(plugins, reader=reader, options=options, cluster=cluster, hashed=hashed)
    spec = choose_reader(path, plugins, reader)
    values = resolve(spec.options, options, owner=f"reader {spec.name}")
    reading = _read(path, spec, values)
    frame, faults = checked(reading.frame)
    if faults:
        faults += unknown_names(homed_rows(frame, cluster), cluster) if cluster is not None else []
        faults = [placed(fault, reading.place) for fault in faults]
        more = len(faults) > FAULTS_SHOWN
        lacks = not set(REQUIRED) <= set(reading.frame.columns)
        hint = (lacks and advice(path, plugins)) or (
            f"list them all: harness trace check {path}" if more else "docs/traces.md describes every column"
        )
        raise TraceError(str(path), faults, hint=hint)
    submit = frame["submit_time"]
    zone = submit.dtype.time_zone if isinstance(submit.dtype, pl.Datetime) else None
    kind: Literal["timestamp", "duration"] = "timestamp" if submit.dtype == pl.Datetime else "duration"
    first: Any = submit.cast(pl.Int64).min()
    trace = Trace(
        path,
        frame,
        kind,
        zone,
        first // SECOND * SECOND if kind == "timestamp" else 0,
        _sha256(path) if hashed else "",
        dict(reading.metadata),
        reading.rows_read,
        dict(reading.left_out),
        tuple(reading.notes),
        spec.name,
        values,
    )
    if cluster is not None and (faults := cluster_faults(homed(trace, cluster), cluster)):
        faults = [placed(fault, reading.place) for fault in faults]
        raise TraceError(str(path), faults, hint=map_hint(faults))
    return trace


def _open_standard_input(plugins: Plugins, **how: Any) -> Trace:
    """Reads a trace from standard input.

    The input is first copied to a file, because readers may read it twice or seek in it.
    """
    called = Path(CALLED)
    try:
        with standard_input_file() as file:
            return replace(open_trace(file, plugins, **how), path=called)
    except OSError as error:
        raise TraceError(CALLED, [Fault("", f"cannot be read: {why(error)}")]) from error
    except TraceError as error:
        hint = error.hint and error.hint.replace(error.source, str(STANDARD_INPUT))
        raise TraceError(CALLED, error.faults, hint=hint) from error


def _read(path: Path, spec: ReaderSpec, options: Mapping[str, Any]) -> Reading:
    try:
        reading = spec.read(path, options)
    except OSError as error:
        raise TraceError(str(path), [Fault("", f"cannot be read: {why(error)}")]) from error
    except BaseException as error:
        if not is_of_plugin(error):
            raise
        reason = told(error).splitlines()[0]
        raise PluginError(
            f"reader {spec.name!r} of {spec.owner!r} failed on {path}: {reason}", hint="--debug shows where"
        ) from error
    if not isinstance(reading, Reading):
        raise PluginError(
            f"reader {spec.name!r} of {spec.owner!r} returned no Reading for {path}, but a value of type "
            f"{type(reading).__name__}",
            hint="return harness.Reading(frame, rows_read)",
        )
    if (fault := fault_of(reading)) is not None:
        raise PluginError(
            f"reader {spec.name!r} of {spec.owner!r} returned a wrong Reading for {path}: {fault}"
        )
    if reading.frame.is_empty() and reading.left_out:
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in reading.left_out.items())
        raise TraceError(str(path), [Fault("", f"holds no jobs, because all rows are left out: {reasons}")])
    return reading


def _sha256(path: Path) -> str:
    if path.is_dir():
        inside = [[each.name, _sha256(each)] for each in sorted(path.iterdir()) if each.name[0] != "."]
        return hashlib.sha256(json.dumps(inside).encode()).hexdigest()
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""  # a program is still writing to the folder


def frame_digest(frame: pl.DataFrame, *besides: str) -> str:
    """Returns the SHA-256 of a table's names, types and values, and of the additional texts in `besides`."""
    found = hashlib.sha256()
    dtypes = [[name, "String" if _is_category(dtype) else str(dtype)] for name, dtype in frame.schema.items()]
    found.update(json.dumps([frame.height, dtypes, besides]).encode())
    for part in frame.iter_slices(_ROWS):
        for column in part:
            for piece in _pieces(column):
                found.update(piece)
    return found.hexdigest()


def _pieces(column: pl.Series) -> Iterator[bytes | memoryview]:
    """Yields the values of a column as bytes. Two columns have the same bytes only if they are equal."""
    nulls = column.null_count()
    yield nulls.to_bytes(_SIZE)
    if nulls:
        yield np.packbits(column.is_null().to_numpy()).data
    numbers = column.to_physical()
    if column.dtype == pl.String or _is_category(column.dtype):
        texts = column.cast(pl.String).fill_null("")
        yield texts.str.len_bytes().to_numpy().data
        yield texts.str.join("").item().encode()
    elif isinstance(numbers.dtype, _NUMBERS):
        no_value = False if numbers.dtype == pl.Boolean else 0
        yield numbers.fill_null(no_value).to_numpy().data
    else:
        yield json.dumps([repr(value) for value in column.to_list()]).encode()


def _is_category(dtype: pl.DataType) -> bool:
    return isinstance(dtype, (pl.Categorical, pl.Enum))
