"""One value has one name, unit, rounding and window, wherever it is told: tables, files, reports, docs."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import polars as pl
import pytest

import harness
from harness.analysis.comparison.figures import digits_of, name_of, shown
from harness.analysis.comparison.headlines import ALARMS, BRIEF, HEADLINES, SHOWN
from harness.base.units import format_duration

ROOT = Path(__file__).parents[2]
TRACES = sorted(path.stem for path in (ROOT / "traces").glob("*.parquet"))
SOME = [
    pytest.param(name, marks=pytest.mark.nightly if name in ("hpc2n", "openb") else ()) for name in TRACES
]
UNITS = re.compile(r"`([^`]+)`")


@pytest.fixture(scope="module", params=SOME)
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
    if count > 1 and runs[0].info["trace"]["name"].startswith("mix"):
        report = harness.make_report(comparison)
        figures = next(each for each in report.chapters if each.name == "metrics")  # charts take long
        pages.append(replace(report, chapters=[figures]).html())
    reported = [_rows(page) for page in pages]
    told = comparison.to_json(changes=False)
    assert told["common_window"] == list(comparison.window or ())
    of_json = {(row["metric"], row["resource"]): row for row in told["metrics"]}
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
            row_of_json = of_json[measured.metric, measured.resource]
            assert (row_of_json["unit"], list(row_of_json["values"].values())) == (measured.unit, row.values)
            assert list(row_of_json["at_least"].values()) == list(row.at_least)
            name = name_of(measured)
            listed = [line for line in lines if re.match(rf"{re.escape(name)}  ", line)]
            if measured.metric not in of_table:
                assert not listed
            elif not brief and measured.metric in HEADLINES:
                assert listed or not any(row.values)
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


@pytest.mark.parametrize("name", SOME)
def test_runs_that_end_apart_have_their_own_windows_in_files_and_one_in_tables(
    name: str, tmp_path: Path
) -> None:
    """Integrals to the earliest end; the table says beside them what files have, in their names and units."""
    pl.read_parquet(ROOT / "traces" / f"{name}.parquet").head(80).write_parquet(tmp_path / "t.parquet")
    cluster = ROOT / "traces" / f"{name}.cluster.yaml"
    runs = [
        harness.replay(
            tmp_path / "t.parquet",
            plugin="none",
            cluster=cluster,
            output=tmp_path,
            startup=startup,
            label=startup,
        )
        for startup in ("1m", "2h")
    ]
    windows = [run.info["window"] for run in runs]
    assert windows[0][1] < windows[1][1]
    comparison = harness.compare(runs)
    start, end = comparison.window or (0, 0)
    assert [start, end] == min(windows) == comparison.to_json(changes=False)["common_window"]
    assert [list(run.window) for run in comparison.runs] == windows
    for place, run in enumerate(runs):
        of_file = {(row["metric"], row["scope"], row["resource"]): row for row in run.metrics.to_dicts()}
        own = comparison.over_own_window(place)
        assert own, "jobs go on waiting to the latest end"
        for each in own.values():
            known = of_file[each.metric, each.scope, each.resource]
            assert (each.value, each.unit) == (known["value"], known["unit"])
            assert each.at_least == known["at_least"]
    capacities = [
        value for each, value in comparison.select("utilization.capacity.hours") if each.resource == "cpu"
    ]
    assert all(len(set(values)) == 1 for values in capacities)
    assert f"cover the first {format_duration(end - start)}, which all runs share" in comparison.table()


def _rows(page: str) -> dict[str, list[list[str]]]:
    """The rows of a report's tables by their first cells; of each further cell its value, without changes."""
    found: dict[str, list[list[str]]] = {}
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        name, *values = (unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in cells)
        found.setdefault(name, []).append(values)
    return found
