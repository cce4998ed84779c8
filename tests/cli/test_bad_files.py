"""Files and folders that are missing, damaged or in the way: one clear message, exit code 2, nothing left."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cli_environment import clean_environment
from older_runs import as_schema_2


@pytest.fixture
def trace(folder: Path, write_trace: Callable[..., Path]) -> str:
    """A small trace in the folder."""
    write_trace({}, {"submit_time": 3}).rename(folder / "trace.parquet")
    return "trace.parquet"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the results of the trace are kept for all tests."""
    return tmp_path_factory.mktemp("kept") / "results"


@pytest.fixture
def run(harness: Callable, trace: str, folder: Path, kept: Path) -> Path:
    """A finished run."""
    if kept.exists():
        shutil.copytree(kept, folder / "results")
    else:
        assert harness("replay", trace, "-q").code == 0
        shutil.copytree(folder / "results", kept)
    (made,) = (folder / "results" / "trace").iterdir()
    return made.relative_to(folder)


def test_a_trace_that_cannot_be_read(harness: Callable, folder: Path, trace: str) -> None:
    """Missing, a directory, empty, of no known format, truncated."""
    (folder / "empty.parquet").touch()
    (folder / "notes.txt").write_text("nothing of the kind\n")
    whole = (folder / trace).read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    for name, reason in {
        "absent.parquet": "there is no such file",
        ".": "is a directory, not a trace file",
        "empty.parquet": "is empty",
        "notes.txt": "no reader accepts this format",
        "cut.parquet": "is not a whole Parquet file",
    }.items():
        for call in (["replay", name], ["trace", "info", name], ["trace", "check", name]):
            ended = harness(*call)
            assert (ended.code, ended.out) == (2, "")
            assert ended.err.startswith(f"Error: {name}: {reason}"), ended.err
            assert ("Hint: specify its format" in ended.err) == (name == "notes.txt"), ended.err
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    "call",
    [
        ["cluster", "check", "latin"],
        ["cluster", "from-slurm", "latin"],
        ["cluster", "init", "trace.parquet", "--quota", "latin"],
        ["replay", "trace.parquet", "--patch", "latin"],
        ["replay", "trace.parquet", "--tenants", "map:latin"],
        ["sweep", "latin.yaml"],
        ["trace", "generate", "latin.yaml", "-o", "out.parquet"],
    ],
    ids=" ".join,
)
def test_text_in_another_encoding_names_the_line_and_the_remedy(
    harness: Callable, folder: Path, trace: str, call: list[str]
) -> None:
    """Whatever the file is for."""
    for name in ("latin", "latin.yaml"):
        (folder / name).write_bytes("kind: Node\nname: größer\n".encode("latin-1"))
    ended = harness(*call)
    assert (ended.code, ended.out) == (2, "")
    assert "is not UTF-8 text: byte 19 (line 2) is 0xf6" in ended.err
    assert "iconv -f WINDOWS-1252 -t UTF-8" in ended.err


def test_a_folder_of_results_that_cannot_be_written(harness: Callable, folder: Path, trace: str) -> None:
    """A file in the way of the results, of the trace's folder, or a name that no folder can have."""
    (folder / "file").touch()
    (folder / "results").mkdir()
    (folder / "results" / "trace").touch()
    for output, reason in {
        "file": "Not a directory",
        "file/below": "Not a directory",
        "results": "File exists",
        "x" * 300: "File name too long",
        b"\xff".decode("utf-8", "surrogateescape"): "no folder can have this name",
    }.items():
        ended = harness("replay", trace, "-q", "-o", output)
        assert (ended.code, ended.out) == (2, ""), ended
        error, hint = ended.err.rstrip("\n").split("\n")
        assert error.startswith("Error: ")
        assert error.endswith(f"cannot be written: {reason}")
        assert hint == "Hint: choose another folder with -o"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(harness: Callable, folder: Path, trace: str) -> None:
    """Nobody's folder, to be written to or read from."""
    (folder / "results").mkdir()
    for mode in (0o500, 0o000):
        (folder / "results").chmod(mode)
        ended = harness("replay", trace, "-q")
        assert ended.code == 2
        assert "cannot be written: Permission denied" in ended.err
    (folder / "results").chmod(0o700)


def test_what_is_in_the_way_of_a_run_is_replaced(harness: Callable, run: Path, trace: str) -> None:
    """A file or a folder of that name that is no run."""
    shutil.rmtree(run)
    run.touch()
    assert harness("replay", trace, "-q").code == 0
    assert harness("compare", run).code == 0
    (run / "jobs.parquet").unlink()
    assert "stored" not in harness("replay", trace).err
    assert harness("compare", run).code == 0
    assert [path.name for path in run.parent.iterdir()] == [run.name]


def test_a_full_disk_leaves_nothing(folder: Path, write_trace: Callable[..., Path]) -> None:
    """A run that cannot be finished is an error, and its parts are thrown away, folders included."""
    write_trace(*({"submit_time": number} for number in range(20_000))).rename(folder / "large.parquet")
    limit = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    limit += f"resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, {resource.RLIM_INFINITY}));"
    limit += "from harness.cli import main; main(['replay', 'large.parquet', '-q'])"
    ended = subprocess.run(
        [sys.executable, "-c", limit],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    error, _ = ended.stderr.rstrip("\n").split("\n")
    assert error.startswith("Error: results/large/none-")
    assert "cannot be written: " in error
    assert not (folder / "results").exists()


def damage(run: Path, how: str) -> None:
    """Spoils a run; one without sums is as older versions wrote them."""
    info = json.loads((run / "run.json").read_text())
    table = run / "metrics.parquet"
    if how.endswith(" without sums"):
        as_schema_2(run)
    match how.removesuffix(" without sums"):
        case "no run.json":
            (run / "run.json").unlink()
        case "not JSON":
            (run / "run.json").write_text("{")
        case "not UTF-8":
            (run / "run.json").write_bytes(b"\xff")
        case "no object":
            (run / "run.json").write_text("[1]")
        case "another schema":
            (run / "run.json").write_text(json.dumps(info | {"schema": "99"}))
        case "without a part":
            (run / "run.json").write_text(json.dumps({**info, "trace": {}}))
        case "of another type":
            (run / "run.json").write_text(json.dumps({**info, "window": [0]}))
        case "a number changed":
            (run / "run.json").write_text(json.dumps({**info, "window": [0, 1]}))
        case "another column" | "another type":
            whole = pq.read_table(table)
            place = whole.column_names.index("value")
            name, values = ("worth", whole["value"]) if "column" in how else ("value", whole["metric"])
            spoilt = whole.remove_column(place).add_column(place, name, values)
            pq.write_table(spoilt.replace_schema_metadata(whole.schema.metadata), table)
        case "no table":
            table.unlink()
        case "truncated table":
            table.write_bytes(table.read_bytes()[:-20])
        case "empty table":
            table.write_bytes(b"")
        case "another table":
            shutil.copy("trace.parquet", table)
        case "spoilt page":
            content = bytearray(table.read_bytes())
            content[4:200] = bytes(196)
            table.write_bytes(content)


@pytest.mark.parametrize(
    ("how", "message", "hint"),
    [
        ("no run.json", "is not a run: it has no run.json", "folders of its runs"),
        ("not JSON", "run.json cannot be read: Expecting", "replay it again"),
        ("not UTF-8", "run.json cannot be read: 'utf-8' codec", "replay it again"),
        ("no object", "has schema None", "replay it again"),
        (
            "another schema",
            "has schema '99'; this version of harness reads '2', '3' and '4'",
            "replay it again",
        ),
        ("without a part", "run.json is damaged: trace.name is None", "replay it again"),
        ("of another type", "run.json is damaged: window does not have two times", "replay it again"),
        ("no table", "is incomplete: there is no metrics.parquet", "replay it again"),
        ("a number changed", "run.json is damaged: it does not contain the checksums", "replay it again"),
        ("truncated table", "metrics.parquet is damaged: it has ", "replay it again"),
        ("empty table", "metrics.parquet is damaged: it has 0 bytes", "replay it again"),
        ("another table", "metrics.parquet is damaged: it has ", "replay it again"),
        ("spoilt page", "metrics.parquet is damaged: its content has changed", "replay it again"),
        ("another column", "metrics.parquet is damaged: it has ", "replay it again"),
        ("another table without sums", "is damaged: it is not a table of schema '2'", "again"),
        ("spoilt page without sums", "metrics.parquet is damaged: ", "replay it again"),
        ("another column without sums", "metrics.parquet is damaged: it has no column 'value'", "again"),
        ("another type without sums", "metrics.parquet is damaged: its column 'value' is String", "again"),
    ],
)
def test_a_damaged_run_is_named_and_replaced(
    how: str, message: str, hint: str, harness: Callable, run: Path, trace: str
) -> None:
    """Comparing says what is damaged and what to do; doing it heals the run."""
    damage(run, how)
    ended = harness("compare", run)
    assert (ended.code, ended.out) == (2, "")
    error, hinted = ended.err.rstrip("\n").split("\n")
    assert error.startswith("Error: ")
    assert str(run) in error
    assert message in error
    assert hint in hinted
    assert harness("replay", trace, "-q").code == 0
    assert harness("compare", run).code == 0


def test_no_flipped_bit_goes_unnoticed(harness: Callable, run: Path) -> None:
    """Whatever is read of a run is what was written, wherever in its files the disk changed a bit."""
    draw = random.Random(1)
    for name in ("run.json", "jobs.parquet", "metrics.parquet"):
        whole = (run / name).read_bytes()
        for place in draw.sample(range(len(whole)), 60):
            spoilt = bytearray(whole)
            spoilt[place] ^= 1 << draw.randrange(8)
            (run / name).write_bytes(spoilt)
            ended = harness("explain", run, "j1") if name == "jobs.parquet" else harness("compare", run)
            assert ended.code == 2, (name, place)
            assert "damaged" in ended.err or "cannot be read" in ended.err or "has schema" in ended.err
        (run / name).write_bytes(whole)
    assert harness("compare", run).code == 0


def test_a_run_without_sums_is_read(harness: Callable, run: Path) -> None:
    """Runs that older versions kept have none."""
    whole = harness("compare", run).out
    as_schema_2(run)
    assert harness("compare", run) == (0, whole, "")


def test_what_is_no_run_says_where_runs_are(harness: Callable, run: Path, trace: str) -> None:
    """A folder above, one that is not there, and a file: the message leads to a run."""
    for given, message in {
        "results": "is not a run: it has no run.json",
        "results/trace": "is not a run: it has no run.json",
        "results/trace/absent": "there is no such folder",
        f"{run}/run.json": "is a file, not the folder of a run",
    }.items():
        ended = harness("compare", given)
        assert ended.code == 2
        assert ended.err.startswith(f"Error: {given}")
        assert message in ended.err
        assert str(run) in ended.err.split("Hint: ")[1] or given.endswith("run.json")
    assert harness("compare", trace).err.startswith("Error: trace.parquet is a file, not the folder of a run")


def test_two_replays_at_once_end_in_one_whole_run(
    shell: Callable, harness: Callable, trace: str, folder: Path
) -> None:
    """Whoever is later keeps or replaces the same run."""
    start = f"harness replay {trace} -q --force >/dev/null &"
    ended = shell(f"{start} a=$!; {start} b=$!; wait $a && wait $b")
    assert (ended.code, ended.err) == (0, "")
    (run,) = (folder / "results" / "trace").iterdir()
    assert harness("compare", run).code == 0
