"""What all jobs ask for together fits 64 bits, or is refused with the row; nothing turns negative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called
from policies import Greedy
from small_clusters import queues

import harness
from harness import Admit, Decision
from harness.analysis.metrics.resource_time import resource_time
from harness.base.errors import ClusterError, InputError, TraceError
from harness.base.units import INT64_MAX, LONGEST, SECOND
from harness.plugins import load
from harness.testing import Script, pool, replayed
from harness.trace.sums import Sums
from harness.trace.trace import open_trace

PLUGINS = load(only=["readers"])
_MANIFESTS = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8, memory: "9223372036854775807", pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: n1
  containers: [{name: c, resources: {requests: {memory: "9000000000000000000"}}}]
status: {phase: Running}
"""


def test_memory_in_a_wrong_unit_is_refused_with_the_row(write_trace: Callable[..., Path]) -> None:
    """400 jobs of 64 GiB in megabytes of bytes: the 128th is the one that 64 bits cannot count any more."""
    path = write_trace(*[{"request.memory": 64 * 2**50}] * 400)
    with pytest.raises(TraceError, match=r"row 128 \(job 'j127'\), request.memory: 65536Ti .* 64 bits"):
        open_trace(path, PLUGINS)


@pytest.mark.parametrize("command", [("trace", "check"), ("trace", "lint"), ("replay",), ("trace", "info")])
def test_every_command_refuses_what_cannot_be_summed(
    write_trace: Callable[..., Path], command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, the row is named, and nothing is printed."""
    path = write_trace(*[{"request.memory": 2**61}] * 5)
    assert called([*command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "row 4 (job 'j3'), request.memory" in err


def test_what_just_fits_is_measured_exactly(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """The parts of all that 64 bits can count add up to the byte-microsecond, and no ratio is negative."""
    rows = [{"request.memory": INT64_MAX // 4, "submit_time": 3 * at, "duration": 10} for at in range(4)]
    path = write_trace(*rows, {"request.memory": INT64_MAX % 4, "request.cpu": 1})
    run = harness.replay(path, plugin="none", output=tmp_path / "results")
    parts = resource_time(run, run.window, "memory")
    became = (parts.useful, parts.lost, parts.idle_held, parts.unfinished)
    assert parts.allocated == sum(became) > INT64_MAX
    assert min(became) >= 0
    assert run.metrics.filter(pl.col("value") < 0).is_empty()


def test_rows_are_counted_on_from_piece_to_piece() -> None:
    """A sum that grows over pieces names the row in the whole, once."""
    piece = pl.DataFrame({"job_id": ["a", "b"], "request.x": [2**61, 2**60], "pods": [1, 2]})
    sums = Sums()
    assert sums.add(piece) == []
    (fault,) = sums.add(piece)
    assert str(fault).startswith("row 4 (job 'b'), request.x: 2305843009213693952 ")
    assert sums.add(piece) == []
    assert sums.total == {"request.x": 6 * 2**61}


def test_what_runs_already_is_counted_with_the_trace(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Pods of the manifests hold resources beside the jobs of the trace."""
    (tmp_path / "cluster.yaml").write_text(_MANIFESTS)
    path = write_trace({"request.memory": 10**18})
    with pytest.raises(ClusterError, match=r"default/web, of the manifests: .* 64 bits can count"):
        harness.replay(path, plugin="none", cluster=tmp_path / "cluster.yaml", output=tmp_path / "results")


@pytest.mark.parametrize("plugin", ["none", "kueue-classic", "fairsharing"])
def test_quotas_just_below_unlimited_limit_nothing_together(
    write_trace: Callable[..., Path], tmp_path: Path, plugin: str
) -> None:
    """What two queues have together has no end, as in Kueue: nobody is told that the cluster has nothing."""
    near = str(INT64_MAX - 1)
    (tmp_path / "cluster.yaml").write_text(
        queues({"a": {"cpu": "100", "memory": near}, "b": {"cpu": "100", "memory": near}})
    )
    rows = [{"queue": queue, "request.memory": 2**61} for queue in "aab"]
    run = harness.replay(
        write_trace(*rows), plugin=plugin, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results"
    )
    assert run.jobs["state"].to_list() == ["finished"] * 3
    assert run.jobs["start_time"].to_physical().to_list() == [0, 0, 0]
    assert run.capacity == {"cpu": 200_000}


def test_one_quota_just_below_unlimited_is_a_bound(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Jobs that ask for all of it and one more run one after the other, and never is too much promised."""
    near = INT64_MAX - 2
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": "100", "memory": str(near)}}))
    path = write_trace({"queue": "a", "request.memory": near}, {"queue": "a", "request.memory": 2})
    run = harness.replay(
        path, plugin="kueue-classic", cluster=tmp_path / "cluster.yaml", output=tmp_path / "results"
    )
    assert run.jobs["start_time"].to_physical().to_list() == [0, 10 * SECOND]
    assert run.capacity["memory"] == near


class InTurn(Greedy):
    """Starts jobs in order of arrival, and looks only at the first that waits."""

    def cycle(self, now: int) -> Iterator[Decision]:
        while self.waiting and self.view.fits(self.waiting[0]):
            self.running.append(self.waiting.pop(0))
            yield Admit(self.running[-1])


def test_time_that_cannot_be_counted_ends_a_replay_with_a_message() -> None:
    """1,500 jobs of a hundred years, one after the other, are beyond the end of simulated time."""
    jobs = Script()
    for number in range(1500):
        jobs.job(f"j{number}", cpu=1, seconds=LONGEST // SECOND)
    with pytest.raises(InputError, match="would end more than 146,000 years after the origin"):
        replayed(InTurn, jobs, pool(cpu=1))


def test_lost_time_that_cannot_be_counted_is_refused(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A hundred thousand pods that each lose a hundred years have lost more than 64 bits of microseconds."""
    years = LONGEST // SECOND
    rows = [
        {"request.cpu": 1, "pods": 100_000, "duration": years, "priority": 0},
        {"submit_time": years - 1, "request.cpu": 100_000, "pods": 1, "duration": 1, "priority": 1},
    ]
    (tmp_path / "cluster.yaml").write_text(queues({"default": {"cpu": "100"}}))
    with pytest.raises(InputError, match=r"job j0: the total time that its pods lost .* 64 bits can count"):
        harness.replay(
            write_trace(*rows),
            plugin="kueue-classic",
            cluster=tmp_path / "cluster.yaml",
            output=tmp_path / "results",
        )
