"""Slurm's accounting: real dumps against what their jobs recorded, and every rule on rows by hand."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from harness.base.errors import OptionError, TraceError
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs
from harness.trace.schema import entries
from harness.trace.trace import Trace, open_trace

DUMPS = Path(__file__).parent / "slurm"
WHOLE = [
    "by_job_ids_epoch.txt.gz", "noconvert.txt.gz", "converted_units.txt.gz", "steps.txt.gz",
    "all_columns.txt.gz", "sacct.json.gz", "tz_newyork.txt.gz", "after_cold_start.txt.gz",
]  # fmt: skip
MIB = 2**20


@pytest.fixture(scope="module")
def opened(readers: Plugins) -> Callable[..., Trace]:
    """The trace of a dump."""

    @cache
    def trace(name: str, **options: str) -> Trace:
        if name.startswith("tz_newyork"):
            options = {"timezone": "America/New_York", **options}
        return open_trace(DUMPS / name, readers, options=options)

    return trace


class Run(NamedTuple):
    """What a job recorded of one of its runs."""

    job: str
    kind: str
    start: float
    end: float | None
    nodes: int
    cpus: int
    memory: int | None


@pytest.fixture(scope="module")
def truth() -> dict[str, list[Run]]:
    """Job -> its runs in order, as the job itself recorded them."""
    runs: dict[str, list[Run]] = {}
    with gzip.open(DUMPS / "truth_runs.tsv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            cpus, nodes = int(row["cpus_total"]), int(row["nodes"])
            memory = None
            if row["mem_per_node_mb"]:
                memory = int(row["mem_per_node_mb"]) * nodes
            elif row["mem_per_cpu_mb"]:
                memory = int(row["mem_per_cpu_mb"]) * cpus
            end = float(row["end"]) if row["end"] else None
            run = Run(row["jobid_raw"], row["kind"], float(row["start"]), end, nodes, cpus, memory)
            runs.setdefault(run.job, []).append(run)
    return runs


def jobs_of(trace: Trace) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each job with its rows; of a heterogeneous one those of its first component, which recorded itself."""
    for (name,), rows in trace.frame.group_by("job_id", maintain_order=True):
        own = (
            rows
            if "pod_set" not in rows.columns
            else rows.filter(~pl.col("pod_set").cast(pl.String).str.contains("^het-[1-9]"))
        )
        yield name, list(own.iter_rows(named=True))


def recorded_spans(row: dict[str, Any]) -> list[tuple[datetime, datetime]]:
    """Start and end of every run of a job."""
    if not row.get("recorded_runs"):
        return [(row["recorded_start"], row["recorded_end"])]
    times = [
        [datetime.fromisoformat(run[key]) for key in ("start", "end")]
        for run in json.loads(row["recorded_runs"])
    ]
    assert (times[0][0], times[-1][1]) == (row["recorded_start"], row["recorded_end"])
    return [(start, end) for start, end in times]


@pytest.mark.parametrize("name", WHOLE)
def test_runs_are_what_the_jobs_recorded_themselves(
    opened: Callable[..., Trace], truth: dict[str, list[Run]], name: str
) -> None:
    """Starts within 2 s, ends within 1 s, restarts, CPUs, nodes and memory exactly."""
    checked = 0
    for job, rows in jobs_of(opened(name)):
        if job not in truth:
            continue
        runs, row = truth[job], rows[0]
        spans = recorded_spans(row)
        assert (len(spans), row["recorded_restarts"]) == (len(runs), len(runs) - 1), job
        for run, (start, end) in zip(runs, spans, strict=True):
            assert 0 <= run.start - start.timestamp() <= 2, job
            assert run.end is None or abs(run.end - end.timestamp()) <= 1, job
            checked += 1
        last = runs[-1]
        assert sum(row["pods"] for row in rows) == last.nodes, job
        assert sum(row["pods"] * row["request.cpu"] for row in rows) == last.cpus * 1000, job
        memory = sum(row["pods"] * (row["request.memory"] or 0) for row in rows)
        assert last.memory is None or memory == last.memory * MIB, job
    assert checked == (184 if name.startswith("after") else 177)


@pytest.mark.parametrize("name", WHOLE)
def test_jobs_that_recorded_something_are_jobs_unless_they_ran_on(
    opened: Callable[..., Trace], truth: dict[str, list[Run]], name: str
) -> None:
    """Only those that had no end are missing, and they are counted."""
    trace = opened(name)
    missing = set(truth) - set(trace.frame["job_id"].to_list())
    assert all(truth[job][-1].end is None for job in missing)
    assert len(missing) == trace.left_out.get(RUNNING, 0)


RUNNING = "running or suspended when sacct ran, so their run times are unknown"


def test_every_form_of_one_dump_gives_the_same_trace(opened: Callable[..., Trace]) -> None:
    """Text and JSON, steps or none, local times, seconds, other units: the same jobs with the same values."""
    wanted = opened("noconvert.txt.gz").frame
    for name in (
        "steps.txt.gz",
        "all_columns.txt.gz",
        "sacct.json.gz",
        "tz_newyork.txt.gz",
        "by_job_ids_epoch.txt.gz",
    ):
        found = opened(name).frame.select(wanted.columns)
        assert found.sort("job_id", "pod_set").equals(wanted.sort("job_id", "pod_set")), name


def test_jobs_arrive_when_sacct_says_that_they_were_eligible(opened: Callable[..., Trace]) -> None:
    """Of the first run; and with an option when they were first submitted."""
    with gzip.open(DUMPS / "noconvert.txt.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        first.setdefault(row["JobIDRaw"], row)
    for option, column in (("eligible", "Eligible"), ("submit", "Submit")):
        for job, (row, *_) in jobs_of(opened("noconvert.txt.gz", arrival=option)):
            assert row["submit_time"] == datetime.fromisoformat(first[job][column]).replace(tzinfo=UTC)
            assert row["recorded_submit"] == datetime.fromisoformat(first[job]["Submit"]).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        (
            "by_job_ids_epoch.txt.gz",
            {
                "waiting when sacct ran": 7,
                "waiting when sacct ran, and not eligible yet (held, or dependent on another job)": 4,
                "cancelled before they started": 4,
                "FAILED before they held a node": 1,
                "tasks of an array in one row, because none was split off and started": 1,
                RUNNING: 7,
                "earlier runs and sizes of jobs, which are in recorded_runs": 14,
                "other components of heterogeneous jobs, which are pod sets of one job": 6,
            },
        ),
        (
            "window_truncated.txt.gz",
            {
                "with a start or an end that sacct -T made up: run sacct without -T": 15,
                "waiting when sacct ran": 6,
            },
        ),
    ],
)
def test_what_is_no_job_of_its_own_is_counted(
    opened: Callable[..., Trace], name: str, left_out: dict[str, int]
) -> None:
    """By reason; rows in are jobs out plus rows left out."""
    trace = opened(name)
    assert trace.left_out == left_out
    assert trace.rows_read == len(Jobs(JobColumns(trace, Cluster()))) + sum(left_out.values())


def test_steps_are_never_jobs(opened: Callable[..., Trace]) -> None:
    """They are counted, in text and in JSON."""
    for name in ("steps.txt.gz", "sacct.json.gz", "all_columns.txt.gz"):
        assert opened(name).left_out["steps, which are parts of jobs"] == 203


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("by_job_ids_epoch.txt.gz", "13 jobs were requeued, 13 times in total"),
        (
            "by_job_ids_epoch.txt.gz",
            "9 jobs were preempted (recorded_preemptions); 2 of them have no later row",
        ),
        ("by_job_ids_epoch.txt.gz", "1 job was resized while running"),
        ("by_job_ids_epoch.txt.gz", "2 jobs were suspended: run times exclude suspensions"),
        ("by_job_ids_epoch.txt.gz", "3 jobs are heterogeneous"),
        ("by_job_ids_epoch.txt.gz", "1 job has lost a node: the run ended when the controller gave it up"),
        ("by_job_ids_epoch.txt.gz", "10 jobs were ended externally (CANCELLED 5, TIMEOUT 3, PREEMPTED 2)"),
        ("by_job_ids_epoch.txt.gz", "2 rows have the delimiter in a name or comment"),
        ("by_job_ids_epoch.txt.gz", "44 jobs have requested other quantities"),
        ("by_job_ids_epoch.txt.gz", "30 jobs have an Eligible time after the Submit time"),
        ("by_job_ids_epoch.txt.gz", "2 arrays have gaps in the numbers of their tasks (18 numbers)"),
        ("noconvert.txt.gz", "9 job numbers between the first and the last have no row"),
        ("noconvert.txt.gz", "times have no zone and are taken as local times of UTC"),
        ("converted_units.txt.gz", "7 jobs have memory that was rounded to two decimals"),
        (
            "no_duplicates.txt.gz",
            "13 jobs have a later Submit than jobs with larger numbers, or a Submit 121 s before Eligible",
        ),
        ("after_cold_start.txt.gz", "7 jobs are CANCELLED without a user: the controller lost its state"),
    ],
)
def test_what_the_accounting_cannot_know_is_said_and_counted(
    opened: Callable[..., Trace], name: str, says: str
) -> None:
    """Each exception by name, with how many jobs it concerns."""
    notes = opened(name).notes
    assert any(says in note for note in notes), "\n".join(notes)


@pytest.mark.parametrize("name", ["no_duplicates.txt.gz", "window.txt.gz"])
def test_restarts_that_a_dump_does_not_show_are_unknown(
    opened: Callable[..., Trace], truth: dict[str, list[Run]], name: str
) -> None:
    """Without -D, or for a window, only the last run of a requeued job is there: its restarts are never 0."""
    hidden = 0
    for job, (row, *_) in jobs_of(opened(name)):
        if len(truth.get(job, ())) > 1:
            assert (row["recorded_restarts"], row["recorded_preemptions"]) == (None, None)
            hidden += 1
        elif job in truth:
            assert row["recorded_restarts"] == 0
    assert hidden == (13 if name.startswith("no") else 7)


def test_a_cold_start_leaves_ends_before_the_true_ones(opened: Callable[..., Trace]) -> None:
    """Such jobs are there with what the database says, and are named."""
    frame = opened("after_cold_start.txt.gz").frame
    cancelled = frame.filter(pl.col("job_id") == "184").row(0, named=True)
    assert cancelled["recorded_state"] == "CANCELLED"
    assert cancelled["duration"].total_seconds() == 149


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "default_columns.txt.gz",
            "header: has no column Submit or Eligible, Start, End; the columns are JobID",
        ),
        ("trailing_bar.txt.gz", "has no column Submit or Eligible, AllocTRES or ReqTRES"),
        ("fixed_width.txt.gz", "has columns cut to a width"),
    ],
)
def test_a_dump_without_what_is_needed_is_refused_with_the_command(
    readers: Plugins, name: str, what: str
) -> None:
    """The hint is a command whose columns suffice."""
    with pytest.raises(TraceError, match=what) as caught:
        open_trace(DUMPS / name, readers, reader="slurm")
    assert caught.value.hint is not None
    assert "sacct -aXDP --noconvert" in caught.value.hint


@pytest.mark.parametrize(
    ("head", "command", "instead"),
    [
        ("JOBID|PARTITION|STATE\n7|gpu|PENDING\n", "squeue", "run SLURM_TIME_FORMAT=%s sacct"),
        ("             JOBID PARTITION     NAME\n", "squeue", "run SLURM_TIME_FORMAT=%s sacct"),
        ("JobId=7 JobName=train\n", "scontrol show job", "run SLURM_TIME_FORMAT=%s sacct"),
        ("PARTITION AVAIL  TIMELIMIT\n", "sinfo", "run SLURM_TIME_FORMAT=%s sacct"),
        ("NodeName=n1 Arch=x86_64\n", "scontrol show nodes", "harness cluster from-slurm reads it"),
        ("Name|Priority|GraceTime\n", "sacctmgr show qos", "harness cluster from-slurm reads it"),
        ("Cluster|Account|User\n", "sacctmgr show assoc", "harness cluster from-slurm reads it"),
    ],
)
def test_output_of_another_slurm_command_is_recognized(
    tmp_path: Path, readers: Plugins, head: str, command: str, instead: str
) -> None:
    """The hint names the command that printed the file, and what to do instead."""
    path = tmp_path / "answer.txt"
    path.write_text(head)
    with pytest.raises(TraceError, match="no reader accepts") as caught:
        open_trace(path, readers)
    hint = caught.value.hint
    assert hint is not None
    assert f"output of {command}, " in hint
    assert instead in hint


# --- rules, on rows by hand -------------------------------------------------------------------------------

HEAD = ("JobIDRaw", "JobID", "User", "Partition", "Account", "QOS", "Submit", "Eligible", "Start", "End",
        "State", "NNodes", "ReqTRES", "AllocTRES", "TimelimitRaw", "JobName")  # fmt: skip
PLAIN = {
    "JobIDRaw": "7", "User": "ann", "Partition": "batch", "Account": "bio", "QOS": "Low_1", "Submit": "1000",
    "Eligible": "1000", "Start": "1010", "End": "1070", "State": "COMPLETED", "NNodes": "1",
    "ReqTRES": "cpu=2,mem=1G,node=1", "AllocTRES": "cpu=2,mem=1G,node=1", "TimelimitRaw": "UNLIMITED",
    "JobName": "train",
}  # fmt: skip


def dump(*rows: dict[str, str], head: tuple[str, ...] = HEAD, delimiter: str = "|") -> str:
    """The text of `sacct -P` with these rows; what they do not say is as in a plain job."""
    full = [PLAIN | row for row in rows]
    lines = [
        delimiter.join((row | {"JobID": row.get("JobID", row["JobIDRaw"])})[name] for name in head)
        for row in full
    ]
    return "\n".join([delimiter.join(head), *lines]) + "\n"


Read = Callable[..., Trace]


def only(trace: Trace) -> dict[str, Any]:
    """The one row of a trace."""
    (row,) = trace.frame.iter_rows(named=True)
    return row


@pytest.mark.parametrize("delimiter", ["|", ";", "\t", "^^"])
def test_any_delimiter_will_do(read_text: Read, delimiter: str) -> None:
    """As `--delimiter` may have it."""
    assert only(read_text(dump({}, delimiter=delimiter), reader="slurm"))["request.memory"] == 1024 * MIB


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_table_with_quoted_names_is_read_with_any_delimiter(read_text: Read, delimiter: str) -> None:
    """Spreadsheets of some countries write semicolons."""
    file = io.StringIO()
    rows = [line.split("|") for line in dump({"JobName": f'a "b"{delimiter} c'}).splitlines()]
    csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    row = only(read_text(file.getvalue(), reader="slurm"))
    assert (row["request.memory"], row["job_name"]) == (1024 * MIB, f'a "b"{delimiter} c')


@pytest.mark.parametrize("every", [True, False])
def test_a_table_that_another_program_saved_with_quotes_is_read(read_text: Read, every: bool) -> None:
    """Amounts contain the comma. A name may contain a quote, and ends before a line break as elsewhere."""
    file = io.StringIO()
    quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    rows = [line.split("|") for line in dump({}, {"JobIDRaw": "8", "JobName": 'a "b", c'}).splitlines()]
    rows += [[*rows[1][:-1], "two\nlines"]]
    rows[3][:2] = ["9", "9"]
    csv.writer(file, quoting=quoting, lineterminator="\n").writerows(rows)
    frame = read_text(file.getvalue(), reader="slurm").frame
    assert frame["request.memory"].to_list() == [1024 * MIB] * 3
    assert frame["job_name"].to_list() == ["train", 'a "b", c', "two"]


def test_commas_between_amounts_and_columns_are_refused(faults_of_text: Callable[..., list[str]]) -> None:
    """No line says which is which."""
    (found,) = faults_of_text(dump({}, delimiter=","), reader="slurm")
    assert found.endswith("sacct does not quote amounts, which contain commas. Use sacct -P")


@pytest.mark.parametrize("place", ["trän", "JobName"])
def test_text_of_another_encoding_is_refused_with_the_remedy(read_text: Read, place: str) -> None:
    """In a row and in the header line."""
    text = dump({"JobName": "trän"}).replace("JobName", "JobName" if place == "trän" else "JöbName")
    with pytest.raises(TraceError, match="is not UTF-8 text: byte 0x") as caught:
        read_text(text.encode("latin-1"), reader="slurm")
    assert (caught.value.hint or "").startswith("iconv -f WINDOWS-1252 -t UTF-8")


def test_the_trailing_bar_of_p_is_no_column(read_text: Read) -> None:
    """`sacct -p` ends every line with one."""
    text = dump({}).replace("\n", "|\n")
    assert only(read_text(text))["job_name"] == "train"


@pytest.mark.parametrize(
    ("text", "amount"),
    [("700", 700 * MIB), ("2097152K", 2**31), ("1.50G", 1536 * MIB), ("2T", 2**41), ("1P", 2**50), ("0", 0)],
)
def test_memory_of_tres_has_all_suffixes(read_text: Read, text: str, amount: int) -> None:
    """Without one it is in MiB."""
    row = only(read_text(dump({"AllocTRES": f"cpu=2,mem={text},node=1"})))
    assert (row.get("request.memory") or 0) == amount


@pytest.mark.parametrize(
    ("text", "amount"), [("500Mc", 3000), ("2Gn", 4096), ("4000M", 4000), ("3000", 3000)]
)
def test_requested_memory_of_older_versions_is_for_a_cpu_or_a_node(
    read_text: Read, text: str, amount: int
) -> None:
    """`c` and `n` at its end; newer ones give the whole job's."""
    row = {"ReqMem": text, "ReqCPUS": "6", "NNodes": "2"}
    head = ("JobIDRaw", "State", "Submit", "Start", "End", "NNodes", "ReqCPUS", "ReqMem")
    found = read_text(dump(row, head=head)).frame
    assert (found["request.memory"] * found["pods"]).sum() == amount * MIB


def test_devices_whose_names_begin_like_gpu_are_other_devices(read_text: Read) -> None:
    """Sites define `gpumem`, whose amounts have suffixes, and Slurm itself has `gpuutil`."""
    trace = read_text(dump({"AllocTRES": "cpu=1,gres/gpu=2,gres/gpumem:a=40G,gres/gpuutil=0,node=1"}))
    assert only(trace)["request.nvidia.com/gpu"] == 2
    assert "jobs held other resources, which the trace does not request: gres/gpumem:a 1" in trace.notes


@pytest.mark.parametrize(("text", "nodes"), [("2K", 2048), ("3", 3)])
def test_counts_of_nodes_have_suffixes_without_noconvert(read_text: Read, text: str, nodes: int) -> None:
    """Slurm prints only multiples of 1,024 in this way."""
    head = ("JobIDRaw", "State", "Submit", "Start", "End", "NNodes", "ReqCPUS")
    found = read_text(dump({"NNodes": text, "ReqCPUS": str(nodes)}, head=head)).frame
    assert found["pods"].to_list() == [nodes]


def test_notes_name_no_count_of_zero(read_text: Read) -> None:
    """A plain job has nothing unusual."""
    notes = read_text(dump({})).notes
    assert "a job arrives at its first Eligible time" in notes
    assert not any(note.startswith("0 ") or "; 0 " in note for note in notes)


def test_gpus_that_are_told_twice_are_counted_once(read_text: Read) -> None:
    """By type and in all; where only types are told, these are added."""
    twice = read_text(dump({"AllocTRES": "cpu=1,gres/gpu:a100=3,gres/gpu=3,node=1"}))
    assert only(twice)["request.nvidia.com/gpu"] == 3
    types = read_text(dump({"AllocTRES": "cpu=1,gres/gpu:a100=1,gres/gpu:v100=2,node=1"}))
    assert only(types)["request.nvidia.com/gpu"] == 3


def test_a_type_of_gpus_that_was_asked_for_is_needed(read_text: Read) -> None:
    """What was granted without being asked for is not."""
    asked = {"ReqTRES": "cpu=1,gres/gpu:a100=1,node=1", "AllocTRES": "cpu=1,gres/gpu:a100=1,node=1"}
    selector = entries(only(read_text(dump(asked)))["node_selector"])
    assert selector == (("nvidia.com/gpu.product", "a100"),)
    any_type = dump({**asked, "ReqTRES": "cpu=1,gres/gpu=1,node=1"})
    assert "node_selector" not in read_text(any_type).frame.columns
    assert "node_selector" not in read_text(dump(asked), gpu_model="ignore").frame.columns


def test_totals_become_pods_that_together_are_the_job(read_text: Read) -> None:
    """Five CPUs and one GPU on two nodes are two kinds of pods."""
    frame = read_text(dump({"AllocTRES": "cpu=5,gres/gpu=1,mem=10M,node=2"})).frame
    assert frame["pods"].to_list() == [1, 1]
    assert frame["request.cpu"].to_list() == [3000, 2000]
    assert frame["request.nvidia.com/gpu"].to_list() == [1, 0]
    assert frame["request.memory"].to_list() == [5 * MIB, 5 * MIB]


def requeued(first: str = "PREEMPTED", **later: str) -> str:
    """A job that was stopped 10 s after its start, and its next run."""
    return dump(
        {"End": "1020", "State": first},
        {"Submit": "1020", "Eligible": "1141", "Start": "1150", "End": "1190", **later},
    )


def test_a_preemption_with_a_later_row_is_a_restart(read_text: Read) -> None:
    """One job from its first submission, as long as its last run, or as all."""
    row = only(read_text(requeued()))
    assert row["submit_time"] == datetime.fromtimestamp(1000, UTC)
    assert (row["recorded_start"].timestamp(), row["recorded_end"].timestamp()) == (1010, 1190)
    assert (row["recorded_restarts"], row["recorded_preemptions"]) == (1, 1)
    assert row["duration"].total_seconds() == 40
    assert only(read_text(requeued(), attempts="total"))["duration"].total_seconds() == 50
    runs = json.loads(row["recorded_runs"])
    assert [(run["start"], run["state"]) for run in runs] == [
        ("1970-01-01T00:16:50Z", "PREEMPTED"), ("1970-01-01T00:19:10Z", "COMPLETED"),
    ]  # fmt: skip


def test_a_preemption_without_a_later_row_is_an_end(read_text: Read) -> None:
    """As of a QOS that cancels what it preempts."""
    row = only(read_text(dump({"State": "PREEMPTED"})))
    assert (row["recorded_restarts"], row["recorded_preemptions"]) == (0, 1)


def test_a_job_that_waits_after_a_requeue_has_not_ended(read_text: Read) -> None:
    """Nor one whose next row is not there; cancelled then, it has."""
    waiting = {"Start": "Unknown", "End": "Unknown", "AllocTRES": ""}
    for text in (requeued(State="PENDING", **waiting), dump({"State": "REQUEUED"})):
        with pytest.raises(TraceError, match="requeued, and waiting again"):
            read_text(text)
    assert (
        only(read_text(requeued(State="PENDING", **waiting), unfinished="elapsed"))["recorded_restarts"] == 0
    )
    ended = read_text(requeued(State="CANCELLED by 7", **(waiting | {"Start": "None", "End": "1100"})))
    assert only(ended)["duration"].total_seconds() == 10


def test_a_number_that_is_given_again_is_another_job(read_text: Read) -> None:
    """Of another user, days later, or after the controller lost its state: CANCELLED by nobody."""
    other = read_text(requeued("COMPLETED", User="bob"))
    assert other.frame["job_id"].to_list() == ["7", "7#2"]
    for row in (
        {"QOS": "high"},
        {"JobName": "other"},
        {"Submit": "1321", "Eligible": "1321", "Start": "1330", "End": "1340"},
    ):
        assert read_text(requeued("COMPLETED", **row)).frame["job_id"].to_list() == ["7", "7#2"]
    assert only(read_text(requeued("COMPLETED")))["recorded_restarts"] == 1
    late = read_text(requeued(Submit="90000", Eligible="90000", Start="90000", End="90010"))
    assert late.frame["job_id"].to_list() == ["7", "7#2"]
    lost = read_text(requeued("CANCELLED"))
    assert lost.frame["job_id"].to_list() == ["7", "7#2"]
    assert any("1 job has a number that another job had before" in note for note in lost.notes)


@pytest.mark.parametrize(
    "different", [{"User": "bob"}, {"Account": "law"}, {"QOS": "high"}, {"JobName": "x"}]
)
@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_job_without_an_end_does_not_take_in_the_next_one_of_its_number(
    read_text: Read, different: dict[str, str], state: str
) -> None:
    """Where the controller lost it, or a dump of earlier knows no more of it."""
    lost = {"State": state, "End": "Unknown", **({"Start": "Unknown"} if state == "PENDING" else {})}
    later = {"Submit": "9000000", "Eligible": "9000000", "Start": "9000100", "End": "9000200"}
    trace = read_text(dump(lost, later | different))
    row = only(trace)
    assert (row["job_id"], row["recorded_start"].timestamp(), row["recorded_restarts"]) == ("7#2", 9000100, 0)
    assert row["submit_time"].timestamp() == 9000000
    assert sum(trace.left_out.values()) == 1
    assert any("1 job has a number that another job had before" in note for note in trace.notes)


def test_a_job_that_ran_in_one_dump_goes_on_in_the_next(read_text: Read) -> None:
    """As its next run, whenever it was requeued; or as the same one, whoever pays for it by now."""
    still = dump({"State": "RUNNING", "End": "Unknown"})
    again = {"Submit": "500000", "Eligible": "500121", "Start": "500130", "End": "500140"}
    assert only(read_text(still + dump(again)))["submit_time"].timestamp() == 1000
    assert only(read_text(still + dump({"Account": "law", "State": "NODE_FAIL"})))["job_id"] == "7"


def test_a_resized_job_is_one_run(read_text: Read) -> None:
    """Its rows overlap: the time counts once, and it holds what it began with."""
    text = dump(
        {"End": "1020", "State": "RESIZING", "AllocTRES": "cpu=4,mem=2G,node=2"},
        {"Submit": "1020", "Eligible": "1020", "Start": "1010", "End": "1070"},
    )
    row = only(read_text(text))
    assert (row["duration"].total_seconds(), row["recorded_restarts"], row["pods"]) == (60, 0, 2)


def test_rows_that_two_dumps_share_count_once(read_text: Read) -> None:
    """A head in the middle is no row, and what still ran in the first has ended in the second."""
    first = dump({"State": "RUNNING", "End": "Unknown"}, {"JobIDRaw": "8"})
    trace = read_text(first + dump({}, {"JobIDRaw": "8"}))
    assert trace.frame["job_id"].to_list() == ["7", "8"]
    assert trace.left_out == {"rows that repeat another row, as in dumps of overlapping periods": 2}


@pytest.mark.parametrize("state", ["PREEMPTED", "NODE_FAIL", "REQUEUED"])
def test_a_run_that_a_dump_saw_begin_and_another_end_is_one_run(read_text: Read, state: str) -> None:
    """Also of a job that was requeued between the two dumps."""
    trace = read_text(dump({"State": "RUNNING", "End": "Unknown"}) + requeued(state))
    row = only(trace)
    assert (row["recorded_restarts"], len(json.loads(row["recorded_runs"]))) == (1, 2)
    assert trace.left_out["rows that repeat another row, as in dumps of overlapping periods"] == 1


def test_expanded_arrays_share_a_number(read_text: Read) -> None:
    """`sacct --array` of newer versions: tasks are told apart by their labels."""
    rows = [{"JobIDRaw": "35", "JobID": f"35_{task}", "Submit": "1000"} for task in range(3)]
    assert read_text(dump(*rows)).frame["job_id"].to_list() == ["35_0", "35_1", "35_2"]


def test_components_are_pod_sets_of_one_job(read_text: Read) -> None:
    """With the queue of the first."""
    rows = [
        {"JobIDRaw": str(83 + place), "JobID": f"83+{place}", "Partition": f"p{place}"} for place in range(2)
    ]
    frame = read_text(dump(*rows)).frame
    assert frame["job_id"].to_list() == ["83", "83"]
    assert frame["pod_set"].to_list() == ["het-0", "het-1"]
    assert frame["queue"].to_list() == ["p0", "p0"]


def test_other_columns_stand_in_for_alloc_tres(read_text: Read) -> None:
    """CPUs and nodes that were allocated, and what was asked for; it is said."""
    head = ("JobID", "State", "Submit", "Start", "End", "AllocCPUS", "NNodes", "ReqTRES")
    row = {"AllocCPUS": "6", "NNodes": "2", "ReqTRES": "cpu=2,gres/gpu=4,mem=8M,node=1"}
    trace = read_text(dump(row, head=head))
    found = only(trace)
    assert (found["pods"], found["request.cpu"], found["request.nvidia.com/gpu"]) == (2, 3000, 2)
    assert found["request.memory"] == 4 * MIB
    for column in ("AllocTRES: CPUs and nodes", "ElapsedRaw nor Suspended", "JobIDRaw: jobs are named"):
        assert any(column in note for note in trace.notes), column


def test_a_span_that_sacct_does_not_know_is_absent_and_counted(read_text: Read) -> None:
    """Slurm prints INVALID for a span that it cannot write. The run is then that from start to end."""
    head = ("JobID", "State", "Submit", "Start", "End", "AllocCPUS", "Elapsed", "Suspended", "Timelimit")
    known = {"AllocCPUS": "2", "Elapsed": "00:00:50", "Suspended": "00:00:10", "Timelimit": "00:10:00"}
    unknown = {**known, "JobIDRaw": "8", "Elapsed": "INVALID", "Timelimit": "Partition_Limit"}
    trace = read_text(dump(known, unknown, head=head))
    assert [each.total_seconds() for each in trace.frame["duration"]] == [50, 50]
    assert trace.frame["requested_time"].null_count() == 1
    assert any(
        note.startswith("2 spans are unknown to sacct (INVALID or Partition_Limit)") for note in trace.notes
    )


def test_memory_of_a_cpu_counts_the_cpus_that_are_known(read_text: Read) -> None:
    """Older versions give it for a CPU; without ReqCPUS, the granted number is the only one."""
    head = ("JobID", "State", "Submit", "Start", "End", "AllocCPUS", "NNodes", "ReqMem")
    row = {"AllocCPUS": "6", "NNodes": "1", "ReqMem": "2Gc"}
    assert only(read_text(dump(row, head=head)))["request.memory"] == 12 * 1024 * MIB


def test_without_requested_gpus_the_granted_ones_are_requested(read_text: Read) -> None:
    """No column says how many GPUs were requested; if one does and names none, none is requested."""
    row = {"AllocTRES": "cpu=2,gres/gpu=3,mem=1G,node=1", "ReqCPUS": "1"}
    head = (*(name for name in HEAD if name != "ReqTRES"), "ReqCPUS")
    trace = read_text(dump(row, head=head), resources="requested")
    assert (only(trace)["request.cpu"], only(trace)["request.nvidia.com/gpu"]) == (1000, 3)
    assert "there is no ReqTRES: jobs request the GPUs that they were granted" in trace.notes
    assert "request.nvidia.com/gpu" not in read_text(dump(row), resources="requested").frame.columns


def test_devices_of_older_columns_are_not_dropped_silently(read_text: Read) -> None:
    """AllocGRES of older versions counts devices in another way, so the reader only says that it is there."""
    head = (*HEAD, "AllocGRES")
    said = "1 rows have devices only in AllocGRES or ReqGRES"
    trace = read_text(dump({"AllocGRES": "gpu:2"}, {"JobIDRaw": "8", "AllocGRES": ""}, head=head))
    assert any(note.startswith(said) for note in trace.notes)
    told = {"AllocGRES": "gpu:2", "AllocTRES": "cpu=2,gres/gpu=2,node=1"}
    assert not any("AllocGRES" in note for note in read_text(dump(told, head=head)).notes)


def test_unknown_energy_of_the_document_is_no_fault(read_text: Read) -> None:
    """Slurm prints 2^64 - 2 for energy that it did not measure, and the reader needs only other amounts."""
    amounts = [
        {"type": "cpu", "name": "", "count": 2},
        {"type": "energy", "name": "", "count": 2**64 - 2},
        {"type": "gres", "name": "gpu", "count": 1},
    ]
    times = {"submission": 1000, "eligible": 1000, "start": 1010, "end": 1070, "elapsed": 60}
    job = {"job_id": 7, "state": {"current": ["COMPLETED"]}, "time": times, "tres": {"allocated": amounts}}
    row = only(read_text(json.dumps({"jobs": [job]}), reader="slurm"))
    assert (row["request.cpu"], row["request.nvidia.com/gpu"]) == (2000, 1)


@pytest.mark.parametrize(("there", "count"), [("12", 1), ("02", 1), ("01", 0)])
def test_components_without_a_row_are_noted(read_text: Read, there: str, count: int) -> None:
    """A window or a filter may cut them off. The job has fewer pods then."""
    rows = [{"JobIDRaw": str(83 + int(at)), "JobID": f"83+{at}"} for at in there]
    notes = read_text(dump(*rows, {"JobIDRaw": "90"})).notes
    assert sum("1 job lacks components of a heterogeneous job" in note for note in notes) == count


def test_components_are_requeued_together(read_text: Read) -> None:
    """One job with two runs, of which each holds what both components hold."""
    again = {"Submit": "1020", "Eligible": "1141", "Start": "1150", "End": "1190"}
    rows = [
        {"JobIDRaw": str(83 + at), "JobID": f"83+{at}", **times}
        for times in ({"End": "1020", "State": "NODE_FAIL"}, again)
        for at in range(2)
    ]
    frame = read_text(dump(*rows)).frame
    assert frame["pod_set"].to_list() == ["het-0", "het-1"]
    assert frame["recorded_restarts"].to_list() == [1, 1]
    runs = json.loads(frame["recorded_runs"][0])
    assert [(run["nodes"], run["request"]["cpu"]) for run in runs] == [(2, 4000), (2, 4000)]


@pytest.mark.parametrize("cell", ["a|b", "a|b|c"])
@pytest.mark.parametrize("place", [3, len(HEAD) - 1])
def test_a_bar_in_a_name_is_part_of_it(read_text: Read, cell: str, place: int) -> None:
    """Wherever the column stands: no other way of joining the cells makes a row."""
    head = [name for name in HEAD if name != "JobName"]
    head.insert(place, "JobName")
    row = only(read_text(dump({"JobName": cell}, head=tuple(head))))
    assert (row["job_name"], row["recorded_state"]) == (cell, "COMPLETED")


def test_a_line_break_in_a_name_is_part_of_it(read_text: Read) -> None:
    """Lines of one row are one; a line that is cut off is a fault and takes no other with it."""
    assert (
        only(read_text(dump({"JobName": "a\nb"}, head=(*HEAD[:3], HEAD[-1], *HEAD[3:-1]))))["job_name"]
        == "a\nb"
    )
    last = read_text(dump({"JobName": "a\nb"}))
    assert only(last)["job_name"] == "a"
    assert "1 lines continue a name or comment with line breaks" in last.notes
    with pytest.raises(TraceError, match=r"line 3: has 3 columns instead of 16"):
        read_text(dump({}) + "8|8|ann\n" + dump({"JobIDRaw": "9"}).split("\n", 1)[1])


def test_times_are_those_of_the_zone_that_is_named(read_text: Read) -> None:
    """Of a repeated hour, the first is meant, unless the job could not have worked as long until then."""
    day = "2026-10-25T"
    times = {"Submit": f"{day}00:30:00", "Eligible": f"{day}00:30:00", "Start": f"{day}02:50:00"}
    times["End"] = f"{day}02:10:00"
    trace = read_text(dump(times), timezone="Europe/Berlin")
    row = only(trace)
    assert row["submit_time"] == datetime(2026, 10, 24, 22, 30, tzinfo=UTC)
    assert row["duration"].total_seconds() == 20 * 60
    assert any("2 times are in an hour that Europe/Berlin repeats or skips" in note for note in trace.notes)
    assert "times have no zone and are taken as local times of Europe/Berlin" in trace.notes
    whole = {**times, "Start": f"{day}02:10:00", "End": f"{day}02:50:00", "ElapsedRaw": "6000"}
    head = (*HEAD, "ElapsedRaw")
    row = only(read_text(dump(whole, head=head), timezone="Europe/Berlin"))
    assert row["recorded_end"] - row["recorded_start"] == row["duration"] == timedelta(seconds=6000)
    with pytest.raises(OptionError, match="is not a known time zone"):
        read_text(dump(times), timezone="Mars")


def test_run_times_include_suspensions_only_without_any_elapsed_time(read_text: Read) -> None:
    """Both `ElapsedRaw` and `Elapsed`, which is among the usual columns, leave suspensions out."""
    note = "there is neither ElapsedRaw nor Suspended: run times include suspensions"
    assert note in read_text(dump({})).notes
    for column, value in (("ElapsedRaw", "25"), ("Elapsed", "00:00:25")):
        trace = read_text(dump({column: value}, head=(*HEAD, column)))
        assert only(trace)["duration"] == timedelta(seconds=25)
        assert note not in trace.notes


@pytest.mark.parametrize(
    ("option", "queue"), [("partition", "batch"), ("account", "bio"), ("qos", "Low_1"), ("user", "ann")]
)
def test_the_queue_is_the_column_that_is_named(read_text: Read, option: str, queue: str) -> None:
    """A job without one is in queue default."""
    assert only(read_text(dump({}), tenant=option))["queue"] == queue
    missing = {"partition": "Partition", "account": "Account", "qos": "QOS", "user": "User"}[option]
    assert only(read_text(dump({missing: ""}), tenant=option))["queue"] == "default"


def test_priorities_are_those_of_the_qos(read_text: Read, opened: Callable[..., Trace]) -> None:
    """From what sacctmgr printed, or as the name of a class."""
    frame = opened("noconvert.txt.gz", qos=str(DUMPS / "qos.txt")).frame
    worth = dict(frame.select("qos", "priority").unique().iter_rows())
    assert worth == {"normal": 100, "scavenge": 10, "cheap": 5, "high": 1000}
    assert only(read_text(dump({}), priority="class"))["priority_class"] == "low-1"
    assert "priority" not in read_text(dump({})).frame.columns


STILL = {"State": "RUNNING", "End": "Unknown"}


@pytest.mark.parametrize(("option", "seconds"), [("elapsed", 25), ("limit", 600)])
def test_jobs_that_still_run_can_be_kept(read_text: Read, option: str, seconds: int) -> None:
    """As long as they had run, or until their limit; without an end that was recorded."""
    head = (*HEAD, "ElapsedRaw")
    text = dump({**STILL, "ElapsedRaw": "25", "TimelimitRaw": "10"}, head=head)
    trace = read_text(text, unfinished=option)
    assert only(trace)["duration"].total_seconds() == seconds
    assert "recorded_end" not in trace.frame.columns
    assert any("1 job was not over when sacct ran" in note for note in trace.notes)


def test_jobs_of_several_clusters_are_named_with_theirs(read_text: Read) -> None:
    """Each cluster counts its own."""
    rows = [{"Cluster": name} for name in ("alpha", "beta")]
    assert read_text(dump(*rows, head=(*HEAD, "Cluster"))).frame["job_id"].to_list() == ["alpha/7", "beta/7"]


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ({"Start": "soon"}, "line 2: Start: 'soon' is not a time"),
        ({"AllocTRES": "cpu=x"}, "line 2: AllocTRES: 'cpu=x' cpu is not a whole number"),
        ({"JobIDRaw": "7.0", "JobID": "7"}, "line 2: JobIDRaw: '7.0' is not the number of a job"),
        ({"JobIDRaw": "7", "JobID": "a7"}, "line 2: JobID: 'a7' is not a job such as 35"),
        ({"JobIDRaw": "", "JobID": ""}, "line 2: JobID: '' is not a job such as 35"),
        ({"JobIDRaw": "7.0", "JobID": "7.0"}, "holds no jobs, only 1 step of jobs"),
        ({"TimelimitRaw": "long"}, "line 2: TimelimitRaw: 'long' is not a time limit"),
        ({"State": "7"}, "line 2: State: '7' is not a state"),
    ],
)
def test_a_malformed_cell_is_named(
    faults_of_text: Callable[..., list[str]], cells: dict[str, str], fault: str
) -> None:
    """By line and column."""
    (found,) = faults_of_text(dump(cells), reader="slurm")
    assert found.startswith(fault)


def test_an_error_of_sacct_is_told_as_one(faults_of_text: Callable[..., list[str]]) -> None:
    """It prints no rows then."""
    (found,) = faults_of_text('sacct: error: Invalid field requested: "Restarts"\n')
    assert 'is an error message of sacct, without rows: error: Invalid field requested: "Restarts"' in found
