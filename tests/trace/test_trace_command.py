"""`harness trace` as people use it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main

SWF = "; UnixStartTime: 1000000000\n" + "".join(
    f"{number} {number} 0 10 4 -1 -1 4 20 -1 {status} 3 1 -1 2 -1 -1 -1\n"
    for number, status in ((1, 1), (2, 5), (3, 1))
)
CLUSTER = """\
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 1, template: {allocatable: {cpu: '2'}}}
"""


@pytest.fixture
def harness(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line; answers exit code, stdout and stderr."""

    def run(*args: Any) -> tuple[int, str, str]:
        code = 0
        try:
            main([str(arg) for arg in args])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


Harness = Callable[..., tuple[int, str, str]]


def test_check_says_in_one_line_that_a_trace_is_fine(
    harness: Harness, write_trace: Callable[..., Path]
) -> None:
    """One line on stdout."""
    path = write_trace({}, {"queue": "other"})
    assert harness("trace", "check", path) == (0, f"{path}: no faults; 2 jobs, 2 queues\n", "")


def test_check_lists_every_fault(harness: Harness, write_trace: Callable[..., Path]) -> None:
    """All of them, more than an error usually shows; exit code 2."""
    path = write_trace(*[{"queue": ""}] * 30)
    code, out, err = harness("trace", "check", path)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 30
    assert err.splitlines()[29] == f"{path}: row 30 (job 'j29'), queue: is empty"


def test_check_holds_a_trace_against_a_cluster(
    harness: Harness, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Jobs that can never run and classes that are unknown are faults then, together with all others."""
    cluster = tmp_path / "c.yaml"
    cluster.write_text(CLUSTER)
    fits = write_trace({}, name="fits.parquet")
    assert harness("trace", "check", fits, "--cluster", cluster)[1].endswith(f"fits {cluster}\n")
    queues = tmp_path / "q.yaml"
    queues.write_text("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n")
    code, _, err = harness("trace", "check", fits, "--cluster", queues)
    assert (code, "Hint: --tenants map:FILE" in err) == (2, True)
    large = write_trace({"pods": 3}, name="large.parquet")
    code, _, err = harness("trace", "check", large, "--cluster", cluster)
    assert code == 2
    assert "request.cpu: 3000 millicores for the whole job is more than the cluster's 2000 millicores" in err
    faulty = write_trace({"priority_class": "gold", "duration": -1}, name="faulty.parquet")
    code, _, err = harness("trace", "check", faulty, "--cluster", cluster)
    assert code == 2
    assert len(err.splitlines()) == 3
    assert "Hint: docs/traces.md" in err
    assert "'gold' is not a priority class of the cluster" in err


def test_check_tells_what_was_left_out(harness: Harness, tmp_path: Path) -> None:
    """On stderr, because the answer is that there are no faults."""
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    code, out, err = harness("trace", "check", path, "--set", "cancelled=drop")
    assert (code, out) == (0, f"{path}: no faults; 2 jobs, 1 queue\n")
    assert err == "left out: 1 cancelled (status 5)\n"


def test_info_shows_the_figures(harness: Harness, tmp_path: Path) -> None:
    """Tables for people; what the log says of itself and how it was read."""
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    code, out, _ = harness("trace", "info", path, "--set", "tenant=user", "--set", "cancelled=drop")
    assert code == 0
    assert out.startswith(f"{path}: 2 jobs, 0 of them gangs; 1 queue\n")
    assert "submitted from 2001-09-09 01:46:41 UTC to 2001-09-09 01:46:43 UTC (2s)" in out
    assert "left out: 1 cancelled (status 5)" in out
    assert "  the queue is the log's user\n" in out


def test_info_as_json_is_one_document(harness: Harness, write_trace: Callable[..., Path]) -> None:
    """With everything that the tables round or cut."""
    path = write_trace(*({"queue": f"q{number}"} for number in range(30)))
    code, out, _ = harness("trace", "info", path, "--json")
    document = json.loads(out)
    assert code == 0
    assert len(document["tenants"]) == 30
    assert document["resources"]["cpu"]["peak"] == 30_000
    assert document["schema"] == "1"
    assert "… and 10 more queues (all: --json)" in harness("trace", "info", path)[1]


def test_convert_writes_parquet_and_says_what_it_did(harness: Harness, tmp_path: Path) -> None:
    """Conventions and what was left out, which the file keeps."""
    source, target = tmp_path / "log.swf", tmp_path / "log.parquet"
    source.write_text(SWF)
    code, out, err = harness("trace", "convert", source, target, "--set", "cancelled=drop")
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        f"3 records read, 2 rows written to {target}",
        "  left out: 1 cancelled (status 5)",
        "  a job is one pod that requests all its processors",
    ]
    assert "  left out: 1 cancelled (status 5)\n" in harness("trace", "info", target)[1]


def test_convert_never_overwrites_the_trace_it_reads(
    harness: Harness, write_trace: Callable[..., Path]
) -> None:
    """Nor does a failing conversion leave anything behind."""
    path = write_trace({})
    before = path.read_bytes()
    code, out, err = harness("trace", "convert", path, path)
    assert (code, out) == (2, "")
    assert f"{path} is the trace itself" in err
    assert path.read_bytes() == before


def test_a_faulty_trace_is_not_converted(harness: Harness, write_trace: Callable[..., Path]) -> None:
    """Exit code 2, no file."""
    path = write_trace({"pods": 0})
    target = path.with_name("out.parquet")
    code, _, err = harness("trace", "convert", path, target)
    assert code == 2
    assert "pods: 0 must be at least 1" in err
    assert not target.exists()


@pytest.mark.parametrize("command", ["check", "info"])
def test_mistakes_are_messages(harness: Harness, tmp_path: Path, command: str) -> None:
    """A missing file, an unknown reader, and settings that are none."""
    code, _, err = harness("trace", command, tmp_path / "none.swf")
    assert (code, err) == (2, f"Error: {tmp_path / 'none.swf'}: there is no such file\n")
    path = tmp_path / "log.swf"
    path.write_text(SWF)
    code, _, err = harness("trace", command, path, "--reader", "sfw")
    assert code == 2
    assert "Hint: did you mean 'swf'?" in err
    code, _, err = harness("trace", command, path, "--set", "tenant")
    assert code == 2
    assert "--set tenant: the sign '=' is missing" in err
    code, _, err = harness("trace", command, path, "--set", "tenant=me")
    assert code == 2
    assert "'me' is not one of queue, user, group" in err


def test_names_cannot_steer_the_terminal(harness: Harness, write_trace: Callable[..., Path]) -> None:
    """Control characters of a trace's texts are replaced where they are shown."""
    out = harness("trace", "info", write_trace({"queue": "\x1b[31mred"}))[1]
    assert "\x1b" not in out
    assert "[31mred" in out


def test_the_examples_of_the_help_are_commands_of_ours(harness: Harness) -> None:
    """Each help opens with a sentence and ends with two examples."""
    for args in ((), ("check",), ("info",), ("convert",)):
        code, out, _ = harness("trace", *args, "--help")
        examples = [line.strip() for line in out.split("Examples:")[1].splitlines() if line.strip()]
        assert code == 0
        assert len(examples) == 2
        assert all(example.startswith(" ".join(("harness trace", *args))) for example in examples)
