"""What tests of readers share: a trace from a text, and the recorded traces where they are at hand."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import TraceError
from harness.plugins import Plugins, load
from harness.trace.trace import Trace, open_trace

_TRACES = Path(__file__).parents[4] / "shared" / "traces"


@pytest.fixture(scope="session")
def readers() -> Plugins:
    """The built-in readers."""
    return load(only=["readers"])


@pytest.fixture
def read_text(tmp_path: Path, readers: Plugins) -> Callable[..., Trace]:
    """Reads a file with this text."""

    def read(
        text: str | bytes, *, name: str = "trace.csv", reader: str | None = None, **options: Any
    ) -> Trace:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return open_trace(path, readers, reader=reader, options=options)

    return read


@pytest.fixture
def faults_of_text(read_text: Callable[..., Trace]) -> Callable[..., list[str]]:
    """Everything that is wrong with a file of this text."""

    def faults(text: str | bytes, **arguments: Any) -> list[str]:
        with pytest.raises(TraceError) as caught:
            read_text(text, **arguments)
        return [str(fault) for fault in caught.value.faults]

    return faults


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Path]:
    """The path of a recorded trace, or the test is skipped."""

    def path_of(name: str) -> Path:
        path = _TRACES / name
        if not path.is_file():
            pytest.skip(f"the recorded trace {path.name} is not at hand")
        return path

    return path_of


@pytest.fixture(scope="session")
def plain_rows() -> Callable[[Path], Iterator[dict[str, str]]]:
    """The rows of a gzipped CSV file, read without our code."""

    def rows(path: Path) -> Iterator[dict[str, str]]:
        with gzip.open(path, "rt", newline="") as file:
            yield from csv.DictReader(file)

    return rows
