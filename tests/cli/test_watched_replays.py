"""`harness replay --step` and `--trace-policy`: what a policy is told and decides, as lines."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_environment import LONG, clean_environment

from harness.analysis.explanation.cycles import Observer

POLICY = """
    import harness

    class Urgent:
        \"\"\"Starts the most important job, preempts for it, and looks again after 5 s.\"\"\"

        def __init__(self, cluster, view, options):
            self.view, self.waiting, self.running = view, [], []

        def submit(self, job, pods, now):
            self.waiting.append(job)

        def release(self, job, pods, now, why):
            self.running.remove(job)

        def cycle(self, now):
            yield harness.Wake(now + 5_000_000, idle=True)
            for job in sorted(self.waiting, key=lambda job: (-job.priority, job.index)):
                victims = [each for each in self.running if each.priority < job.priority]
                if victims and not self.view.fits(job):
                    yield harness.Preempt(victims[0], job, "Urgent", detail={"priority": job.priority})
                if self.view.fits(job):
                    self.waiting.remove(job)
                    self.running.append(job)
                    yield harness.Admit(job)
                else:
                    yield harness.Refuse(job, "NoRoom")

    @harness.hookimpl
    def harness_register_policies(register):
        register(harness.PolicySpec("urgent", Urgent, help="the most important job"))
"""


@pytest.fixture
def trace(write_trace: Callable[..., Path], folder: Path) -> Path:
    """Three jobs that do not fit beside each other, the last one important."""
    rows = [
        {"job_id": "a", "submit_time": 0, "duration": 8, "request.cpu": 1000},
        {"job_id": "b", "submit_time": 1, "duration": 8, "request.cpu": 1000},
        {"job_id": "c", "submit_time": 2, "duration": 8, "request.cpu": 1000, "priority": 5},
    ]
    (folder / "c.yaml").write_text(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: f}\n---\n"
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: default}\n"
        "spec: {resourceGroups: [{coveredResources: [cpu], flavors: "
        "[{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]}\n"
    )
    return write_trace(*({"priority": 0, **row} for row in rows))


def kept(folder: Path) -> dict[str, bytes]:
    """The tables of the one run in a folder, as bytes."""
    return {path.name: path.read_bytes() for path in folder.rglob("*.parquet")}


WHOLE = """\
cycle 1 at 0s
  told     a arrives: 1 pod of queue default, priority 0, cpu 1
  decided  wake at 5s, if the replay has other work by then
           admit a
cycle 2 at 1s
  told     b arrives: 1 pod of queue default, priority 0, cpu 1
  decided  wake at 6s, if the replay has other work by then
           let b wait: NoRoom
cycle 3 at 2s
  told     c arrives: 1 pod of queue default, priority 5, cpu 1
  decided  wake at 7s, if the replay has other work by then
           preempt a for c: Urgent
             {"priority": 5}
  told     a was evicted and is gone: 1 pod, cpu 1
           a waits again: 1 pod of queue default, priority 0, cpu 1
  decided  admit c
"""


def test_every_cycle_is_told_where_there_is_no_terminal(
    harness: Callable[..., Any], install: Callable[[str, str], Path], trace: Path, folder: Path
) -> None:
    """With the calls in order, those within a cycle too; and the run is what it is without being watched."""
    install("urgent", POLICY)
    common = ["replay", trace, "--cluster", "c.yaml", "-p", "urgent", "--grace-period", "0s"]
    told = harness(*common, "--step", "-o", "watched")
    assert told.code == 0, told.err
    assert told.out.startswith(WHOLE)
    assert "told     the policy asked to be woken at this time" in told.out
    plain = harness(*common, "-o", "plain")
    assert plain.code == 0
    assert told.out.endswith(plain.out), "the comparison follows"
    assert kept(folder / "watched") == kept(folder / "plain")


def test_a_replay_without_cycles_says_so(
    harness: Callable[..., Any], write_trace: Callable[..., Path]
) -> None:
    """It ends before the first job comes."""
    told = harness("replay", write_trace({"submit_time": 5}), "--step", "--until", "1s")
    assert "note: there is no cycle\n" in told.err


def test_cycles_of_a_window_have_the_times_of_the_trace(
    harness: Callable[..., Any], install: Callable[[str, str], Path], trace: Path
) -> None:
    """Where these are durations, as in the run's tables; not since the window's beginning."""
    install("urgent", POLICY)
    told = harness(
        "replay", trace, "--cluster", "c.yaml", "-p", "urgent", "--window", "1s..", "--until", "1s", "--step"
    )
    assert told.code == 0, told.err
    assert told.out.startswith("cycle 1 at 1s\n  told     b arrives")
    assert "wake at 6s, " in told.out
    assert "cycle 2 at 2s\n  told     c arrives" in told.out


@pytest.mark.parametrize("plugin", ["none", "fairsharing"])
def test_built_in_policies_decide_the_same_when_they_are_watched(
    harness: Callable[..., Any], trace: Path, folder: Path, plugin: str
) -> None:
    """To the byte, in every table."""
    for output, watching in (("watched", ["--step"]), ("plain", [])):
        ended = harness("replay", trace, "--cluster", "c.yaml", "-p", plugin, *watching, "-o", output, "-q")
        assert ended.code == 0, ended.err
    assert kept(folder / "watched") == kept(folder / "plain") != {}


def test_one_job_is_followed(
    harness: Callable[..., Any], install: Callable[[str, str], Path], trace: Path
) -> None:
    """Cycles that concern none of the jobs are left out; of others, what does not is counted."""
    install("urgent", POLICY)
    common = ["replay", trace, "--cluster", "c.yaml", "-p", "urgent", "--grace-period", "0s"]
    assert harness(*common).code == 0
    told = harness(*common, "--trace-policy", "b", "--until", "9s")
    assert next(line for line in told.out.splitlines() if line.startswith("cycle")) == "cycle 2 at 1s"
    assert "cycle 1 " not in told.out
    assert "  besides  1 wake\n" in told.out
    assert "b arrives" in told.out
    both = harness(*common, "--trace-policy", "b", "--trace-policy", "c")
    assert "preempt a for c" in both.out
    assert "a arrives" not in both.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--trace-policy", "aa"], "no job 'aa'"),
        (["--step", "-p", "none"], "watch one replay, but you asked for 2"),
        (["--step", "--shake", "2"], "--shake replays twins"),
        (["--step", "--json"], "and so does --json"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    harness: Callable[..., Any],
    install: Callable[[str, str], Path],
    trace: Path,
    folder: Path,
    more: list[str],
    said: str,
) -> None:
    """Before anything is replayed."""
    install("urgent", POLICY)
    ended = harness("replay", trace, "--cluster", "c.yaml", "-p", "urgent", *more)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not (folder / "results").exists()


def test_the_cycle_in_which_a_policy_fails_is_told(
    harness: Callable[..., Any], install: Callable[[str, str], Path], trace: Path
) -> None:
    """Up to the decision that is wrong."""
    install("urgent", POLICY.replace("self.waiting.remove(job)", "pass"))
    told = harness("replay", trace, "--cluster", "c.yaml", "-p", "urgent", "--step")
    assert told.code == 2
    assert "made a wrong decision" in told.err
    assert told.out.endswith("let a wait: NoRoom\n  (the replay ended before this cycle did)\n")


@pytest.mark.parametrize(
    ("keys", "cycles", "code"), [("\nq\n", 2, 0), pytest.param("\n" * 9, 5, 0, marks=pytest.mark.nightly)]
)
def test_a_terminal_is_asked_after_each_cycle(
    install: Callable[[str, str], Path], trace: Path, folder: Path, keys: str, cycles: int, code: int
) -> None:
    """Enter goes on, and q ends it: then nothing is kept."""
    environment = clean_environment() | {"PYTHONPATH": str(install("urgent", POLICY))}
    ours, theirs = pty.openpty()
    os.write(ours, keys.encode())
    line = f"harness replay {trace} --cluster c.yaml -p urgent --grace-period 0s --until 6s --step"
    with subprocess.Popen(
        line.split(), cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            shown += part
        process.wait(timeout=LONG)
    os.close(ours)
    assert process.returncode == code
    text = shown.decode()
    assert text.count("cycle ") == cycles, text
    assert bool(kept(folder)) is (cycles > 2)


def test_closed_input_is_no_terminal(install: Callable[[str, str], Path], trace: Path, folder: Path) -> None:
    """As cron and some supervisors start commands: nobody is asked, and all cycles are told."""
    environment = clean_environment() | {"PYTHONPATH": str(install("urgent", POLICY))}
    line = f"harness replay {trace} --cluster c.yaml -p urgent --grace-period 0s --step <&-"
    told = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(WHOLE)


def test_pods_that_are_ready_are_told_only_to_policies_that_want_to_know() -> None:
    """An observed policy has the method where the policy itself has it."""

    class Plain:
        def __init__(self, *_: object) -> None: ...

    class Told(Plain):
        def ready(self, *_: object) -> None: ...

    assert hasattr(Observer(Told(), print), "ready")
    assert not hasattr(Observer(Plain(), print), "ready")


def test_timers_of_a_policy_run_while_it_is_watched(
    harness: Callable[..., Any], write_trace: Callable[..., Path], folder: Path
) -> None:
    """A toleration ends after 20 s, whether anybody watches or not; what is decided then is told."""
    (folder / "n.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
        "spec: {taints: [{key: broken, effect: NoExecute}]}\n"
        "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"
    )
    toleration = '[{"key": "broken", "operator": "Exists", "tolerationSeconds": 20}]'
    trace = write_trace({"job_id": "a", "duration": 30, "request.cpu": 1000, "tolerations": toleration})
    common = ["replay", trace, "--cluster", "n.yaml", "-p", "default-preemption", "--until", "50s"]
    told = harness(*common, "--step", "-o", "watched")
    assert told.code == 0, told.err
    assert "evict a, 1 pod" in told.out
    assert harness(*common, "-o", "plain").code == 0
    assert kept(folder / "watched") == kept(folder / "plain")
