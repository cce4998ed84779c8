"""A run says at its end who waited in vain, and its folder is called alike whatever its label is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import Admit, Decision, Job, View, Wake
from harness.analysis.comparison import Comparison

TRACE = "job_id,submit_time,duration,queue,request.cpu\na,0,60,q,1\nb,10,60,q,1\nc,20,60,q,1\n"
CLUSTER = """\
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]
"""


class OnlyTheFirst:
    """Admits one job, and wants to be asked again after a minute only where it is told so."""

    wakes = False

    def __init__(self, cluster: harness.Cluster, view: View, options: Any) -> None:
        self.jobs: list[Job] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        """See `Policy`."""
        self.jobs.append(job)

    def release(self, job: Job, pods: range, now: int, why: object) -> None:
        """See `Policy`."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """See `Policy`."""
        if self.jobs and (now == 0 or (self.wakes and now % 60_000_000 == 0)):
            yield Admit(self.jobs.pop(0), {"main": {"cpu": "f"}})
        if self.wakes and self.jobs:
            yield Wake(now // 60_000_000 * 60_000_000 + 60_000_000)


class Wakeful(OnlyTheFirst):
    """Asks to be asked again while jobs wait."""

    wakes = True


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A trace of three small jobs and a queue with room for all."""
    trace, cluster = tmp_path / "jobs.csv", tmp_path / "cluster.yaml"
    trace.write_text(TRACE)
    cluster.write_text(CLUSTER)
    return trace, cluster


def test_jobs_that_a_sleeping_policy_leaves_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    """With what would have woken it; one that asks to be woken leaves none."""
    trace, cluster = files
    run = harness.replay(
        trace, plugin=OnlyTheFirst, cluster=cluster, label="sleepy", output=tmp_path / "runs"
    )
    (told,) = [each for each in run.remarks if each.startswith("when the replay ends")]
    assert told.startswith(
        "when the replay ends, 2 jobs wait although all resources that they request are free: b, c. "
        "`harness explain` shows whether a limit forbids a start. Otherwise, the policy slept: a cycle"
    )
    assert "the policy requests a Wake" in told
    assert told in str(Comparison([run]))
    awake = harness.replay(trace, plugin=Wakeful, cluster=cluster, label="awake", output=tmp_path / "runs")
    assert awake.remarks == ()
    assert "asleep" not in awake.info["outcome"]


@pytest.mark.parametrize(
    ("label", "begins"),
    [
        (None, "kueue-classic-"),
        ("pr", "kueue-classic@pr-"),
        ("kueue-classic@more", "kueue-classic@more-"),
        ("pr@more", "kueue-classic@pr@more-"),
    ],
)
def test_a_folder_begins_with_the_plugin(
    files: tuple[Path, Path], tmp_path: Path, label: str | None, begins: str
) -> None:
    """Then comes the label, of a plugin, a patch or a cluster alike."""
    trace, cluster = files
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=cluster, label=label, output=tmp_path / "runs"
    )
    assert run.path.name.startswith(begins)
    assert run.label == (label or "kueue-classic")
