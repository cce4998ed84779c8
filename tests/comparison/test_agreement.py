"""One value has one name, unit, rounding and window, wherever it is told: tables, files, reports, docs."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest

import harness
from harness.analysis.comparison.figures import digits_of, name_of, shown
from harness.analysis.comparison.headlines import ALARMS, BRIEF, SHOWN

ROOT = Path(__file__).parents[2]
TRACES = sorted(path.stem for path in (ROOT / "traces").glob("*.parquet"))
UNITS = re.compile(r"`([^`]+)`")


@pytest.fixture(scope="module", params=TRACES)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[harness.Run]:
    """The first day of a bundled trace under three policies, on the cluster that is bundled with it."""
    folder = ROOT / "traces"
    cluster, output = folder / f"{request.param}.cluster.yaml", tmp_path_factory.mktemp("runs")
    trace = folder / f"{request.param}.parquet"
    return [
        harness.replay(trace, plugin=plugin, cluster=cluster, output=output, until="1d")
        for plugin in ("none", "default-preemption", "kueue-classic")
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_files_tables_reports_and_documentation_agree(runs: list[harness.Run], count: int) -> None:
    """In names, units and values; a run's cell of a table is what its file's value reads at a glance."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    units = set(UNITS.findall(page.partition("\nUnits: ")[2].partition("\n\n")[0]))
    of_files = []
    for run in runs[:count]:
        of_file = {(row["metric"], row["scope"], row["resource"]): row for row in run.metrics.to_dicts()}
        on_disk = pl.read_parquet(run.path / "metrics.parquet")
        assert on_disk.equals(run.metrics.select(on_disk.columns))
        assert {row["unit"] for row in of_file.values()} <= units | {"jobs/h"}
        assert run.info["metrics"] == [row for row in on_disk.to_dicts() if row["scope"] == "all"]
        for kind in ("core·h", "GiB·h", "device·h"):
            for row in of_file.values():
                if row["unit"] == kind:
                    own = {"cpu": "core·h", "memory": "GiB·h", "ephemeral-storage": "GiB·h"}
                    assert own.get(row["resource"], "device·h") == kind
        of_files.append(of_file)
    if count > 1 and not runs[0].info["outcome"]["jobs"]:
        pytest.skip("no job arrives on the first day")
    comparison = harness.compare(runs[:count])
    assert [list(run.window) for run in comparison.runs] == [run.info["window"] for run in runs[:count]]
    pages = [comparison._repr_html_()]
    # A report has charts, too, which take long: that of one trace is enough.
    if count > 1 and runs[0].info["trace"]["name"].startswith("mix"):
        pages.append(harness.make_report(comparison).html())
    reported = [_rows(page) for page in pages]
    for brief, of_table in ((True, (*BRIEF, *ALARMS)), (False, SHOWN)):
        lines = comparison.table(brief=brief).split("\n")
        for row in comparison.rows():
            measured, digits = row.measured, digits_of(*row.values)
            texts = []
            for place, (of_file, value) in enumerate(zip(of_files, row.values, strict=True)):
                known = of_file[measured.metric, measured.scope, measured.resource]
                least = row.is_least(place)
                told = (known["unit"], known["value"], bool(known["at_least"]))
                assert (measured.unit, value, least) == told
                texts.append(shown(value, measured.unit, digits, at_least=least))
            name = name_of(measured)
            listed = [line for line in lines if re.match(rf"{re.escape(name)}  ", line)]
            if measured.metric not in of_table:
                assert not listed
            for line in listed:
                cells = re.split(r" {2,}", line.removeprefix(name).strip())
                assert cells[0] == texts[0]
                assert count == 1 or cells[1].startswith(texts[1])
            if listed and not brief:
                # Beside the values of all runs but the baseline stands what changed.
                places = [max(0, 2 * place - 1) for place in range(count)]
                for of_page in reported:
                    wide = (row for row in of_page[name] if len(row) > places[-1])
                    assert texts in ([row[place] for place in places] for row in wide)


def _rows(page: str) -> dict[str, list[list[str]]]:
    """The rows of a report's tables by their first cells; of each further cell its value, without changes."""
    found: dict[str, list[list[str]]] = {}
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        name, *values = (unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in cells)
        found.setdefault(name, []).append(values)
    return found
