"""Finds the built-in mapping that fits a table of unknown format, and the command that reads the table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

from harness.base.errors import HarnessError
from harness.readers.schema import Kind, column_of
from harness_plugins.readers.tables.files import find_files
from harness_plugins.readers.tables.mapping import TableMapping, named_mappings, read_mapping
from harness_plugins.readers.tables.sample import Sample, sample_of
from harness_plugins.readers.tables.syntax import columns_of

_FEW = 2  # the minimum number of columns that a table has


def advise(path: Path) -> str | None:
    """Returns the command that reads a file or folder, or None if the input is not a table."""
    fits = max(_fitting(path), key=lambda item: item[0], default=None)
    quoted = shlex.quote(str(path))
    if fits is not None:
        mapping = fits[1]
        out = f"{mapping.name}.parquet" if path.name != f"{mapping.name}.parquet" else "trace.parquet"
        about = mapping.about.get("about", mapping.name)
        return f"its columns match {about}: harness trace convert {quoted} {out} --map {mapping.name}"
    sample = _first(path, "")
    if sample is None or len(sample.frame.columns) < _FEW:
        return None
    return (
        f"a mapping describes its columns; this command drafts one: "
        f"harness trace convert {quoted} --map suggest"
    )


def _fitting(path: Path) -> Iterator[tuple[tuple[int, int, str], TableMapping]]:
    """Yields the built-in mappings whose columns a table has, each with a score of how well it fits."""
    samples: dict[str, Sample | None] = {}
    for name in named_mappings():
        mapping = read_mapping(name)
        pattern = mapping.files if path.is_dir() else ""
        if pattern not in samples:
            samples[pattern] = _first(path, pattern)
        sample = samples[pattern]
        if sample is None or not set(mapping.wanted) <= set(sample.frame.columns):
            continue
        if mapping.records == sample.records and all(_timely(mapping, sample.frame)):
            called = fnmatchcase(path.name, mapping.files.rpartition("/")[2])
            yield (len(mapping.wanted), int(called), name), mapping


def _first(path: Path, pattern: str) -> Sample | None:
    try:
        return next((found for each in find_files(path, pattern) if (found := sample_of(each))), None)
    except HarnessError:
        return None


def _timely(mapping: TableMapping, frame: pl.DataFrame) -> Iterator[bool]:
    """Yields, for each time column of a trace, whether the table's column has the mapped form."""
    for name, source in mapping.columns.items():
        column = column_of(name)
        if column is not None and column.kind is Kind.TIME:
            for each in columns_of(source.term):
                numeric = frame[each].dtype.is_numeric() or frame[each].dtype == pl.String
                yield numeric if source.unit.startswith("unix") else not frame[each].dtype.is_numeric()
