"""The page about what a rack costs: its code makes what it says."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.trace.lint import lint
from harness.trace.trace import open_trace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8")


def test_the_code_makes_racks_and_lint_names_the_three_jobs_that_no_rack_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten racks of eight nodes in three blocks, and 289 jobs that ask for one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    block = PAGE.split("\n    from pathlib", 1)[1].split("\n\nThen run", 1)[0]
    code = "\n".join(line[4:] for line in f"    from pathlib{block}".splitlines())
    exec(compile(code, "docs/topology.md", "exec"), {})
    cluster = load_cluster(tmp_path / "racks.yaml")
    assert cluster.warnings == ()
    racks = [(node.labels["block"], node.labels["rack"]) for node in cluster.nodes.values()]
    assert (len(racks), len(set(racks)), len({block for block, _ in racks})) == (80, 10, 3)
    wishes = pl.read_parquet("philly-preferred.parquet")["topology_preferred"]
    assert wishes.drop_nulls().to_list() == ["rack"] * 289
    trace = open_trace(tmp_path / "philly-required.parquet", load(only=["readers"]))
    (says,) = (each.says for each in lint(trace, cluster) if each.check == "no-domain")
    assert says.startswith("3 of 82,247 jobs")
    assert (ROOT / "docs" / PAGE.split("](")[2].split(")")[0]).is_file()
