"""What a report says of how to repeat it makes the same runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_clusters
from policies import Greedy
from report_runs import write

import harness
from harness.analysis.comparison import Comparison
from harness.analysis.report.material import Material
from harness.analysis.report.sections.assumed import repeat
from harness.cluster.load import load_cluster
from harness.trace.calibration import Calibration

CHOICES: dict[str, dict[str, Any]] = {
    "none": {},
    "settings": {
        "label": "fairsharing@pr",
        "on_preemption": "checkpoint=1h,restore=5m",
        "grace_period": "1s",
        "startup": "20s",
        "until": "2m",
        "scale_arrivals": "1/3",
    },
    "a calibration": {"calibration": Calibration.parse(window="10s..", sample="0.5@7", scale_cluster="2")},
    "a twin": {"twin": "2@3,arrivals=5s"},
    "a queue by itself": {"alone": "red"},
    "a policy class": {"plugin": Greedy},
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of two queues with its cluster beside it."""
    rows = [{"submit_time": 3 * number, "queue": ("red", "blue")[number % 2]} for number in range(40)]
    path = write(tmp_path / "trace.parquet", rows)
    quotas = {queue: {"cpu": "4", "memory": "8Gi"} for queue in ("blue", "red")}
    (tmp_path / "trace.cluster.yaml").write_text(small_clusters.queues(quotas))
    return path


def made_again(run: harness.Run, **known: Any) -> harness.Run:
    """Does what the report of a run says, and answers the run that it makes."""
    *before, call = repeat(Material(Comparison.of([run])))
    names = {"harness": harness, "Greedy": Greedy, **known}
    exec("\n".join(before), names)
    answer: harness.Run = eval(call, names)
    return answer


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_a_run_made_in_python_is_made_again_by_its_call(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choices: dict[str, Any]
) -> None:
    """With each of its choices; what decides the name of the run's folder is the same."""
    monkeypatch.chdir(tmp_path)
    run = harness.Request(trace, **{"plugin": "fairsharing", "output": tmp_path / "first", **choices}).run()
    assert made_again(run).path.name == run.path.name


def test_patches_that_are_files_are_laid_over_the_manifests_again(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster of files is named by them."""
    monkeypatch.chdir(tmp_path)
    patch = tmp_path / "weight.yaml"
    patch.write_text("{kind: ClusterQueue, metadata: {name: red}, spec: {fairSharing: {weight: 3}}}")
    cluster = load_cluster(tmp_path / "trace.cluster.yaml").patched(patch)
    run = harness.replay(trace, plugin="fairsharing", cluster=cluster, output=tmp_path / "first")
    assert made_again(run).path.name == run.path.name


def test_a_cluster_that_no_file_has_is_named_and_told(trace: Path, tmp_path: Path) -> None:
    """Else the call would be of a file that is not there, or of the cluster without its changes."""
    base = load_cluster(tmp_path / "trace.cluster.yaml")
    patch = {"kind": "ClusterQueue", "metadata": {"name": "red"}, "spec": {"fairSharing": {"weight": 3}}}
    cluster = base.patched(patch)
    run = harness.replay(trace, plugin="fairsharing", cluster=cluster, output=tmp_path / "first")
    assert made_again(run, cluster=cluster).path.name == run.path.name
    comment, _ = repeat(Material(Comparison.of([run])))
    assert comment == f"# cluster was made in memory: {tmp_path / 'trace.cluster.yaml'} with the patch"
