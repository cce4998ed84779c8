"""From a file to a trace: which reader is asked, what is refused, and what is known afterwards."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness import Option, ReaderSpec, Reading, Register, hookimpl
from harness.base.errors import InputError, OptionError, PluginError, TraceError
from harness.base.units import SECOND
from harness.plugins import Plugins, load
from harness.trace.trace import open_trace

SWF = "; UnixStartTime: 1000000000\n1 5 0 10 4 -1 -1 4 20 -1 1 3 1 -1 2 -1 -1 -1\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    """The built-in readers."""
    return load(only=["readers"])


class Toy:
    """A third party's reader: each line is a job."""

    def __init__(self, **how: Any) -> None:
        self._how = how

    @hookimpl
    def harness_register_readers(self, register: Register[ReaderSpec]) -> None:
        how = {"help": "a job a line", "options": (Option("length", 5, "seconds", type=int),), **self._how}
        register(ReaderSpec("toy", self.read, **how))

    def read(self, path: Path, options: Mapping[str, Any]) -> Reading:
        names = path.read_text().split()
        frame = pl.DataFrame({"job_id": names, "queue": names}).with_columns(
            pl.lit(timedelta()).alias("submit_time"),
            pl.lit(timedelta(seconds=options["length"])).alias("duration"),
            pl.lit(1).alias("request.cpu"),
        )
        return Reading(frame, len(names), notes=("each line is a job",))


def with_toy(**how: Any) -> Plugins:
    """The built-in readers and the third party's."""
    return load(only=["readers", "toy"], extra={"toy": Toy(**how)})


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("log.swf", SWF.encode(), "swf"),
        ("LOG.SWF", SWF.encode(), "swf"),
        ("log.swf.gz", gzip.compress(SWF.encode(), mtime=0), "swf"),
        ("log.txt", SWF.encode(), "swf"),
        ("log", gzip.compress(SWF.encode(), mtime=0), "swf"),
        ("jobs.csv", PHILLY.encode(), "philly"),
        ("jobs.csv.gz", gzip.compress(PHILLY.encode(), mtime=0), "philly"),
        ("jobs.csv", b"\xef\xbb\xbf" + PHILLY.encode(), "philly"),
    ],
)
def test_suffix_or_first_bytes_choose_the_reader(
    tmp_path: Path, plugins: Plugins, name: str, content: bytes, reader: str
) -> None:
    """A suffix decides; where none does, the first bytes do, decompressed."""
    path = tmp_path / name
    path.write_bytes(content)
    assert open_trace(path, plugins).reader == reader


def test_parquet_is_known_by_suffix_and_by_its_first_bytes(
    tmp_path: Path, plugins: Plugins, write_trace: Callable[..., Path]
) -> None:
    """The canonical format is read by a registered reader like any other."""
    assert open_trace(write_trace({}), plugins).reader == "parquet"
    assert open_trace(write_trace({}, name="trace.data"), plugins).reader == "parquet"


def test_a_reader_can_be_asked_for_by_name(tmp_path: Path) -> None:
    """`reader` overrules the suffix."""
    path = tmp_path / "a.swf"
    path.write_text("x y")
    opened = open_trace(path, with_toy(), reader="toy", options={"length": "7"})
    assert opened.frame["duration"].to_list() == [timedelta(seconds=7)] * 2
    assert (opened.reader, dict(opened.options), opened.notes) == (
        "toy",
        {"length": 7},
        ("each line is a job",),
    )


def test_the_longest_suffix_decides(tmp_path: Path) -> None:
    """`.toy.swf` is more than `.swf`."""
    path = tmp_path / "a.toy.swf"
    path.write_text("x y")
    assert open_trace(path, with_toy(suffixes=(".toy.swf",))).reader == "toy"


def test_two_readers_of_one_suffix_are_told_apart_by_the_first_bytes(tmp_path: Path) -> None:
    """Where a suffix belongs to two, their signs decide; if both or none claim it, the user must."""
    path = tmp_path / "a.swf"
    path.write_text(SWF)
    assert open_trace(path, with_toy(suffixes=(".swf",), sniff=lambda path, head: False)).reader == "swf"
    with pytest.raises(TraceError, match="more than one reader accepts this file: swf, toy"):
        open_trace(path, with_toy(suffixes=(".swf",), sniff=lambda path, head: True))


def test_a_format_that_no_reader_knows_is_refused(tmp_path: Path, plugins: Plugins) -> None:
    """The hint names the readers there are."""
    path = tmp_path / "a.bin"
    path.write_bytes(b"what is this")
    with pytest.raises(TraceError, match="no reader accepts this format") as caught:
        open_trace(path, plugins)
    names = ", ".join(plugins.readers.names())
    assert caught.value.hint == f"specify its format with --reader (one of: {names})"


def test_an_unknown_reader_is_refused(tmp_path: Path, plugins: Plugins) -> None:
    """With what was probably meant."""
    path = tmp_path / "a.swf"
    path.write_text(SWF)
    with pytest.raises(PluginError, match="there is no reader 'swg'") as caught:
        open_trace(path, plugins, reader="swg")
    assert caught.value.hint == "did you mean 'swf'?"


def test_options_are_those_that_the_reader_declares(tmp_path: Path, plugins: Plugins) -> None:
    """An unknown option, and a value that is none, are refused."""
    path = tmp_path / "a.swf"
    path.write_text(SWF)
    with pytest.raises(OptionError, match="reader swf has no option 'tenants'"):
        open_trace(path, plugins, options={"tenants": "user"})
    with pytest.raises(OptionError, match="'everybody' is not one of queue, user, group"):
        open_trace(path, plugins, options={"tenant": "everybody"})


def test_files_that_are_none_are_refused(tmp_path: Path, plugins: Plugins) -> None:
    """Missing, a directory, a run, empty, without a line, or a name that no file has."""
    empty = tmp_path / "empty.parquet"
    empty.touch()
    blank = [tmp_path / name for name in ("mark.txt", "lines.csv", "packed.txt.gz")]
    for path, content in zip(blank, (b"\xef\xbb\xbf", b"\n\r\n", gzip.compress(b"")), strict=True):
        path.write_bytes(content)
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").touch()
    for path, what in (
        (tmp_path / "none.parquet", "there is no such file"),
        (run, "is the folder of a run, not a trace file"),
        (tmp_path, "is a directory, not a trace file"),
        (empty, "is empty"),
        *((path, "has no lines") for path in blank),
        (tmp_path / "nul\0l.parquet", "cannot be read"),
        (empty / "under.parquet", "cannot be read"),
    ):
        with pytest.raises(TraceError, match=what) as caught:
            open_trace(path, plugins)
        assert str(caught.value).startswith(str(path))


def test_what_a_plugin_raises_is_its_error(tmp_path: Path) -> None:
    """A reader that fails is named with its plugin; errors of `harness` pass as they are."""

    class Broken(Toy):
        def read(self, path: Path, options: Mapping[str, Any]) -> Reading:
            raise error

    path = tmp_path / "a.toy"
    path.write_text("x")
    broken = load(only=["readers", "toy"], extra={"toy": Broken(suffixes=(".toy",))})
    error: BaseException = KeyError("x\ny")
    with pytest.raises(PluginError, match=r"reader 'toy' of 'toy' failed on .*KeyError") as failed:
        open_trace(path, broken)
    assert failed.value.hint == "--debug shows where"
    for error in (SystemExit(3), BaseException("odd")):
        with pytest.raises(
            PluginError, match=f"reader 'toy' of 'toy' failed on .*: {type(error).__name__}: "
        ):
            open_trace(path, broken)
    error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        open_trace(path, broken)
    error = InputError("my own words")
    with pytest.raises(InputError, match="my own words"):
        open_trace(path, broken)
    error = PermissionError(13, "Permission denied")
    with pytest.raises(TraceError, match="cannot be read: Permission denied"):
        open_trace(path, broken)


def test_a_reader_must_answer_a_reading(tmp_path: Path) -> None:
    """Anything else is the plugin's error."""

    class Wrong(Toy):
        def read(self, path: Path, options: Mapping[str, Any]) -> Reading:
            return None  # type: ignore[return-value]

    path = tmp_path / "a.toy"
    path.write_text("x")
    with pytest.raises(PluginError, match=r"returned no Reading for .*, but a value of type "):
        open_trace(path, load(only=["toy"], extra={"toy": Wrong(suffixes=(".toy",))}))


def test_faults_of_the_rows_are_all_named(plugins: Plugins, write_trace: Callable[..., Path]) -> None:
    """A trace with faults is refused with all of them."""
    path = write_trace({"queue": ""}, {"duration": -3})
    with pytest.raises(TraceError) as caught:
        open_trace(path, plugins)
    assert [str(fault) for fault in caught.value.faults] == [
        "row 1 (job 'j0'), queue: is empty",
        "row 2 (job 'j1'), duration: -3s must not be negative",
    ]
    assert caught.value.hint == "docs/traces.md describes every column"
    with pytest.raises(TraceError) as caught:
        open_trace(write_trace(*({"duration": -3} for _ in range(21))), plugins)
    assert caught.value.hint == f"list them all: harness trace check {path}"


def test_durations_count_from_zero(plugins: Plugins, write_trace: Callable[..., Path]) -> None:
    """A trace of durations has origin 0, wherever it begins."""
    path = write_trace({"submit_time": 90})
    opened = open_trace(path, plugins)
    assert (opened.kind, opened.time_zone, opened.origin) == ("duration", None, 0)
    assert opened.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert opened.rows_read == 1


@pytest.mark.parametrize("year", [1965, 2020])
def test_timestamps_count_from_the_whole_second_of_the_first(
    tmp_path: Path, plugins: Plugins, year: int
) -> None:
    """The origin is the first submit time, floored, also before 1970; rows need not be sorted."""
    first = datetime(year, 1, 1, 0, 0, 7, 900_000, tzinfo=UTC)
    frame = pl.DataFrame(
        {"job_id": ["b", "a"], "queue": "q", "duration": timedelta(), "request.cpu": 1}
    ).with_columns(pl.Series("submit_time", [first + timedelta(days=1), first]))
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    opened = open_trace(path, plugins)
    assert (opened.kind, opened.time_zone) == ("timestamp", "UTC")
    assert opened.origin == int(datetime(year, 1, 1, 0, 0, 7, tzinfo=UTC).timestamp()) * SECOND
    assert opened.frame["job_id"].to_list() == ["b", "a"]


def test_columns_come_in_the_order_of_the_schema_and_others_stay(plugins: Plugins, tmp_path: Path) -> None:
    """Canonical columns first, then what only the trace knows."""
    frame = pl.DataFrame(
        {
            "remark": ["x"],
            "request.memory": [1],
            "queue": ["q"],
            "request.cpu": [1],
            "duration": [timedelta()],
            "job_id": ["a"],
            "submit_time": [timedelta()],
        }
    )
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    assert open_trace(path, plugins).frame.columns == [
        "job_id", "submit_time", "duration", "queue", "request.cpu", "request.memory", "remark",
    ]  # fmt: skip


def failing(*_: object) -> bool:
    """Fails when it is asked."""
    raise KeyError("boom")


def test_a_reader_that_fails_to_look_at_a_file_is_left_out(tmp_path: Path) -> None:
    """Others read the file; a warning names the reader."""
    path = tmp_path / "log"
    path.write_text(SWF)
    with pytest.warns(UserWarning, match="reader 'toy' of 'toy' failed when .* harness ignores this reader"):
        assert open_trace(path, with_toy(sniff=failing)).reader == "swf"


def test_a_reader_that_fails_to_look_at_a_folder_is_left_out(tmp_path: Path) -> None:
    """It is told that nobody reads it, and which reader failed."""
    with (
        pytest.warns(UserWarning, match="reader 'toy' of 'toy' failed when harness asked"),
        pytest.raises(TraceError, match="is a directory"),
    ):
        open_trace(tmp_path, with_toy(folder=failing))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"frame": pl.LazyFrame({"job_id": ["a"]})}, "frame must be a polars DataFrame"),
        ({"frame": {"job_id": ["a"]}}, "frame must be a polars DataFrame"),
        ({"rows_read": "1"}, "rows_read must be a whole number"),
        ({"left_out": {"short": "1"}}, "left_out must be a mapping of strings to numbers"),
        ({"notes": "each line is a job"}, "notes must be a tuple of strings"),
        ({"metadata": {"a": 5}}, "metadata must be a mapping of strings to strings"),
        ({"metadata": None}, "metadata must be a mapping of strings to strings, but is None"),
    ],
)
def test_what_a_reader_answers_is_of_the_right_types(tmp_path: Path, how: Any, why: str) -> None:
    """Anything else is the reader's fault, with its name and the file."""

    class Odd(Toy):
        def read(self, path: Path, options: Mapping[str, Any]) -> Reading:
            return replace(super().read(path, options), **how)

    path = tmp_path / "a.toy"
    path.write_text("a b")
    plugins = load(only=["readers", "toy"], extra={"toy": Odd(suffixes=[".toy"])})
    with pytest.raises(
        PluginError, match=f"reader 'toy' of 'toy' returned a wrong Reading for .*a.toy: {why}"
    ):
        open_trace(path, plugins)
