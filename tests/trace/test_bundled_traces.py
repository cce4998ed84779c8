"""The traces that come with the repository: what they hold, and that the committed command made them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called

from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.trace.bundled import BUNDLED, bundled_path
from harness.trace.lint import lint
from harness.trace.summary import summarize
from harness.trace.trace import Trace, open_trace

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "traces"
SOURCE = ROOT.parent / "shared" / "traces" / "philly-sia"
GPU = "nvidia.com/gpu"
NODES = {
    "6214e9": 64, "b436b2": 64, "ee9e8c": 64, "7f04ca": 32, "6c71a0": 32, "0e4a51": 32, "11cb48": 16,
    "e13805": 16, "2869ce": 16, "ed69ec": 8, "103959": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_trace_fits_the_cluster_beside_it(name: str) -> None:
    """No warning, no fault, a source, a page about it, and something that waits."""
    path = bundled_path(name)
    cluster = load_cluster(path.with_name(f"{name}.cluster.yaml"))
    trace = open_trace(path, load(only=["readers"]), cluster=cluster)
    assert cluster.warnings == ()
    assert trace.metadata["harness.source"]
    assert f"\n## {name}\n" in (TRACES / "README.md").read_text(encoding="utf-8")
    assert "cluster-too-big" not in {finding.check for finding in lint(trace, cluster)}
    jobs = f"{trace.frame['job_id'].n_unique():,}"
    assert jobs in BUNDLED[name].about


def test_the_bundled_traces_are_small() -> None:
    """Whoever clones the repository gets less than 12 MB of data."""
    assert sum(path.stat().st_size for path in TRACES.iterdir()) < 12_000_000


def test_the_mix_is_what_its_specification_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed commands make the same files."""
    monkeypatch.chdir(tmp_path)
    spec = str(TRACES / "mix.yaml")
    assert called(["trace", "generate", spec, "-o", "mix.parquet", "--seed", "7"]) == 0
    assert pl.read_parquet("mix.parquet").equals(pl.read_parquet(TRACES / "mix.parquet"))
    command = [
        "cluster",
        "init",
        "mix.parquet",
        "--target-load",
        "1.1",
        "--node-pool",
        "-o",
        "mix.cluster.yaml",
    ]
    assert called(command) == 0
    written, bundled = (
        each.read_text().partition("---\n")
        for each in (Path("mix.cluster.yaml"), TRACES / "mix.cluster.yaml")
    )
    assert written[2] == bundled[2]  # a suite of the benchmark has the checksum of the bundled file


@pytest.fixture(scope="module")
def philly() -> Trace:
    """The bundled trace, which fits its cluster."""
    cluster = load_cluster(TRACES / "philly.cluster.yaml")
    return open_trace(TRACES / "philly.parquet", load(only=["readers"]), cluster=cluster)


def test_philly_holds_the_jobs_of_the_extract(philly: Trace) -> None:
    """82,247 jobs in order of submission, with the columns that the source has and no others."""
    assert philly.frame.columns == [
        "job_id", "submit_time", "duration", "queue", f"request.{GPU}", "pods", "gang",
    ]  # fmt: skip
    assert philly.frame["job_id"].to_list() == [str(number) for number in range(1, 82_248)]
    assert philly.frame["submit_time"].is_sorted()
    summary = summarize(philly)
    assert (summary.first, summary.last) == ("2017-09-04 10:30:41", "2017-12-22 08:02:11")
    assert (summary.jobs, summary.gangs, len(summary.tenants)) == (82_247, 289, 15)
    assert summary.resources[GPU].mean == pytest.approx(374.24, abs=0.01)
    assert summary.resources[GPU].peak == 1243
    assert {tenant.queue: tenant.jobs for tenant in summary.tenants[:4]} == {
        "6214e9": 41_226,
        "11cb48": 16_091,
        "6c71a0": 9_953,
        "b436b2": 7_423,
    }


def test_philly_says_where_it_comes_from(philly: Trace) -> None:
    """CC-BY-4.0 asks for attribution and for a note of what was changed."""
    assert philly.metadata["harness.license"].startswith("CC-BY-4.0; Jeon et al.")
    assert "29a1b87" in philly.metadata["harness.source"]
    assert any("gang of equal pods" in note for note in philly.notes)


def test_jobs_of_more_than_a_node_are_gangs(philly: Trace) -> None:
    """Pods of at most 8 GPUs, all of one job alike."""
    gangs = philly.frame.filter(pl.col("gang"))
    assert (philly.frame["pods"] > 1).sum() == gangs.height == 289
    assert philly.frame[f"request.{GPU}"].max() == 8
    assert set((gangs["pods"] * gangs[f"request.{GPU}"]).to_list()) == {12, 16, 24, 32, 64, 128}


def test_the_quotas_are_in_proportion_to_the_nodes(philly: Trace) -> None:
    """640 GPUs in whole numbers, nobody more than one from the exact share; who had no nodes has no quota."""
    cluster = load_cluster(TRACES / "philly.cluster.yaml")
    nominal = {
        queue.name: queue.resource_groups[0].flavors[0].resources[GPU].nominal
        for queue in cluster.cluster_queues.values()
    }
    assert cluster.capacity == {GPU: 640}
    assert len(cluster.nodes) == 80
    assert sum(nominal.values()) == 640
    assert set(nominal) == set(philly.frame["queue"].unique())
    for name, quota in nominal.items():
        assert abs(quota - 640 * NODES.get(name, 0) / 352) < 1
        assert (quota == 0) == (name not in NODES)
    assert {queue.cohort for queue in cluster.cluster_queues.values()} == {"philly"}
    assert {queue.preemption.reclaim_within_cohort for queue in cluster.cluster_queues.values()} == {"Any"}
    assert cluster.warnings == ()


def test_the_committed_command_makes_the_same_files(tmp_path: Path) -> None:
    """Rows and manifests as they are committed."""
    if not SOURCE.is_dir():
        pytest.skip("the extract that the bundle is made of is not at hand")
    command = [sys.executable, ROOT / "scripts" / "bundle_philly.py"]
    subprocess.run(
        [*command, SOURCE / "philly.csv.gz", SOURCE / "philly_vc.csv", "--output", tmp_path], check=True
    )
    assert (tmp_path / "philly.cluster.yaml").read_text() == (TRACES / "philly.cluster.yaml").read_text()
    plugins = load(only=["readers"])
    made, committed = (open_trace(folder / "philly.parquet", plugins) for folder in (tmp_path, TRACES))
    assert made.frame.equals(committed.frame)
    assert made.metadata == committed.metadata
