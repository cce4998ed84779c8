"""One value has one name, unit, rounding and window, wherever it is told: tables, files, documentation."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import harness
from harness.comparison.figures import digits_of, name_of, shown
from harness.comparison.headlines import ALARMS, BRIEF, SHOWN

ROOT = Path(__file__).parents[2]
TRACES = sorted(path.stem for path in (ROOT / "traces").glob("*.parquet"))
UNITS = re.compile(r"`([^`]+)`")


@pytest.fixture(scope="module", params=TRACES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """The first day of a bundled trace, on the cluster that is bundled with it."""
    folder = ROOT / "traces"
    cluster, output = folder / f"{request.param}.cluster.yaml", tmp_path_factory.mktemp("runs")
    return harness.replay(
        folder / f"{request.param}.parquet", plugin="none", cluster=cluster, output=output, until="1d"
    )


def test_files_tables_and_documentation_agree(run: harness.Run) -> None:
    """In names, units and values; the table's row is what the file's value reads at a glance."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    units = set(UNITS.findall(page.partition("\nUnits: ")[2].partition("\n\n")[0]))
    of_file = {(row["metric"], row["scope"], row["resource"]): row for row in run.metrics.to_dicts()}
    on_disk = pl.read_parquet(run.path / "metrics.parquet")
    assert on_disk.equals(run.metrics.select(on_disk.columns))
    assert {row["unit"] for row in of_file.values()} <= units | {"jobs/h"}
    assert run.info["metrics"] == [row for row in on_disk.to_dicts() if row["scope"] == "all"]
    comparison = harness.compare([run])
    assert list(comparison.runs[0].window) == run.info["window"]
    for brief, of_table in ((True, (*BRIEF, *ALARMS)), (False, SHOWN)):
        lines = comparison.table(brief=brief).split("\n")
        for row in comparison.rows():
            measured, (value,) = row.measured, row.values
            known = of_file[measured.metric, measured.scope, measured.resource]
            assert (measured.unit, value, row.is_least(0)) == (
                known["unit"],
                known["value"],
                bool(known["at_least"]),
            )
            listed = [line for line in lines if re.match(rf"{re.escape(name_of(measured))}  ", line)]
            if measured.metric not in of_table:
                assert not listed
            for line in listed:
                text = shown(value, measured.unit, digits_of(value), at_least=row.is_least(0))
                assert line.split("  ", 1)[1].strip() == text
    for kind in ("core·h", "GiB·h", "device·h"):
        for row in of_file.values():
            if row["unit"] == kind:
                own = {"cpu": "core·h", "memory": "GiB·h", "ephemeral-storage": "GiB·h"}
                assert own.get(row["resource"], "device·h") == kind
