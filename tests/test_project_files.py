"""The files around the code: workflows, templates, citation, container; valid, naming what is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLE = ROOT / "docs" / "examples" / "pull-request.yml"
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
MOST_BYTES = 700_000_000


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", [*WORKFLOWS, EXAMPLE]),
        ("github-issue-forms", sorted(each for each in TEMPLATES.glob("*.yml") if each.stem != "config")),
        ("github-issue-config", [TEMPLATES / "config.yml"]),
        ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_a_file_is_as_its_schema_says(schema: str, files: list[Path]) -> None:
    """By the schemas that check-jsonschema brings, without a network."""
    tool = pytest.importorskip("check_jsonschema", reason="no check-jsonschema: pip install -e '.[test]'")
    words = ["--builtin-schema", f"vendor.{schema}", *map(str, files)]
    ended = CliRunner().invoke(tool.main, words)
    assert ended.exit_code == 0, ended.output
    assert files


def test_workflows_pass_actionlint() -> None:
    """Where it is installed: PyPI's package of it fetches a program from elsewhere."""
    if shutil.which("actionlint") is None:
        pytest.skip("there is no actionlint on the PATH; workflows were checked by their schema only")
    files = [str(path) for path in (*WORKFLOWS, EXAMPLE)]
    ran = subprocess.run(["actionlint", *files], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Every step of every workflow, with the workflow's name."""
    found = []
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            found += [(path.name, step) for step in job["steps"]]
    return found


def test_workflows_only_call_scripts_that_are_here() -> None:
    """A step is an action, or a script of the repository, which anybody can run."""
    called = [(name, step["run"]) for name, step in steps() if "run" in step]
    for name, line in called:
        found = re.fullmatch(r"bash (scripts/ci/\w+\.sh)( .+)?", line)
        assert found, f"{name}: {line}"
        assert (ROOT / found[1]).is_file(), f"{name}: {line}"
    assert {line.split()[1].split("/")[-1] for _, line in called} == {
        path.name for path in (ROOT / "scripts" / "ci").iterdir()
    }


def test_scripts_are_shell() -> None:
    """They parse, stop at the first failure, and can be run."""
    for path in (*(ROOT / "scripts" / "ci").iterdir(), *(ROOT / "scripts").glob("*.sh")):
        shell = "sh" if path.name == "container.sh" else "bash"
        subprocess.run([shell, "-n", str(path)], check=True)
        assert "\nset -eu" in path.read_text(encoding="utf-8")


def test_pythons_are_those_of_the_workflow() -> None:
    """What is said to be supported is tested, from the lowest one on, on Linux and macOS."""
    (workflow,) = (path for path in WORKFLOWS if path.name == "tests.yml")
    matrix = yaml.safe_load(workflow.read_text())["jobs"]["wheel"]["strategy"]["matrix"]
    named = [found[1] for each in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", each))]
    assert named == matrix["python"]
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos"]


def test_one_version_everywhere() -> None:
    """In pyproject.toml, in CITATION.cff, and on top of the changelog."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["version"] == PROJECT["version"]
    assert re.search(r"^## (\S+) - ", changelog, re.MULTILINE)[1] == PROJECT["version"]  # type: ignore[index]
    authors = [each["name"] for each in PROJECT["authors"]]
    assert [each["name"] for each in citation["authors"]] == authors
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert archived["version"] == PROJECT["version"]
    assert archived["license"] == PROJECT["license"]
    assert [each["name"] for each in archived["creators"]] == authors


def test_actions_are_pinned() -> None:
    """By the hash of a commit, which nobody can move, with the version that it is beside it."""
    for path in WORKFLOWS:
        for line in path.read_text(encoding="utf-8").splitlines():
            if "uses:" in line:
                assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), (
                    f"{path.name}: {line}"
                )


def test_the_paper_cites_what_its_bibliography_has() -> None:
    """Each entry once or more, and nothing else; its authors are the project's."""
    paper = (ROOT / "paper.md").read_text(encoding="utf-8")
    _, head, text = paper.split("---\n", 2)
    assert [each["name"] for each in yaml.safe_load(head)["authors"]] == [
        each["name"] for each in PROJECT["authors"]
    ]
    known = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", text)) == set(known)


def test_the_changelog_tells_its_kinds_apart() -> None:
    """Each kind once in a version."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert len(kinds) == len(set(kinds))
        known = ("Changed", "Added", "Deprecated", "Removed", "Fixed", "Security", "Performance")
        assert set(kinds) <= set(known)
        entries = re.split(r"^(?=- )", version, flags=re.MULTILINE)[1:]
        assert len(entries) == len(set(entries)), "an entry stands there twice"


@pytest.mark.parametrize(
    ("tag", "fault"),
    [("v9.9.9", "the tag is v9.9.9"), ("", "the tag"), (f"v{PROJECT['version']}", "has no heading")],
)
def test_a_tag_that_does_not_fit_is_no_release(tag: str, fault: str) -> None:
    """Nothing is published under a version that nothing else has, or before the changelog is dated."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## {re.escape(PROJECT['version'])} - \d", changelog, re.MULTILINE)
    arguments = [tag] if tag else []
    script = ROOT / "scripts" / "ci" / "release.sh"
    ran = subprocess.run(["bash", str(script), *arguments], capture_output=True, text=True, check=False)
    if dated and tag == f"v{PROJECT['version']}":
        assert ran.returncode == 0, ran.stderr
    else:
        assert ran.returncode == 1
        assert fault in ran.stderr


def test_the_lint_script_takes_no_plugins_away_from_tests_that_run(tmp_path: Path) -> None:
    """Whoever loads plugins while pip replaces the installation finds none. It is replaced only if needed."""
    for folder in ("scripts", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    script = shutil.copy(ROOT / "scripts" / "environment.sh", tmp_path / "scripts")
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@" >> "$0.log"\n', encoding="utf-8")
    python.chmod(0o755)
    project = tmp_path / "pyproject.toml"
    for extra, changed in (("dev", 1), ("dev", 1), ("docs", 1), ("dev", 4_000_000_000)):
        project.touch()
        os.utime(project, (changed, changed))
        subprocess.run(["bash", str(script), extra], check=True)
    log = (tmp_path / ".venv" / "bin" / "python.log").read_text(encoding="utf-8")
    assert re.findall(r"install -q -e \.\[(\w+)\]", log) == ["dev", "docs", "dev"]


def test_hooks_before_a_commit_are_those_of_the_lint_script() -> None:
    """With the same tools, from the same place."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    entries = [hook["entry"] for repository in hooks for hook in repository["hooks"]]
    lint = (ROOT / "scripts" / "ci" / "lint.sh").read_text(encoding="utf-8")
    commands = re.findall(r"^\.venv/bin/(?!python)(.+)$", lint, re.MULTILINE)
    assert [command.removesuffix(" .") for command in commands] == entries


def test_the_container_only_runs_its_script_and_not_as_root() -> None:
    """What the image has beyond its base is what a test can look at in a folder."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    said = [line for line in lines if line and not line.startswith("#")]
    runs = [line for line in said if line.startswith("RUN ")]
    assert runs == ["RUN sh /tmp/container.sh /tmp/*.whl /opt/harness && rm /tmp/*.whl /tmp/container.sh"]
    (user,) = (line.removeprefix("USER ") for line in said if line.startswith("USER "))
    assert int(user.split(":")[0]) > 0
    assert said.index(f"USER {user}") > said.index(runs[0])
    assert "We have not built this image" in " ".join(lines)


@pytest.mark.slow
def test_the_container_is_small_and_works(tmp_path: Path) -> None:
    """Its script, in an empty folder, with a wheel of this checkout; needs an index of packages."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    shutil.copy(ROOT / "scripts" / "container.sh", tmp_path)
    place, empty = tmp_path / "image", tmp_path / "empty"
    empty.mkdir()
    subprocess.run(["sh", str(tmp_path / "container.sh"), str(wheel), str(place)], check=True, cwd=empty)
    size = sum(path.lstat().st_size for path in place.rglob("*") if not path.is_dir() or path.is_symlink())
    assert size <= MOST_BYTES, f"{size:,} bytes"
    plain = {"PATH": os.environ["PATH"], "HOME": str(empty)}
    command = place / "bin" / "harness"
    subprocess.run([command, "demo", "--until", "1h"], check=True, cwd=empty, env=plain)
    (run,) = (empty / "results" / "mix").glob("none-*")
    subprocess.run([command, "report", run, "-o", "page.html"], check=True, cwd=empty, env=plain)
    assert (empty / "page.html").stat().st_size > 10_000


def test_what_is_installed_answers_the_smoke_tests(tmp_path: Path) -> None:
    """`pytest --pyargs harness.testing.smoke` finds them, without this checkout's settings."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    command += ["--pyargs", "harness.testing.smoke"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "test_replays_are_what_could_be" in ran.stdout
