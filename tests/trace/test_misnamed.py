"""Further columns that were probably meant for the schema are named with the column that was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cli_environment import called
from reader_samples import SAMPLES

import harness
from harness.base.tables.schemas import DECISIONS, jobs, stints
from harness.plugins import load
from harness.trace.lint import lint
from harness.trace.misnamed import misnamed, sentences
from harness.trace.schema import COLUMNS, LIMIT, REQUEST, column_of
from harness.trace.trace import open_trace

PLUGINS = load(only=["readers"])
TRACES = Path(__file__).parents[2] / "traces"


def asked(*names: str, dtype: Any = pl.Int64, has: tuple[str, ...] = ()) -> dict[str, str]:
    """What is asked about further columns of a trace that has what it needs, and some columns more."""
    needed = ("job_id", "submit_time", "duration", "queue", "request.cpu", *has)
    return misnamed({**dict.fromkeys(needed, pl.String()), **{name: dtype() for name in names}})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("prioritiy", "priority"),
        ("prority", "priority"),
        ("prioirty", "priority"),
        ("Priority", "priority"),
        ("priority-class", "priority_class"),
        ("users", "user"),
        ("name space", "namespace"),
        ("requestd_tme", "requested_time"),
        ("recorded_sart", "recorded_start"),
        ("requests.memory", "request.memory"),
        ("request_memory", "request.memory"),
        ("Request.nvidia.com/gpu", "request.nvidia.com/gpu"),
        ("reqest.rdma", "request.rdma"),
        ("req-mem", "request.memory"),
        ("limits.cpu", "limit.cpu"),
        ("limit_cpu", "limit.cpu"),
    ],
)
def test_a_column_that_is_nearly_one_of_the_schema_is_asked_about(name: str, meant: str) -> None:
    """An edit or two by its length, other letters' case and signs between words, or Kubernetes' own names."""
    assert asked(name) == {name: meant}
    assert asked(name, dtype=pl.String) == {name: meant}
    assert asked(name, has=(meant,)) == {}


def test_every_column_that_may_lack_is_found_by_a_doubled_sign() -> None:
    """Whichever sign it is, but in names of less than four."""
    for column in COLUMNS:
        if column.default is not None and column.name not in (REQUEST, LIMIT) and len(column.name) > 3:
            dtype = pl.String if column.kind.name != "MAP" else None
            for at in range(len(column.name)):
                name = column.name[:at] + column.name[at] + column.name[at:]
                found = asked(name, dtype=dtype) if dtype else misnamed({name: _MAP})
                assert found in ({name: column.name}, {}), name
                assert bool(found) == (column_of(name) is None)


_MAP = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


REAL = """
    status state group partition user_id gid id name job_name node nodes hosts qos app account project cluster
    exit_code start end start_time end_time submit wait_time pod pod_id pod_name pod_phase label labels_hash
    type gpu_type used lang max_pods num_gpu request_id request_name requested_nodes req_id limit time_limit
    spec team priority_name recorded_hosts recorded_state recorded_runs attempts swf_queue processors model
"""


def test_real_further_columns_are_not_asked_about() -> None:
    """Those of public traces and accountings, and those that replays and runs have."""
    real = REAL.split()
    ours = [*jobs(["cpu"], {}), *stints(["cpu"]), *DECISIONS]
    for dtype in (pl.String, pl.Int64, pl.Float64):
        assert asked(*real, *ours, dtype=dtype, has=("pods", "user")) == {}
    assert asked(*real, dtype=pl.String) == {}
    assert asked("request_time", dtype=pl.Datetime) == {}


def test_no_reader_and_no_bundled_trace_has_a_column_that_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they keep beside the schema."""
    for place, sample in enumerate(SAMPLES.values()):
        folder = tmp_path / str(place)
        folder.mkdir()
        monkeypatch.chdir(folder)  # one of them names a file beside it
        trace = open_trace(sample.write(folder), PLUGINS, reader=sample.reader, options=sample.options)
        assert misnamed(trace.frame.schema) == {}
    for file in sorted(TRACES.glob("*.parquet")):
        assert misnamed(pl.read_parquet_schema(file)) == {}


@pytest.fixture
def misspelt(write_trace: Callable[..., Path]) -> Path:
    """A trace with `prioritiy` and `requests.memory`."""
    rows = [{"job_id": f"j{n}", "prioritiy": n, "requests.memory": 2**30, "status": "ok"} for n in range(4)]
    return write_trace(*rows)


SAID = [
    "column 'prioritiy' is not in the schema: did you mean 'priority'?",
    "column 'requests.memory' is not in the schema: did you mean 'request.memory'?",
]


def test_lint_and_replays_name_both(misspelt: Path, tmp_path: Path) -> None:
    """A finding each, and a warning of the run."""
    trace = open_trace(misspelt, PLUGINS)
    assert sorted(sentences(trace.frame.schema)) == SAID
    found = [each for each in lint(trace) if each.check == "column-name"]
    assert sorted(each.says.split("'")[1] for each in found) == ["prioritiy", "requests.memory"]
    assert sorted(each.do.split("'")[1] for each in found) == ["priority", "request.memory"]
    run = harness.replay(misspelt, plugin="none", output=tmp_path / "run")
    assert sorted(each for each in run.info["cluster"]["warnings"] if "not in the schema" in each) == SAID


@pytest.mark.parametrize("command", ["check", "info", "lint", "convert"])
def test_commands_that_look_at_a_trace_ask(
    command: str, misspelt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each names both columns; it is no fault."""
    more = [str(tmp_path / "out.parquet")] if command == "convert" else []
    assert called(["trace", command, str(misspelt), *more]) == 0
    out, err = capsys.readouterr()
    for words in ("'prioritiy'", "'priority'", "'requests.memory'", "'request.memory'"):
        assert words in out + err


def test_a_mapping_to_a_misspelt_column_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The columns are made as they are called."""
    (tmp_path / "t.csv").write_text("id,at,took,who,cpus,mem,prio\na,0,5,q,1,7,3\n")
    mapped = "job_id=id,submit_time=at,duration=took,queue=who,request.cpu=cpus"
    mapped += ",requests.memory=mem,prority=prio"
    files = [str(tmp_path / name) for name in ("t.csv", "t.parquet")]
    assert called(["trace", "convert", *files, "--reader", "csv", "--set", f"map={mapped}"]) == 0
    out = "".join(capsys.readouterr())
    assert "'prority' is not in the schema: did you mean 'priority'?" in out
    assert "'requests.memory' is not in the schema: did you mean 'request.memory'?" in out
