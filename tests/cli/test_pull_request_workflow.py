"""The workflow for pull requests in docs/examples: what it runs, run on a small repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from cli_environment import LONG, clean_environment
from small_clusters import queues

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / "docs" / "examples" / "pull-request.yml").read_text())
JOB = WORKFLOW["jobs"]["what-if"]
GH = """\
#!/usr/bin/env bash
case " $* " in *" --edit-last "*) exit 1;; esac  # no comment yet
echo "$@" >> gh.txt
"""

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


class Ended(NamedTuple):
    """How the workflow ended: the exit code of each step, its summary, what `gh` heard, and the comment."""

    codes: dict[str, int]
    summary: str
    told: str
    comment: str


@pytest.fixture
def pull_request(tmp_path: Path, write_trace: Callable[..., Path]) -> Callable[[str, str], Ended]:
    """Runs the workflow's commands, one step after the other, for manifests of a base and of a head."""
    repository = tmp_path / "repository"
    (repository / "manifests").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    jobs = ({"submit_time": each, "queue": "ab"[each % 2], "request.nvidia.com/gpu": 1} for each in range(8))
    shutil.copy(write_trace(*jobs), repository / "jobs.parquet")
    environment = clean_environment()
    environment |= {name: str(value) for name, value in WORKFLOW["env"].items()}
    environment |= {name: str(value) for name, value in JOB["env"].items()}
    environment |= {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}", "NUMBER": "7"}
    (tmp_path / "step").touch()
    environment |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "step"), "GITHUB_ENV": str(tmp_path / "more")}
    environment |= {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "a/b"}
    environment |= {"GITHUB_RUN_ID": "9"}

    def bash(script: str, *, check: bool) -> subprocess.CompletedProcess[str]:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            command,
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=LONG,
        )

    def commit(text: str) -> str:
        (repository / "manifests" / "queues.yaml").write_text(text)
        who = "-c user.name=a -c user.email=a@example.org"
        bash(f"git init -q && git add manifests && git {who} commit -qm x", check=True)
        return bash("git rev-parse HEAD", check=True).stdout.strip()

    def run(base: str, head: str) -> Ended:
        environment["BASE"] = commit(base)
        commit(head)
        codes = {}
        for step in JOB["steps"]:
            if "run" not in step or step["name"] == "Install":
                continue
            codes[step["name"]] = bash(step["run"], check=False).returncode
            more = tmp_path / "more"
            for line in more.read_text().splitlines() if more.exists() else ():
                name, _, value = line.partition("=")
                environment[name] = value
            if codes[step["name"]] and not step.get("continue-on-error"):
                break
        summary = (tmp_path / "step").read_text()
        told, comment = (
            each.read_text() if each.exists() else ""
            for each in map(repository.joinpath, ("gh.txt", "comment.md"))
        )
        return Ended(codes, summary, told, comment)

    return run


def manifests(gpus: int) -> str:
    """Two queues of one cohort."""
    return queues({each: {"cpu": "8", "nvidia.com/gpu": str(gpus)} for each in "ab"})


@pytest.mark.nightly
def test_a_pull_request_that_changes_manifests_is_compared_with_its_base(pull_request: Callable) -> None:
    """The summary and the comment say what differs and what it does; all steps end well."""
    ended = pull_request(manifests(1), manifests(3))
    assert ended.codes == dict.fromkeys(
        ("Manifests of the base", "Replay", "Compare", "Comment", "Bounds"), 0
    )
    assert ended.summary.startswith("### What if: `manifests` of this pull request against its base\n")
    assert "ClusterQueue a, b: nominalQuota nvidia.com/gpu 1 -&gt; 3" in ended.summary
    assert "| wait.first\\_start.p95 | " in ended.summary
    assert ended.told == "pr comment 7 --body-file comment.md\n"
    lines = ended.comment.splitlines()
    assert len(lines) <= 25
    assert lines[0] == "### What if: `manifests` of this pull request against its base"
    assert "by 95 % intervals over twins: none fails" in lines[2]
    assert "  - ClusterQueue a, b: nominalQuota nvidia.com/gpu 1 -&gt; 3" in lines
    assert any(line.startswith("| wait.first\\_start.p95 | ") for line in lines)
    assert lines[-1] == "[The whole comparison](https://github.example/a/b/actions/runs/9)"
    assert len(ended.summary.splitlines()) > len(lines)


def test_a_pull_request_that_breaks_a_bound_fails_after_it_was_said(pull_request: Callable) -> None:
    """The comparison, the broken bound, and warnings of the head alone are in the comment all the same."""
    odd = "---\n{kind: Odd, apiVersion: x/v1, metadata: {name: a}}\n"
    ended = pull_request(manifests(3), manifests(1) + odd)
    assert ended.codes.pop("Bounds") == 1
    assert set(ended.codes.values()) == {0}
    assert "- fails: wait.first\\_start.p95 &gt; +5%" in ended.comment
    assert "- fails: wait.first\\_start.p95 &gt; +5%" in ended.summary
    (line,) = [each for each in ended.comment.splitlines() if each.startswith("<details>")]
    assert line == (
        "<details><summary>1 warning of the replays</summary><ul>"
        "<li>fairsharing@<!-- -->head: Odd (x/v1): 1 object is not read</li></ul></details>"
    )
    assert len(ended.comment.splitlines()) <= 25
    assert ended.told


def test_faulty_manifests_end_the_workflow_where_they_are_read(pull_request: Callable) -> None:
    """Nothing is posted that was not measured."""
    ended = pull_request(manifests(1), manifests(1).replace("nominalQuota", "nominalQouta"))
    assert ended.codes == {"Manifests of the base": 0, "Replay": 2}
    assert ended.told == ""


def test_the_workflow_is_one_that_github_reads() -> None:
    """It starts on pull requests that change the manifests, may comment, and every step does one thing."""
    started = WORKFLOW[True]["pull_request"]  # `on`, which YAML 1.1 takes for true
    assert started["paths"] == [f"{WORKFLOW['env']['MANIFESTS']}/**"]
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert all(("run" in step) != ("uses" in step) for step in JOB["steps"])
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in JOB["steps"] if "uses" in step)
    assert '"$HARNESS"' in next(step["run"] for step in JOB["steps"] if step.get("name") == "Install")
    expressions = re.findall(r"\$\{\{.*?\}\}", "".join(step.get("run", "") for step in JOB["steps"]))
    assert not expressions, "what a pull request says must not become part of a script"
