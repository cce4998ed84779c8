"""The commands of the documentation, page by page, and what stands in for a user's own files."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import polars as pl
import yaml
from cli_environment import called
from reader_samples import KUBERNETES, OPENB
from watched_cluster import VERSIONS, WatchedCluster

from harness.cluster.manifests import dump_yaml
from harness.readers.live.cluster import Kind
from harness.readers.live.folder import recording_folder
from harness.readers.live.follow import Seen
from harness.readers.live.record import Recorder

ROOT = Path(__file__).parents[1]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))),
        *(ROOT / name / "README.md" for name in ("plugins", "traces", "results")),
    )
]
_PROGRAM = re.compile(
    r"(harness|python3?|pip|kubectl|bash|git|asv|jupyter|curl|script|tar|\.venv/\S+"
    r"|sacct|sacctmgr|scontrol|SLURM_TIME_FORMAT=\S+) |harness$"
)
_SLURM = ROOT / "tests" / "plugins" / "readers" / "slurm"
_SHELL = ("", "sh", "bash", "console")

EXCEPTED = {
    r"python3 -m venv ": "sets an environment up, which CI does from nothing",
    r"\.venv/bin/": "runs the tools of contributors, which CI does",
    r"bash \.ci/run": "is what CI runs",
    r"bash scripts/ci/": "is what the workflows run; tests/test_project_files.py looks at each",
    r"pip install ": "installs from an index of packages",
    r"kubectl ": "asks a live cluster",
    r"harness trace record ": "asks a live cluster; tests/live records one",
    r"harness cluster events ": "asks a live Prometheus, or needs a recording; tests/live has both",
    r"harness trace fetch ": "asks a live Prometheus; tests/live has one",
    r"harness sweep docs/examples/grid\.yaml": "makes 600 replays; tests/experiments looks at its items",
    r"harness tune ": "needs Optuna; tests/experiments tunes where it is installed",
    r"harness .*--dask ": "asks a live Dask scheduler, as tests/experiments does",
    r"curl .*\$PROMETHEUS": "asks a live Prometheus",
    r"(SLURM_TIME_FORMAT=|sacctmgr |scontrol )": "asks a live Slurm cluster",
    r"git archive ": "takes manifests out of a user's repository",
    r"python -m harness_plugins\.readers\.machines wagap": "tests/plugins/readers has one of such machines",
    r"harness replay .*--shake 100": "makes four hundred replays for a table",
    r"python scripts/(?!team_dump)": "takes an hour, or files that are published elsewhere",
    r"harness (trace generate docs/examples/(scale|windows)\.yaml|replay scale\.parquet)": (
        "makes millions of jobs; tests/docs/test_scale.py makes some hundred"
    ),
    r"harness .*\b(RUN|FILE|SPEC|IN|JOB)\b": "a summary of forms; what stands in capitals is any file",
    r"harness plugins +lists": "a line of the same summary",
    r"harness replay trace\.parquet --plugin none": "tests/test_installed_plugins.py does it",
    r"harness bench table --format": "replays every built-in policy in all tasks, which takes minutes",
    r"harness bench (run -p |check \S+/)volcano-of-cluster-queues": "installs a package, and takes minutes",
    r"python docs/examples/evolve_order\.py": "takes minutes; tests/benchmark tries it",
    r"harness reproduce .*--data ": "needs published logs; tests/cli has it with -m slow",
    r"harness mcp ": "serves until stdin ends; tests/tool_server asks it",
    r"harness plugins new ": "tests/test_installed_plugins.py installs what it writes",
}
"""What is not executed, by how a command begins, and why."""

_SWF = """\
; UnixStartTime: 1027839845
; MaxProcs: 1152
; MaxNodes: 144
""" + "".join(
    f"{job} {40 * job} 5 60 {2 * job} -1 -1 2 120 -1 1 3 1 -1 {job - 1} -1 -1 -1\n" for job in range(1, 6)
)
_NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{number},96000,524288,8,V100M32\n" for number in range(32)
)


def commands(page: str) -> Iterator[str]:
    """The commands of a page in their order, those of several lines as one."""
    lines = iter((ROOT / page).read_text(encoding="utf-8").split("\n"))
    language: str | None = None
    for line in lines:
        if line.startswith("```"):
            language = line[3:] if language is None else None
        elif (language in _SHELL) if language is not None else line.startswith("    "):
            command = line.strip()
            if _PROGRAM.match(command):
                while command.endswith("\\"):
                    command = f"{command[:-1].rstrip()} {next(lines).strip()}"
                yield command


def why_excepted(command: str) -> str | None:
    """Why a command is not executed; None where it is."""
    return next((why for pattern, why in EXCEPTED.items() if re.match(pattern, command)), None)


def shared(place: Path, *, whole: bool) -> None:
    """Put into a folder what every page may name: a user's own files, and what is bundled, cut or whole."""
    for name in ("docs/examples", "scripts"):
        shutil.copytree(ROOT / name, place / name)
    (place / "traces").mkdir()
    (place / "tests" / "conformance").mkdir(parents=True)
    for path in (ROOT / "traces").iterdir():
        shutil.copy(path, place / "traces")
    for path in (ROOT / "tests" / "conformance").glob("*.gz"):
        with (
            gzip.open(path, "rt") as file,
            gzip.open(place / "tests" / "conformance" / path.name, "wt") as to,
        ):
            to.writelines(file if whole else [min(file, key=len)])
    if not whole:
        for name in ("philly", "mix", "openb"):
            path = place / "traces" / f"{name}.parquet"
            frame = pl.read_parquet(path).with_row_index("row")
            some = pl.col("row") % (pl.len() // 60) == 0
            named = pl.col("job_id").is_in(["4354"]) if name == "philly" else pl.lit(value=False)
            frame.filter(some | named).drop("row").write_parquet(path)
    with chdir(place):
        _own_files(place, elastic=False)
    if not whole:
        month = (place / "month.txt").read_text().splitlines(keepends=True)
        (place / "month.txt").write_text("".join(month[:60]))


def stock(place: Path, page: str) -> None:
    """Put into the present folder what only this page names."""
    if page == "docs/elasticquota.md":
        _own_files(place, elastic=True)
    if page == "docs/topology.md":
        run_code(page)
    if page == "docs/recording.md":
        _record(place)
    if page in ("docs/tables.md", "docs/sources.md"):
        _tables(place)
    if page == "docs/data-sets.md":
        _data_sets(place)


def _data_sets(place: Path) -> None:
    """Excerpts of the published tables, as they are called there."""
    for each in sorted((ROOT / "tests" / "plugins" / "readers" / "tables").iterdir()):
        for path in each.iterdir():
            if path.is_dir():
                shutil.copytree(path, place / path.name)
            elif path.name != "truth.csv":
                shutil.copy(path, place)


def _record(place: Path) -> None:
    """An hour of a cluster, recorded and as kubectl would have printed it."""
    cluster = WatchedCluster.of(0)
    kinds = {name: Kind(name, VERSIONS[name], "") for name in VERSIONS}
    with recording_folder(place / "march", {"server": "https://cluster", "namespace": None}) as folder:
        recorder = Recorder(folder, print)
        for change in cluster.changes:
            recorder.take(kinds[change.manifest["kind"]], Seen(change.event, change.manifest))
        recorder.write()
    events = [json.dumps({"type": each.event, "object": each.manifest}) for each in cluster.changes]
    (place / "stream.json").write_text("\n".join(events))


def write_pm100(path: Path) -> None:
    """A job table as PM100 has it."""
    times = ("submit_time", "start_time", "end_time")
    numbers = ("run_time", "time_limit", "num_nodes_alloc", "num_cores_alloc", "num_gpus_alloc", "mem_alloc")
    row = {
        "job_id": 1,
        "partition": "1",
        "user_id": 2,
        **dict.fromkeys(times, 0),
        **dict.fromkeys(numbers, 4),
    }
    frame = pl.DataFrame([row]).with_columns(pl.from_epoch(pl.col(*times)).dt.replace_time_zone("UTC"))
    frame.write_parquet(path)


def _tables(place: Path) -> None:
    """A job table as PM100 has it, and one of a site in several files, with its mapping."""
    write_pm100(place / "job_table.parquet")
    text = "id,submitted,ran,queue,cores\n{},100,60,a,4\n"
    (place / "tables").mkdir()
    for path in (place / "a.csv", place / "tables" / "1.csv"):
        path.write_text(text.format(path.name))
    (place / "b.csv.gz").write_bytes(gzip.compress(text.format("b").encode()))
    columns = {"job_id": "id", "submit_time": "submitted : unix", "duration": "ran", "queue": "queue"}
    (place / "mine.yaml").write_text(dump_yaml([{"columns": {**columns, "request.cpu": "cores"}}]))


def run_code(page: str) -> None:
    """Run the code of a page that makes what its commands read, in the present folder."""
    text = (ROOT / page).read_text(encoding="utf-8").split("\n    from ", 1)[1]
    lines = f"    from {text}".splitlines()
    end = next(number for number, line in enumerate(lines) if line[:1].strip())
    exec(compile("\n".join(line[4:] for line in lines[:end]), page, "exec"), {})


def _own_files(place: Path, *, elastic: bool) -> None:
    """A user's logs, jobs, manifests (with elastic quotas where a page is about them) and patches."""
    for name in ("my-log", "sdsc-blue", "SDSC-BLUE-2000-4.2-cln"):
        with gzip.open(place / f"{name}.swf.gz", "wt") as file:
            file.write(_SWF)
    for name, text in (("openb_pod_list_default", OPENB), ("openb_node_list_all_node", _NODES)):
        with gzip.open(place / f"{name}.csv.gz", "wt") as file:
            file.write(text)
    head = "id,submitted,started,ended,team,cores,memory,nodes\n"
    row = "{},2024-01-01T00:00:0{},2024-01-01T01:00:00,2024-01-01T02:00:00,a,4,16,1\n"
    (place / "jobs.csv").write_text(head + "".join(row.format(number, number) for number in range(3)))
    number, second = pl.int_range(60, dtype=pl.Int64), pl.duration(seconds=1, time_unit="us")
    frame = pl.select(
        job_id=pl.int_range(60).cast(pl.String),
        submit_time=pl.duration(minutes=number * 7, time_unit="us"),
        duration=second * (600 + number * 90),
        queue=pl.concat_str(
            pl.lit("team-"), pl.when(number % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
        ),
        priority=(number % 3).cast(pl.Int32),
        **{"request.cpu": 1000 * (1 + number % 4), "request.nvidia.com/gpu": 1 + number % 4},
    )
    frame.write_parquet(place / "jobs.parquet")
    assert called(["cluster", "init", "jobs.parquet", "-o", "cluster.yaml"]) == 0
    manifests = list(yaml.safe_load_all((place / "cluster.yaml").read_text()))
    trees = [each for each in manifests if each["kind"] == "ElasticQuotaTree"]
    (place / "quotas.yaml").write_text(dump_yaml(trees))
    if not elastic:
        (place / "cluster.yaml").write_text(dump_yaml([each for each in manifests if each not in trees]))
    for folder in ("base/manifests", "manifests"):
        (place / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy("cluster.yaml", place / folder / "cluster.yaml")
    history = KUBERNETES.replace('"namespace": "team"', '"namespace": "default"').replace('"lq"', '"team-a"')
    (place / "history.json").write_text(history)
    configuration = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    (place / "kueue.yaml").write_text(dump_yaml([configuration]))
    for name in ("nodes", "qos", "assoc"):
        shutil.copy(_SLURM / f"{name}.txt", place)
    (place / "month.txt").write_bytes(gzip.decompress((_SLURM / "noconvert.txt.gz").read_bytes()))
    for name in ("shared", "nodes", "base", "pr", "dump"):
        shutil.copy("cluster.yaml", f"{name}.yaml")
    queue = next(each for each in manifests if each["kind"] == "ClusterQueue")
    about = {"apiVersion": queue["apiVersion"], "kind": "ClusterQueue", "metadata": queue["metadata"]}
    for name, spec in (
        ("more", {"fairSharing": {"weight": "2"}}),
        ("cohorts", {"queueingStrategy": "StrictFIFO"}),
    ):
        (place / f"{name}.yaml").write_text(dump_yaml([{**about, "spec": spec}]))
