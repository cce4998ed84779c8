"""Damaged files of every format: they are read, or refused by name, whatever happened to them."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from reader_samples import SAMPLES, Sample

from harness.base.errors import TraceError
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.trace.choose import choose_reader
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs
from harness.trace.schema import entries, is_map
from harness.trace.summary import summarize
from harness.trace.trace import Trace, open_trace
from harness.trace.write import write_trace

PLUGINS = load(only=["readers"])
BINARY = ("parquet", "opendc", "swf in gzip")
JSON = ("philly-log", "kubernetes", "prometheus", "slurm json")
JSON_LINES = ("google collections", "google instances")
DELIMITED = [name for name in SAMPLES if name not in (*BINARY, *JSON, *JSON_LINES)]
TEXT = [name for name in SAMPLES if name not in BINARY]

FIRST = {sample.reader: name for name, sample in reversed(SAMPLES.items())}


def samples(names: Collection[str]) -> pytest.MarkDecorator:
    """Tries the first sample of each reader, and at night the others."""
    later = [() if FIRST[SAMPLES[name].reader] == name else pytest.mark.nightly for name in names]
    marked = [pytest.param(name, marks=mark) for name, mark in zip(names, later, strict=True)]
    return pytest.mark.parametrize("name", marked)


every_sample = samples(SAMPLES)
pieces = st.sampled_from(
    [b"", b"\n", b"\r", b"\r\n", b" ", b"\t", b",", b";", b"-", b".", b"-1", b"e9", b"nan", b"inf", b"9" * 19,
     b"0x1", b"\xff", b"\xef\xbb\xbf", b"\0", b'"', b"; UnixStartTime: 1e9\n", b"_", "٣".encode(), b"{", b"]",
     b":", b"null", b"9" * 400]
)  # fmt: skip
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 12), pieces | st.binary(max_size=4)),
    min_size=1,
    max_size=5,
)
sloppy = examples(80, fixtures=True)


def options_of(sample: Sample, folder: Path) -> Mapping[str, str]:
    """The sample's options; files are in this folder."""
    return {key: str(folder / value) for key, value in sample.options.items()}


def opened(sample: Sample, folder: Path, damaged: bytes | None = None) -> Trace:
    """The trace of a sample, damaged or whole."""
    path = sample.write(folder, damaged)
    return open_trace(path, PLUGINS, reader=sample.reader, options=options_of(sample, folder))


def edited(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """At each place so many bytes replaced by others."""
    for place, length, piece in changes:
        start = int(place * len(data))
        data = data[:start] + piece + data[start + length :]
    return data


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its maps as texts: polars has more than one type for them."""
    maps = [name for name, dtype in frame.schema.items() if is_map(dtype)]
    texts = [pl.Series(name, [repr(entries(value)) for value in frame[name].to_list()]) for name in maps]
    return frame.with_columns(texts)


def use(sample: Sample, folder: Path, damaged: bytes) -> None:
    """Whatever can be done with a trace; only a named error may come of it."""
    try:
        trace = opened(sample, folder, damaged)
    except TraceError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.faults
        assert str(refused).startswith(str(folder))
        return
    jobs = Jobs(JobColumns(trace, Cluster()))
    assert summarize(trace).jobs == len(jobs) == sum(len(chunk) for chunk in jobs.chunks())
    assert trace.rows_read == len(jobs) + sum(trace.left_out.values())
    copy = folder / "copy.parquet"
    write_trace(trace, copy)
    assert plain(open_trace(copy, PLUGINS).frame).equals(plain(trace.frame))


@every_sample
def test_a_whole_file_is_known_by_its_name_or_its_first_bytes(tmp_path: Path, name: str) -> None:
    """Without being told what it is."""
    sample = SAMPLES[name]
    trace = open_trace(sample.write(tmp_path), PLUGINS, options=options_of(sample, tmp_path))
    assert trace.reader == sample.reader
    use(sample, tmp_path, sample.contents)


@every_sample
@sloppy
@given(changes=edits)
def test_a_mutated_file_is_read_or_refused(
    tmp_path: Path, name: str, changes: list[tuple[float, int, bytes]]
) -> None:
    """Whatever bytes are replaced, left out or added."""
    sample = SAMPLES[name]
    use(sample, tmp_path, edited(sample.contents, changes) or b"\n")


@pytest.mark.parametrize("reader", PLUGINS.readers.names())
@given(data=st.binary(min_size=1, max_size=200))
@examples(15, fixtures=True)
def test_any_bytes_are_refused_by_every_reader(tmp_path: Path, reader: str, data: bytes) -> None:
    """Asked for by name, a reader gets what is not its format at all."""
    beside = {"pai": {"tasks": "any"}, "google-2019": {"instances": "any"}, "table": {"mapping": "any"}}
    use(Sample(reader, {"any": data}, "any", "any", beside.get(reader, {})), tmp_path, data)


# --- what people really have ------------------------------------------------------------------------------


def refusals(sample: Sample, folder: Path, damaged: bytes) -> str:
    """The message about a damaged sample, with which the command line exits with 2."""
    with pytest.raises(TraceError) as caught:
        opened(sample, folder, damaged)
    arguments = ["trace", "check", str(folder / sample.main), "--reader", sample.reader]
    for key, value in options_of(sample, folder).items():
        arguments += ["--set", f"{key}={value}"]
    assert called(arguments) == 2
    where = folder / sample.damaged
    assert str(caught.value).startswith(str(where)), caught.value
    return str(caught.value)


def data_lines(sample: Sample) -> Iterator[int]:
    """Places of the lines that hold data, from 0."""
    lines = sample.contents.splitlines()
    headed = lines[0].startswith((b"timestamp", b"name", b"job_", b"instance_", b"JobID"))
    for place, line in enumerate(lines):
        if not line.startswith(b";") and not (headed and place == 0):
            yield place


def delimiter_of(name: str) -> bytes:
    """What stands between the cells of a sample."""
    return {"machines": b"\t", "swf": b" ", "extended swf": b" ", "slurm": b"|"}.get(name, b",")


@every_sample
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    """Nothing at all, or nothing but blanks."""
    assert "is empty" in refusals(SAMPLES[name], tmp_path, b"") or SAMPLES[name].damaged != SAMPLES[name].main
    refusals(SAMPLES[name], tmp_path, b" \r\n\t\n")


@every_sample
def test_a_directory(tmp_path: Path, name: str) -> None:
    """In the place of any file."""
    sample = SAMPLES[name]
    path = sample.write(tmp_path)
    (tmp_path / sample.damaged).unlink()
    (tmp_path / sample.damaged).mkdir()
    with pytest.raises(TraceError, match=r"is a directory|Is a directory"):
        open_trace(path, PLUGINS, reader=sample.reader, options=options_of(sample, tmp_path))


def named(name: str, place: int) -> str:
    """How messages call a line: of tables by its row, since cells in quotes may hold line breaks."""
    return f"row {place}" if name == "csv" else f"line {place + 1}"


@samples(TEXT)
def test_a_gzip_file_that_is_cut_off(tmp_path: Path, name: str) -> None:
    """As a download that broke off leaves it."""
    sample = SAMPLES[name]
    whole = gzip.compress(sample.contents, mtime=0)
    assert opened(sample, tmp_path, whole).frame.equals(opened(sample, tmp_path).frame)
    assert "is not a whole gzip file" in refusals(sample, tmp_path, whole[: len(whole) // 2])


@samples(TEXT)
def test_a_zip_archive_is_named_as_one(tmp_path: Path, name: str) -> None:
    """With or without the name of a reader, as data sets are often published in one."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("jobs", SAMPLES[name].contents)
    assert "is a zip archive, which harness does not read" in refusals(
        SAMPLES[name], tmp_path, made.getvalue()
    )
    (tmp_path / "jobs.zip").write_bytes(made.getvalue())
    with pytest.raises(TraceError, match="is a zip archive"):
        choose_reader(tmp_path / "jobs.zip", load())


@pytest.mark.parametrize("name", ["parquet", "opendc"])
def test_a_parquet_file_cut_in_half(tmp_path: Path, name: str) -> None:
    """Its footer is gone."""
    sample = SAMPLES[name]
    half = sample.contents[: len(sample.contents) // 2]
    assert "is not a whole Parquet file" in refusals(sample, tmp_path, half)


@pytest.mark.parametrize("name", DELIMITED)
def test_a_line_with_a_column_too_many(tmp_path: Path, name: str) -> None:
    """Named by its number."""
    sample = SAMPLES[name]
    lines = sample.contents.splitlines()
    place = list(data_lines(sample))[-1]
    lines[place] += delimiter_of(name) + b"7"
    message = refusals(sample, tmp_path, b"\n".join(lines))
    assert f"{named(name, place)}: has " in message


@samples(TEXT)
def test_bytes_that_are_no_utf_8(tmp_path: Path, name: str) -> None:
    """Named by the line."""
    sample = SAMPLES[name]
    lines = sample.contents.splitlines()
    place = 0 if name in (*JSON, *JSON_LINES) else next(data_lines(sample))
    lines[place] = lines[place][:1] + b"\xff" + lines[place][1:]
    assert f"line {place + 1}: is not " in refusals(sample, tmp_path, b"\n".join(lines))


@pytest.mark.parametrize("name", DELIMITED)
def test_a_number_without_end(tmp_path: Path, name: str) -> None:
    """400 digits are out of range, and no other number."""
    sample = SAMPLES[name]
    delimiter = delimiter_of(name)
    lines = sample.contents.splitlines()
    place = list(data_lines(sample))[-1]
    for column in range(len(lines[place].split(delimiter))):
        words = lines[place].split(delimiter)
        if not words[column].replace(b".", b"").isdigit():
            continue
        words[column] = b"9" * 400
        damaged = b"\n".join([*lines[:place], delimiter.join(words), *lines[place + 1 :]])
        try:
            trace = opened(sample, tmp_path, damaged)
        except TraceError as error:
            assert f"{named(name, place)}: " in str(error)  # noqa: PT017
        else:  # a name
            assert trace.frame.height == opened(sample, tmp_path).frame.height


@samples(TEXT)
def test_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path, name: str) -> None:
    """Windows' line ends, and both kinds in one file."""
    sample = SAMPLES[name]
    whole = opened(sample, tmp_path).frame
    first, rest = sample.contents.split(b"\n", 1)
    for damaged in (
        sample.contents.replace(b"\n", b"\r\n"),
        first + b"\r\n" + rest,
        b"\xef\xbb\xbf" + sample.contents,
        sample.contents.rstrip(b"\n"),
        sample.contents + b"\n\n",
    ):
        assert opened(sample, tmp_path, damaged).frame.equals(whole)
