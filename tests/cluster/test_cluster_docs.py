"""The page about clusters names all that is read and all that is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cluster.coverage.not_read import NOT_READ
from harness.cluster.coverage.pods import POD
from harness.cluster.coverage.verdicts import Verdict
from harness.cluster.kinds.table import KINDS
from harness.cluster.load import load_cluster

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def indented_after(mark: str) -> str:
    """The first indented block after a line that begins with a mark, without its indentation."""
    lines = PAGE.read_text(encoding="utf-8").split(f"\n{mark}", 1)[1].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("    "))
    stop = next(
        number
        for number in range(start, len(lines) + 1)
        if not lines[number : number + 1] or lines[number][:1].strip()
    )
    return "\n".join(line[4:] for line in lines[start:stop]) + "\n"


@pytest.mark.parametrize(("group", "kind"), sorted(KINDS))
def test_page_names_every_kind(group: str, kind: str) -> None:
    """With its versions."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    named = f"`{group}/" if group else "`v1`"
    row = next(line for line in lines if line.startswith(f"| {kind} |") and named in line)
    assert all(version in row for version in KINDS[group, kind].versions)


def assumed_lines() -> list[str]:
    """The page's table of all that is not modelled, as what is said of fields has it.

    Of a Workload's pods it leaves out what is assumed of Pods, and points of the scheduler become one.
    """
    cells: dict[tuple[str, str], dict[str, None]] = {}
    for (_, kind), known in KINDS.items():
        for row in known.coverage.rows:
            path = re.sub(r"^spec.podSets\[\].template.(spec.)", r"\1", row.path)
            in_pods = path != row.path and (path, row.why) in {(each.path, each.why) for each in POD.rows}
            if row.verdict is Verdict.ASSUMED and not in_pods:
                path = re.sub(r"(plugins)\.\w+\.(\w+)", r"\1.*.\2", row.path)
                cells.setdefault((kind, row.why), {})[f"`{re.sub('[{}]', '.', path).strip('.')}`"] = None
    shared: dict[tuple[str, str], list[str]] = {}
    for (kind, why), paths in cells.items():
        for cell in short_cells([path.replace("..", ".") for path in paths]):
            shared.setdefault((cell, why), []).append(kind)
    for (group, kind), why in NOT_READ.items():
        shared[f"all of {kind} ({group or 'v1'})", why] = [kind]
    return sorted(
        f"  | {some} | {paths} | {why} |"
        for (paths, why), kinds in shared.items()
        for some in short_cells(kinds)
    )


def short_cells(texts: list[str]) -> list[str]:
    """Texts joined by commas, in as many cells as it takes for none to be above 200 characters."""
    cells = texts[:1]
    for text in texts[1:]:
        joined = f"{cells[-1]}, {text}"
        cells[-1:] = [joined] if len(joined) <= 200 else [cells[-1], text]
    return cells


def test_page_says_what_is_assumed_of_every_field_that_is_not_modelled() -> None:
    """With the words of the warnings."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index("  | kind | field | assumed |") + 2
    found = lines[first : first + len(assumed_lines()) + 1]
    assert found == [*assumed_lines(), ""], "\n".join(assumed_lines())


def test_page_node_pool_is_what_the_page_says(tmp_path: Path) -> None:
    """The example is read, and its nodes have the names that the text gives."""
    path = tmp_path / "pool.yaml"
    path.write_text(indented_after("### NodePool"))
    names = list(load_cluster(path).nodes)
    assert (names[0], names[-1]) == ("gpu-00", "gpu-79")


def test_page_code_saves_an_assumed_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code on the page runs, and what it writes is read back."""
    monkeypatch.chdir(tmp_path)
    exec(compile(indented_after("harness prints the assumed cluster"), str(PAGE), "exec"), {})
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.cluster.yaml"]
    assert list(load_cluster(tmp_path / "jobs.cluster.yaml").cluster_queues) == ["a", "b"]
