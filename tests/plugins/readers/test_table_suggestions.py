"""Tables that no reader takes as they are: which named mapping fits, and a mapping to start from."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import yaml
from cli_environment import called

from harness_plugins.readers.tables.mapping import named_mappings, read_mapping

JOBS = {
    "JobID": ["a", "b", "c"],
    "Submit Time": [1_700_000_000_000, 1_700_000_060_000, 1_700_000_120_000],
    "started": ["2023-11-14 22:14:00", None, "2023-11-14 22:16:00"],
    "finished": ["2023-11-14 22:15:00", None, "2023-11-14 22:19:00"],
    "timelimit": [60, 2**32 - 1, 5],
    "num_nodes": [2, 1, 1],
    "nodelist": [["n1", "n2"], ["n1"], ["n3"]],
    "cpus_req": [7, 7, 7],
    "cpus_alloc": [8, 4, 4],
    "mem": ["2G", "1G", "1G"],
    "state": ["COMPLETED", "PENDING", "COMPLETED"],
    "class": ["x", "y", "z"],
}


def eagle(path: Path) -> None:
    """A table with the columns of Eagle's."""
    names = read_mapping("nrel_eagle").wanted
    times = ("submit_time", "start_time", "end_time")
    at = datetime(2020, 1, 1)
    rows = {name: [at, at] if name in times else [1, 2] for name in names}
    pl.DataFrame({**rows, "partition": ["p", "q"], "user": ["u", "v"]}).write_parquet(path)


def test_a_table_of_a_known_data_set_is_answered_with_the_command_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it can be copied: a file, and a folder of files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my tables").mkdir()
    eagle(tmp_path / "a table.parquet")
    eagle(tmp_path / "my tables" / "eagle_data.parquet")
    for table in ("'a table.parquet'", "'my tables'"):
        assert called(["trace", "info", *shlex.split(table)]) == 2
        said = capsys.readouterr().err
        command = f"harness trace convert {table} nrel_eagle.parquet --map nrel_eagle"
        assert said.rstrip().endswith(command)
        assert called(shlex.split(command)[1:]) == 0
        capsys.readouterr()


def test_another_table_is_answered_with_suggest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parquet, text and JSON lines; what is no table has the hint of any file."""
    pl.DataFrame({"x": [1], "y": [2]}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.txt").write_text("x;y\n1;2\n")
    (tmp_path / "t.jsonl").write_text('{"x": 1, "y": "b"}\n{"x": 2}\n')
    for name in ("t.parquet", "t.txt", "t.jsonl"):
        assert called(["trace", "info", str(tmp_path / name)]) == 2
        assert f"harness trace convert {tmp_path / name} --map suggest" in capsys.readouterr().err
    (tmp_path / "t.bin").write_bytes(bytes(range(256)))
    assert called(["trace", "info", str(tmp_path / "t.bin")]) == 2
    assert "specify its format with --reader" in capsys.readouterr().err


def test_suggest_prints_a_mapping_that_can_be_given_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers before lists, amounts given before those asked for, units by values, and remarks on doubts."""
    table = tmp_path / "t.parquet"
    pl.DataFrame(JOBS).write_parquet(table)
    assert called(["trace", "convert", str(table), "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed) == {
        "where": "state not in ('PENDING',)",
        "columns": {
            "job_id": "JobID",
            "submit_time": "col('Submit Time') : unix-ms",
            "recorded_start": "started",
            "recorded_end": "finished",
            "duration": "finished - started",
            "requested_time": "below(timelimit, 2147483647)",
            "queue": "'all'",
            "pods": "num_nodes",
            "total.cpu": "cpus_alloc",
            "total.memory": "size(mem)",
        },
    }
    assert "in seconds? for minutes, add ': m'" in printed
    assert "# unused columns: nodelist, cpus_req, state, class" in printed
    (tmp_path / "m.yaml").write_text(printed)
    out = str(tmp_path / "out.parquet")
    assert called(["trace", "convert", str(table), out, "--map", str(tmp_path / "m.yaml")]) == 0
    found = pl.read_parquet(out)
    assert found.select("job_id", "pods", "request.cpu").rows() == [("a", 2, 4000), ("c", 1, 4000)]
    assert found["submit_time"][0] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_suggest_knows_records_in_a_document_and_delimiters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says nothing of what it does not find but what stands in its place."""
    document = [{"queue": "q", "tasks": [{"id": "a", "submitted": 5, "ran": 1, "m": [1, 2]}]}]
    (tmp_path / "t.json").write_text(json.dumps(document))
    (tmp_path / "t.txt").write_text("Job|Submitted|Elapsed\n1|1700000000|00:10:00\n")
    assert called(["trace", "convert", str(tmp_path / "t.json"), "--map", "suggest"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert found["records"] == "tasks"
    assert found["columns"]["queue"] == "queue"
    assert called(["trace", "convert", str(tmp_path / "t.txt"), "--map", "suggest"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert found["delimiter"] == "|"
    assert found["columns"] == {
        "job_id": "Job",
        "submit_time": "Submitted : unix",
        "duration": "span(Elapsed)",
        "queue": "'all'",
        "request.cpu": "'1000'",
    }
    (tmp_path / "t.bin").write_bytes(bytes(range(256)))
    assert called(["trace", "convert", str(tmp_path / "t.bin"), "--map", "suggest"]) == 2
    assert "is not a table of Parquet, JSON or text" in capsys.readouterr().err
    (tmp_path / "t.json").write_text(json.dumps(document)[:-20])
    assert called(["trace", "convert", str(tmp_path / "t.json"), "--map", "suggest"]) == 2
    assert "t.json: line 1: is not JSON: " in capsys.readouterr().err


def test_suggest_knows_amounts_in_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name within the object counts, unless another column has such a name itself."""
    resources = {"cpus": 4, "memory_gb": 2, "gpus": 1}
    row = {"id": "a", "submit_time": 0, "run_time": 60, "gpus": 8, "resources": resources}
    (tmp_path / "t.json").write_text(json.dumps([row]))
    assert called(["trace", "convert", str(tmp_path / "t.json"), "--map", "suggest"]) == 0
    drafted = yaml.safe_load(capsys.readouterr().out)["columns"]
    assert drafted["request.cpu"] == "col('resources.cpus')"
    assert drafted["request.memory"] == "col('resources.memory_gb') : GB"
    assert drafted["request.nvidia.com/gpu"] == "gpus"


def test_a_column_without_a_name_is_called_by_its_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index that pandas writes has no name, and spreadsheets write empty columns at the end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(",submit_time,run_time,,\n7,0,60,,\n8,1,60,,\n")
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    drafted = capsys.readouterr().out
    assert "# unused columns: column 1, column 4, column 5" in drafted
    (tmp_path / "m.yaml").write_text(drafted.replace("row()", "col('column 1')"))
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    assert pl.read_parquet("out.parquet")["job_id"].to_list() == ["7", "8"]


def test_suggest_knows_a_table_without_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number is no name of a column, so the first line is a row, even if cells are equal."""
    (tmp_path / "t.csv").write_text("v1,s1,0,0,4\nv2,s1,300,7200,2\n")
    assert called(["trace", "convert", str(tmp_path / "t.csv"), "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["header"] is False
    assert "# unused columns: 1, 2, 3, 4, 5" in printed


def test_columns_with_the_names_of_a_trace_are_mapped_to_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Amounts are those of a pod, unless they say otherwise. `uid` is often the number of a user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(
        "job_id,submit_time,duration,queue,pods,request.cpu,request.nvidia.com/gpu,total.memory,"
        "cpus,priority,namespace,uid\nj,2024-01-01T00:00:00Z,60,q,2,1500,1,2048,3,7,n,1000\n"
    )
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    drafted = yaml.safe_load(printed)["columns"]
    assert {name: drafted[name] for name in drafted if name not in ("job_id", "submit_time", "duration")} == {
        "queue": "queue",
        "pods": "pods",
        "request.cpu": "col('request.cpu') : millicores",
        "request.nvidia.com/gpu": "col('request.nvidia.com/gpu')",
        "total.memory": "col('total.memory')",
        "priority": "priority",
        "namespace": "namespace",
    }
    assert "in millicores? for cores, leave out ': millicores'" in printed
    assert "# unused columns: cpus, uid" in printed
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    found = pl.read_parquet("out.parquet")
    columns = ("pods", "request.cpu", "request.memory", "request.nvidia.com/gpu", "priority", "namespace")
    assert found.select(columns).rows() == [(2, 1500, 1024, 1, 7, "n")]


def test_cells_say_how_a_draft_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decimal commas, sizes with letters, shares of a core, and times with an offset, as of a spreadsheet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(
        "job_id;submit_time;duration;queue;request.cpu;request.memory\n"
        "j;2026-03-29T01:30:00+01:00;90,5;q;0,5;4Gi\nk;2026-03-29 01:30:00Z;60;q;2;1G\n"
    )
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["columns"] == {
        "job_id": "job_id",
        "submit_time": "submit_time",
        "duration": "comma(duration)",
        "queue": "queue",
        "request.cpu": "comma(col('request.cpu'))",
        "request.memory": "size(col('request.memory'))",
    }
    assert "time zone" not in printed
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    found = pl.read_parquet("out.parquet")
    assert found["duration"].to_list() == [timedelta(seconds=90.5), timedelta(seconds=60)]
    assert found.select("request.cpu", "request.memory").rows() == [(500, 2**32), (2000, 2**30)]


def test_a_draft_asks_whether_commas_are_between_thousands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,024 cores are not one core."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(
        'job_id,submit_time,duration,queue,cpus,gpus\nj,2026-03-29T01:30:00Z,60,q,"1,024","0,5"\n'
        "k,2026-03-29T01:30:00Z,60,q,64,2\n"
    )
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert "request.cpu: thousands(cpus)  # is the comma between thousands?" in printed
    assert "request.nvidia.com/gpu: comma(gpus)\n" in printed


@pytest.mark.parametrize("none", ["0", "-1"])
def test_jobs_without_a_start_or_an_end_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], none: str
) -> None:
    """The draft says so. A mapping of one's own that keeps them gets a note: they did not start in 1970."""
    monkeypatch.chdir(tmp_path)
    rows = ["job_id,submit_time,start_time,end_time,queue", "j,1709287200,1709287200,1709287260,q"]
    rows += [f"k,1709287200,{none},{none},q", f"l,1709287200,1709287300,{none},q"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["where"] == "start_time > 0 and end_time > 0"
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    assert pl.read_parquet("out.parquet")["job_id"].to_list() == ["j"]
    assert "1970" not in capsys.readouterr().out
    own = "submit_time=submit_time:unix, recorded_start=start_time:unix, duration='1h', request.cpu='1'"
    assert called(["trace", "convert", "a.csv", "own.parquet", "--reader", "csv", "--set", f"map={own}"]) == 0
    assert "recorded_start: 1 row has a time before 1970-01-02" in capsys.readouterr().out


def test_a_table_in_another_encoding_is_drafted_and_then_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the names and the kinds of cells matter for a draft. A file that is no text has none."""
    monkeypatch.chdir(tmp_path)
    rows = b"job_id,submit_time,duration,queue\nj,2026-03-29T01:30:00Z,60,caf\xe9\n"
    (tmp_path / "a.csv").write_bytes(rows)
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    (tmp_path / "m.yaml").write_text(capsys.readouterr().out)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 2
    told = capsys.readouterr().err
    assert "line 2: is not UTF-8 text: byte 0xe9" in told
    assert "iconv -f WINDOWS-1252 -t UTF-8" in told
    (tmp_path / "a.csv").write_bytes(rows + b"\0")
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 2


def test_words_for_no_value_are_left_out_by_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As databases and pandas write them. A queue may have such a name."""
    monkeypatch.chdir(tmp_path)
    rows = ["job_id,submit_time,start_time,end_time,duration,cpus,queue"]
    rows += ["j,2026-03-29T01:30:00Z,2026-03-29T01:30:00Z,2026-03-29T01:31:00Z,60,4,None"]
    rows += ["k,2026-03-29T01:30:00Z,None,None,NULL,4,q", "l,2026-03-29T01:30:00Z,,NaT,30,\\N,q"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert "time zone" not in printed
    assert "duration: \"unless(duration, 'NULL')\"  # in seconds?" in printed
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    found = pl.read_parquet("out.parquet").select("job_id", "duration", "request.cpu", "queue").rows()
    assert found == [("j", timedelta(minutes=1), 4000, "None"), ("l", timedelta(seconds=30), None, "q")]
    assert "1 without duration" in capsys.readouterr().out


def test_a_draft_asks_for_the_zone_of_dates_without_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The day in 2026-03-29 is no offset, unlike the end of 01:30:00-05."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(
        "job_id,submit_time,start_time,duration,queue\nj,2026-03-29,2026-03-29 01:30:00.5-05,60,q\n"
    )
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert "submit_time: submit_time  # in which time zone?" in printed
    assert "recorded_start: start_time\n" in printed


@pytest.mark.parametrize(
    ("head", "row", "columns"),
    [
        (
            "Task Name,Request GPU,Request CPU,Request Host Memory,Submit Time",
            "a,8,32,65536.0,1590000000",
            {
                "job_id": "col('Task Name')",
                "request.cpu": "col('Request CPU')",
                "request.memory": "col('Request Host Memory')",
                "request.nvidia.com/gpu": "col('Request GPU')",
            },
        ),
        (
            "JOB_NAME,COBALT_JOBID,QUEUED_TIMESTAMP,QUEUE_NAME,NODES_USED,NODES_REQUESTED,maxcpu",
            "x,477455,2021-01-01 00:00:00,default,128,130,99.5",
            {"job_id": "COBALT_JOBID", "submit_time": "QUEUED_TIMESTAMP", "pods": "NODES_USED"},
        ),
        (
            ",job_id,submit_ms,start_ms,end_ms,partition,maxcpu",
            "0,1.0,1590000000000,1590000001000,1590000002000,p,2",
            {
                "job_id": "job_id",
                "submit_time": "submit_ms : unix-ms",
                "duration": "end_ms - start_ms : unix-ms",
            },
        ),
        (
            "pod,namespace,cpu_request,gpu_request,created_at,vc",
            "p1,ns,500m,1,2024-01-01T00:00:00Z,v",
            {"job_id": "pod", "request.cpu": "cores(cpu_request)", "queue": "vc", "namespace": "namespace"},
        ),
    ],
)
def test_names_of_columns_in_published_tables_are_known(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    head: str,
    row: str,
    columns: dict[str, str],
) -> None:
    """Amounts may be requests; a pod's name is no number of pods, and a peak of usage is no request."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(f"{head}\n{row}\n")
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)["columns"]
    assert found.items() >= columns.items()
    assert "maxcpu" not in found.values()


@pytest.mark.parametrize(
    ("first", "second", "form", "asked"),
    [
        ("31.03.2024 10:00", "31.03.2024 10:01", "%d.%m.%Y %H:%M", ""),
        ("2024/03/31 10:00:00", "2024/03/31 10:01:00", "%Y/%m/%d %H:%M:%S", ""),
        ("3/31/2024 10:00:00 PM", "3/31/2024 10:01:00 PM", "%m/%d/%Y %I:%M:%S %p", "month first?"),
        ("31/03/2024 10:00", "31/03/2024 10:01", "%d/%m/%Y %H:%M", ""),
        ("Sun Mar 31 10:00:00 2024", "Sun Mar 31 10:01:00 2024", "%a %b %d %H:%M:%S %Y", ""),
    ],
)
def test_usual_forms_of_times_are_drafted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    first: str,
    second: str,
    form: str,
    asked: str,
) -> None:
    """A form that fits by chance, because no day is above 12, is asked about."""
    monkeypatch.chdir(tmp_path)
    rows = ["job_id,submit_time,start_time,end_time,queue", f"j,{first},{first},{second},q"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert f'submit_time: "submit_time : {form}"  # {asked}' in printed
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    assert pl.read_parquet("out.parquet")["duration"].to_list() == [timedelta(minutes=1)]


def test_amounts_of_slurm_are_drafted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are of the whole job. The granted ones count, with the number of nodes."""
    monkeypatch.chdir(tmp_path)
    rows = ["id,submit,elapsed,partition,tres_req,tres_alloc"]
    rows += ['7,2026-01-01T00:00:00Z,60,p,"cpu=1,node=1","cpu=4,mem=8G,node=2,gres/gpu:a100=2"', "8,,,p,,"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    printed = capsys.readouterr().out
    assert "# unused columns: tres_req\n" in printed
    (tmp_path / "m.yaml").write_text(printed)
    assert called(["trace", "convert", "a.csv", "out.parquet", "--map", "m.yaml"]) == 0
    found = pl.read_parquet("out.parquet")
    columns = ("job_id", "pods", "request.cpu", "request.memory", "request.nvidia.com/gpu")
    assert found.select(columns).rows() == [("7", 2, 2000, 2**32, 1)]


def test_no_mapping_is_called_suggest() -> None:
    """The word asks for one."""
    assert "suggest" not in named_mappings()


def test_units_in_the_names_of_columns_are_those_of_the_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without them 16 GB would be 16 bytes, and minutes seconds."""
    monkeypatch.chdir(tmp_path)
    head = "Job ID,Submitted,Runtime (min),RAM (GB),vCPU,time_limit_hours,Team"
    (tmp_path / "a.csv").write_text(f"{head}\nj,2024-01-01T00:00:00Z,2,16,4,3,x\n")
    assert called(["trace", "convert", "a.csv", "--map", "suggest"]) == 0
    drafted = yaml.safe_load(capsys.readouterr().out)["columns"]
    assert drafted["duration"] == "col('Runtime (min)') : m"
    assert drafted["requested_time"] == "time_limit_hours : h"
    assert drafted["request.memory"] == "col('RAM (GB)') : GB"
    assert (drafted["request.cpu"], drafted["queue"]) == ("vCPU", "Team")
