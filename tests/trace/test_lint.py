"""Findings about traces that were made to mislead in one way each, and about the recorded ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import yaml

from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.trace import lint as package
from harness.trace.calibration import Calibration
from harness.trace.lint import lint
from harness.trace.summary import summarize
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])
PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
SHARED = Path(__file__).parents[3] / "shared" / "traces"
recorded = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded traces are not beside this checkout")


@pytest.fixture
def findings(write_trace: Callable[..., Path]) -> Callable[..., dict[str, str]]:
    """What is said of a trace of these rows, by the kind of finding."""

    def of(*rows: Mapping[str, Any], cpu: int | None = None) -> dict[str, str]:
        trace = open_trace(write_trace(*rows), PLUGINS)
        cluster = None if cpu is None else cluster_from(yaml.safe_load_all(NODE.format(cpu)), "test")
        return {finding.check: finding.says for finding in lint(trace, cluster)}

    return of


NODE = "{{apiVersion: v1, kind: Node, metadata: {{name: n}}, status: {{allocatable: {{cpu: {}}}}}}}"


def spread(count: int, *, every: int = 7, **same: Any) -> list[dict[str, Any]]:
    """Inconspicuous jobs of two queues, one after the other."""
    return [
        {"submit_time": every * number, "duration": 5 + number % 97, "queue": "ab"[number % 2], **same}
        for number in range(count)
    ]


def test_an_ordinary_trace_has_no_findings(findings: Callable[..., dict[str, str]]) -> None:
    """Regular arrivals, two tenants, durations of all kinds, and a cluster that is neither big nor small."""
    assert findings(*spread(200), cpu=10) == {}


def test_a_cluster_on_which_nothing_waits_is_too_big(findings: Callable[..., dict[str, str]]) -> None:
    """The peak with every job started at its submission is within the capacity."""
    rows = [{"submit_time": 0, "queue": "a"}, {"submit_time": 5, "queue": "b"}] * 2
    rows = [{**row, "job_id": str(number)} for number, row in enumerate(rows)]
    said = findings(*rows, cpu=40)["cluster-too-big"]
    assert said.startswith("all jobs together never need more than 4 of 40 of cpu")
    assert "cluster-too-big" not in findings(*rows, cpu=3)


def test_a_cluster_that_cannot_keep_up_is_too_small(findings: Callable[..., dict[str, str]]) -> None:
    """More is asked for on average than there is; and no job may ask for more than all of it."""
    said = findings(*spread(50, every=1, **{"request.cpu": 2000}), cpu=1)
    assert "of 1 of cpu" in said["cluster-too-small"]
    assert said["job-too-large"] == "50 of 50 jobs (100 %) request more than the 1 of cpu"


def test_jobs_that_no_domain_holds_are_named(write_trace: Callable[..., Path]) -> None:
    """Two racks of 3 cores: four pods fit the cluster and no rack; three that one may be, and a wish, do."""
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "t"}}
    objects: list[dict[str, Any]] = [
        {**kueue, "kind": "Topology", "spec": {"levels": [{"nodeLabel": "rack"}]}},
        {**kueue, "kind": "ResourceFlavor", "spec": {"topologyName": "t"}},
    ]
    for name in ("a", "b"):
        node = yaml.safe_load(NODE.format(3))
        objects.append({**node, "metadata": {"name": name, "labels": {"rack": name}}})
    rows = [
        {"job_id": "large", "pods": 4, "topology_required": "rack"},
        {"job_id": "fits", "pods": 3, "topology_required": "rack"},
        {"job_id": "less", "pods": 4, "min_pods": 3, "topology_required": "rack"},
        {"job_id": "prefers", "pods": 4, "topology_preferred": "rack"},
        {"job_id": "zone", "topology_required": "zone"},
    ]
    trace = open_trace(write_trace(*rows), PLUGINS)
    said = {each.check: each.says for each in lint(trace, cluster_from(objects, "test"))}
    assert said["no-domain"] == (
        "2 of 5 jobs (40 %) require one domain of a topology, but no domain can hold them even when empty: "
        "large: 4 pods must be in one rack, but only 3 fit; zone: no node is in a domain of zone"
    )
    assert "no-domain" not in {each.check for each in lint(trace)}


def test_few_jobs_long_before_the_others_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """The window that leaves them out begins at the first regular one."""
    rows = [{"submit_time": 0, "queue": "a"}, *spread(300)]
    rows[1:] = [{**row, "submit_time": row["submit_time"] + 9_000_000} for row in rows[1:]]
    said = findings(*rows)
    assert said["sparse-start"] == "the first 1 of 301 jobs (0.33 %) take up 104d04h of the trace's 104d04h"
    assert "no job is submitted for 104d04h" in said["silence"]


@pytest.mark.parametrize("kind", ["duration", "timestamp", "zoned"])
def test_windows_that_are_suggested_count_as_in_the_whole_file(
    write_trace: Callable[..., Path], kind: str
) -> None:
    """Where a window was chosen already, too: simulated time begins later there, `--window` does not."""
    path = write_trace(*({"submit_time": time} for time in (0, 1_000_000, *range(9_000_000, 9_002_100, 7))))
    if kind != "duration":
        begin = datetime(2024, 3, 30, 12, tzinfo=ZoneInfo("Europe/Berlin") if kind == "zoned" else None)
        pl.read_parquet(path).with_columns(pl.lit(begin) + pl.col("submit_time")).write_parquet(path)
    trace = open_trace(path, PLUGINS)
    kept = Calibration.parse(window="500000s..").of_trace(trace)
    (sparse,) = (each for each in lint(kept) if each.check == "sparse-start")
    (bound,) = re.findall(r"--window (\S+)\.\. ", sparse.do)
    chosen = Calibration.parse(window=f"{bound}..").of_trace(trace)
    assert chosen.frame["job_id"].to_list() == trace.frame["job_id"].to_list()[2:]


def test_many_jobs_in_one_second_are_a_burst(findings: Callable[..., dict[str, str]]) -> None:
    """Times that were rounded, or jobs that were there before the record began."""
    said = findings(*spread(100), *({"submit_time": 350, "duration": n + 3} for n in range(20)))
    assert said["burst"] == "21 of 120 jobs (17.5 %) are submitted within one second, 350s after the origin"


def test_clocks_that_run_backwards_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """Rows out of order."""
    found = findings(*reversed(spread(30)))
    assert found["unsorted"] == "29 rows have an earlier submit_time than the previous row"


def test_jobs_without_work_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """Half of them or more: no time, or nothing that is asked for; a few are as in any record."""
    jobs = spread(40)
    idle = [{**job, "duration": 0} for job in jobs[:20]]
    assert findings(*idle, *spread(40)[20:])["no-work"] == "20 of 40 jobs (50 %) take no time"
    assert "no-work" not in findings(*idle[:19], *jobs[19:])
    none = [{**job, "request.cpu": None} for job in jobs]
    assert findings(*none)["no-work"] == "40 of 40 jobs (100 %) request nothing"


def test_jobs_that_end_with_the_record_are_censored(findings: Callable[..., dict[str, str]]) -> None:
    """A common last end, and a status that says they still ran."""
    rows = [{**row, "duration": 1000 - row["submit_time"], "status": "x"} for row in spread(30)]
    rows[0]["status"] = "Running"
    said = findings(*rows)
    assert said["cut-at-the-end"].startswith("30 of 30 jobs")
    assert said["censored"].startswith("1 of 30 jobs")
    unknown = [{**row, "recorded_end": None} for row in spread(30)]
    assert "cut-at-the-end" not in findings(*unknown)


def test_equal_longest_durations_are_a_limit(findings: Callable[..., dict[str, str]]) -> None:
    """One duration that many of the longest share exactly."""
    rows = [{**row, "duration": min(row["duration"], 60)} for row in spread(300)]
    assert "run for exactly 1m00s" in findings(*rows)["cut-at-limit"]


def test_queues_that_are_no_tenants_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """A single one, and some with a single job."""
    assert ("fair sharing has no other queue to share with") in findings({"user": "a"}, {"user": "b"})[
        "one-tenant"
    ]
    assert "one-tenant" not in findings({"namespace": "a"}, {"namespace": "b"})
    rows = [*spread(20), {"queue": "c", "submit_time": 3}]
    assert findings(*rows)["tenant-of-one-job"].startswith("1 of 3 queues")


def test_ids_that_name_two_things_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """Ids alike but for case or blanks, uids given twice, and a job called like another's pod."""
    rows = [
        {"job_id": "a", "pods": 2, "uid": "1", "queue": "a"},
        {"job_id": "A ", "uid": "1", "queue": "b"},
        {"job_id": "a-1", "uid": "2", "queue": "a"},
        {"job_id": "b-1", "uid": "3", "queue": "b"},
    ]
    said = findings(*rows)
    assert {check: text.split()[0] for check, text in said.items() if "id" in check} == {
        "uid-reused": "2",
        "id-reused": "2",
        "id-like-a-pod": "1",
    }


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"request.memory": 512}, "no pod requests more than 512 bytes of memory"),
        ({"request.memory": 2**50}, "half of the pods that request memory request at most 1024Ti"),
        ({"request.cpu": 16}, "no pod requests more than 16 millicores of cpu"),
        ({"request.nvidia.com/gpu": 500}, "half of the pods that request nvidia.com/gpu request at most 500"),
    ],
)
def test_amounts_of_another_unit_are_named(
    findings: Callable[..., dict[str, str]], request_: dict[str, int], says: str
) -> None:
    """MiB where bytes are meant, cores where millicores are, per cent of a device where devices are."""
    assert findings(*spread(30, **request_))["unit"] == says


def test_durations_of_another_unit_are_named(findings: Callable[..., dict[str, str]]) -> None:
    """Seconds that were taken for microseconds."""
    rows = [{**row, "duration": row["duration"] / 10_000} for row in spread(30)]
    assert findings(*rows)["unit"] == "no job runs longer than 3ms"


BACKWARDS = {"recorded_start": timedelta(seconds=1), "recorded_end": timedelta(seconds=2)}
WORLDS = {
    "sparse-end": [*spread(300), {"submit_time": 9_000, "queue": "a"}],
    "clock-backwards": spread(30, **BACKWARDS),
    "silence": [*spread(100), *({**row, "submit_time": row["submit_time"] + 200_000} for row in spread(100))],
    "cut-at-request": spread(30, requested_time=timedelta(seconds=60)),
    "coarse": [{**row, "duration": 60 * (1 + row["duration"] * 2)} for row in spread(300)],
}


def of_gangs(per_job: bool) -> list[dict[str, Any]]:
    """Gangs of 2, 4, 8, ... pods with a few cores each, or with those of all of them."""
    sizes = [2 ** (1 + number % 5) for number in range(60)]
    return [
        {**row, "pods": pods, "request.cpu": 1000 * (1 + number % 3) * (pods if per_job else 1)}
        for number, (row, pods) in enumerate(zip(spread(60), sizes, strict=True))
    ]


def limited(limit: timedelta) -> list[dict[str, Any]]:
    """Jobs with a limit."""
    return spread(40, requested_time=limit)


def recorded_jobs(*, jump: int, limits: bool = False) -> list[dict[str, Any]]:
    """Jobs of two hours, of which so many run across a change of clocks: an hour too short."""
    rows = []
    for number in range(40):
        across = number < jump
        start = 60 * (number + 10 if across else 600 + 7 * number)
        ran = timedelta(hours=2, seconds=number)
        seen = ran - timedelta(hours=1 if across else 0)
        row: dict[str, Any] = {"submit_time": start, "duration": ran.seconds, "queue": "ab"[number % 2]}
        if limits:
            row |= {"duration": seen.seconds, "requested_time": ran + timedelta(hours=0 if across else 5)}
        else:
            at = timedelta(seconds=start)
            row |= {"recorded_start": at, "recorded_end": at + seen}
        rows.append(row)
    return rows


def recorded_starts(later: int) -> list[dict[str, Any]]:
    """Jobs that started so many seconds after their submission, or before."""
    return [
        {
            **row,
            "recorded_start": timedelta(seconds=row["submit_time"] + 1000 + later),
            "submit_time": row["submit_time"] + 1000,
        }
        for row in spread(30)
    ]


LONG = [*spread(40), {"submit_time": 100_000, "queue": "a"}]


@pytest.mark.parametrize(
    ("check", "planted", "sound", "says"),
    [
        ("total-as-pod", of_gangs(per_job=True), of_gangs(per_job=False), "cpu of a pod grows in proportion"),
        (
            "limit-long",
            limited(timedelta(days=60)),
            limited(timedelta(days=20)),
            "half of the 40 jobs with a limit",
        ),
        (
            "longer-than-trace",
            [*LONG, {"duration": 10**9}],
            [*LONG, {"duration": 90_000}],
            "1 of 42 jobs (2.38 %) run longer than the 1d03h of the trace",
        ),
        ("zone", recorded_jobs(jump=4), recorded_jobs(jump=2), "the recorded times of 4 of 40 jobs (10 %)"),
        (
            "clock-backwards",
            recorded_starts(-60),
            recorded_starts(60),
            "30 of 30 jobs (100 %) have a recorded_start before their submit_time",
        ),
    ],
)
def test_faults_of_a_mapping_are_found(
    check: str,
    planted: list[dict[str, Any]],
    sound: list[dict[str, Any]],
    says: str,
    findings: Callable[..., dict[str, str]],
) -> None:
    """A total taken as a pod's, limits of months, jobs of decades, zones and clocks; else not."""
    assert findings(*planted)[check].startswith(says)
    assert check not in findings(*sound)


@pytest.mark.parametrize(("day", "jump", "found"), [(29, 4, True), (29, 2, False), (25, 4, False)])
def test_limits_tell_of_clocks_that_were_changed(
    day: int, jump: int, found: bool, write_trace: Callable[..., Path]
) -> None:
    """Where jobs ran an hour less than their limit, all at one Sunday morning in October; else not."""
    path = write_trace(*recorded_jobs(jump=jump, limits=True))
    at = pl.lit(datetime(2023, 10, day)) + pl.col("submit_time")
    pl.read_parquet(path).with_columns(submit_time=at).write_parquet(path)
    said = {finding.check: finding.says for finding in lint(open_trace(path, PLUGINS))}
    assert ("zone" in said) is found
    if found:
        assert said["zone"].startswith("4 of 40 jobs (10 %) ran an hour more or less than their limit")


@pytest.mark.parametrize("name", ["philly", "mix", "openb", "hpc2n"])
def test_bundled_traces_have_none_of_the_faults_of_mappings(name: str) -> None:
    """Their readers know whose amounts are, and in which unit and zone."""
    trace = open_trace(Path(__file__).parents[2] / "traces" / f"{name}.parquet", PLUGINS)
    found = {finding.check for finding in lint(trace)}
    assert not found & {"total-as-pod", "limit-long", "longer-than-trace", "zone", "clock-backwards"}


@pytest.mark.parametrize("name", WORLDS)
def test_a_trace_that_was_made_for_a_finding_has_it(
    name: str, findings: Callable[..., dict[str, str]]
) -> None:
    """The same rows without what it is about have it not."""
    assert name in findings(*WORLDS[name])
    assert name not in findings(*spread(300))


def test_the_page_names_every_finding_and_no_other() -> None:
    """With the names that lint prints."""
    table = PAGE.split("## Misleading features: lint")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    modules = sorted(Path(package.__file__).parent.glob("*.py"))
    code = "".join(path.read_text(encoding="utf-8") for path in modules)
    assert sorted(named) == sorted(set(re.findall(r'Finding\(\s*"([a-z-]+)"', code)))


def opened(*parts: str, **options: str) -> Trace:
    return open_trace(SHARED.joinpath(*parts), PLUGINS, options=options)


@recorded
def test_openb_never_needs_more_than_65_of_6212_gpus() -> None:
    """What its source says comes out by itself."""
    trace = opened("openb", "csv", "openb_pod_list_default.csv.gz")
    node = NODE.format(1).replace("cpu: 1", "nvidia.com/gpu-milli: 6212000")
    found = {
        each.check: each.says for each in lint(trace, cluster_from(yaml.safe_load_all(node), "all nodes"))
    }
    assert "65,590 of 6,212,000 of nvidia.com/gpu-milli" in found["cluster-too-big"]
    assert found["sparse-start"].startswith("the first 46 of 7,255 jobs")
    assert found["censored"].startswith("5,193 of 7,255 jobs")


@recorded
def test_hpc2n_has_14817_jobs_that_run_longer_than_requested() -> None:
    """What its source says comes out by itself."""
    found = {each.check: each.says for each in lint(opened("swf-hpc2n-2002", "HPC2N-2002-2.2-cln.swf.gz"))}
    assert found["over-request"] == "14,817 of 202,871 jobs (7.3 %) run longer than requested"


@recorded
def test_the_queues_of_sdsc_blue_rank_as_priorities() -> None:
    """Interactive, express, high, normal, low: in the order of their recorded median waits."""
    found = {each.check: each for each in lint(opened("swf-sdsc-blue-2000", "SDSC-BLUE-2000-4.2-cln.swf.gz"))}
    assert found["queues-rank"].do.startswith(
        "--priority-from queue=0:600,22:500,1:400,2:300,3:200,4:100,*:0"
    )


def test_the_bundled_philly_averages_374_gpus() -> None:
    """The mean of the extract, its peak, and the scale that fills its cluster to 120 %."""
    traces = Path(__file__).parents[2] / "traces"
    trace = open_trace(traces / "philly.parquet", PLUGINS)
    gpus = summarize(trace).resources["nvidia.com/gpu"]
    assert (round(gpus.mean), gpus.p95, gpus.peak) == (374, 758, 1243)
