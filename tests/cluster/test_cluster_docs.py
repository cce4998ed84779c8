"""The page about clusters names all that is read and all that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster.kinds import KINDS
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
def test_page_names_every_kind_and_what_is_assumed(group: str, kind: str) -> None:
    """A kind, its versions, and each field that is only warned about, with the words of the warning."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    known = KINDS[group, kind]
    row = next(line for line in lines if line.startswith(f"| {kind} |"))
    assert all(version in row for version in known.versions)
    for field, effect in known.unmodelled.items():
        assert any(
            line.strip().startswith(f"| {kind} |") and f"`{field}`" in line and effect in line
            for line in lines
        )


def test_page_node_pool_is_what_the_page_says(tmp_path: Path) -> None:
    """The example is read, and its nodes have the names that the text gives."""
    path = tmp_path / "pool.yaml"
    path.write_text(indented_after("### NodePool"))
    names = list(load_cluster(path).nodes)
    assert (names[0], names[-1]) == ("gpu-00", "gpu-79")


def test_page_code_saves_an_assumed_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code on the page runs, and what it writes is read back."""
    monkeypatch.chdir(tmp_path)
    exec(compile(indented_after("All of it is printed"), str(PAGE), "exec"), {})
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.cluster.yaml"]
    assert list(load_cluster(tmp_path / "jobs.cluster.yaml").cluster_queues) == ["a", "b"]
