"""Writes the table of docs/forecast.md that shows how well forecasts of bundled traces held.

    python scripts/forecasts.py FOLDER [--write]

The script replays each trace on its cluster without nodes, makes forecasts at times in the second half, and
compares them with the actual starts. This takes about half an hour on one core. FOLDER keeps the forecasts of
each moment, so an interrupted script continues from there. `--write` puts the table into the page.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import click

from harness.base.units import format_duration
from harness.plugins import load
from harness.studies.forecasting.from_files import Asked
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.past import moments_to_judge
from harness.studies.forecasting.scores import Coverage, coverage

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "forecast.md"
HEAD = (
    "| trace | forecast | starts with an interval | starts within it | mean over moments | interval score "
    "| pinball loss | p50 off by | earlier |"
)
NAMES = ("futures", "calibrated", "mean wait of the week", "quantile regression")
MOMENTS = 200
"""The number of judged moments per trace. A quarter as many earlier moments are added."""


class World(NamedTuple):
    """A trace for which forecasts are judged.

    Attributes:
        name: the name of the trace.
        futures: the number of futures at each moment.
        horizon: the horizon of the futures.
        before: the cell with the share of starts within intervals before calibration.
    """

    name: str
    futures: int
    horizon: str
    before: str


WORLDS = (
    World("hpc2n", 9, "7d", "45.9 %"),
    World("philly", 3, "7d", "71.3 %"),
    World("month", 3, "2d", "17.2 % (mix)"),
)


def carried_out(folder: Path, *args: str) -> str:
    """Returns the output of a command of harness in a folder."""
    command = [sys.executable, "-m", "harness", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S603


def month(folder: Path) -> tuple[Path, Path]:
    """Returns a month like mix and a cluster that is 80 % full. Existing files are used again."""
    trace, cluster = folder / "month.parquet", folder / "month.cluster.yaml"
    if not cluster.exists():
        specification = (ROOT / "traces" / "mix.yaml").read_text().replace("span: 14d", "span: 42d")
        (folder / "month.yaml").write_text(specification)
        carried_out(folder, "trace", "generate", "month.yaml", "-o", trace.name, "--seed", "11")
        sized = ("--target-load", "0.8", "--node-pool", "-o", cluster.name)
        carried_out(folder, "cluster", "init", trace.name, *sized)
    return trace, cluster


def made(folder: Path, name: str) -> tuple[Path, Path]:
    """Returns a trace, and its cluster without nodes."""
    trace, cluster = ROOT / "traces" / f"{name}.parquet", ROOT / "traces" / f"{name}.cluster.yaml"
    if name == "month":
        trace, cluster = month(folder)
    documents = cluster.read_text().split("\n---\n")
    without = folder / f"{name}-without-nodes.yaml"
    without.write_text("\n---\n".join(each for each in documents if "kind: NodePool" not in each))
    return trace, without


def held(folder: Path, world: World) -> Coverage:
    """Returns how accurate the forecasts for a trace were."""
    trace, cluster = made(folder, world.name)
    runs = folder / f"runs-{world.name}"
    if not list(runs.rglob("run.json")):
        about = ("--cluster", str(cluster), "-p", "kueue-classic")
        carried_out(folder, "replay", str(trace), *about, "-o", runs.name, "-q")
    (run,) = runs.rglob("run.json")
    asked = Asked(cluster, run.parent, plugin="kueue-classic", futures=world.futures, horizon=world.horizon)
    backtest = asked.backtest(load())
    drawn, half = moments_to_judge(backtest, MOMENTS)
    file = folder / f"{world.name}.jsonl"
    there = known(file)
    with file.open("a") as lines:
        for moment in drawn:
            if moment not in there:
                there[moment] = backtest.judged(moment)
                print(json.dumps([moment, there[moment]]), file=lines, flush=True)
    judged = sorted(each for moment in drawn for each in there[moment])
    return coverage(judged, backtest.settings.horizon, half.begin)


def known(file: Path) -> dict[int, list[Judged]]:
    """Returns the stored forecasts of each moment, after removing a line that was only partly written."""
    found = {}
    text = file.read_text() if file.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole)
    for line in whole.splitlines():
        moment, several = json.loads(line)
        found[moment] = [
            Judged(at, job, tuple(starts), truth, queue, tuple(week), tuple(regression))
            for at, job, starts, truth, queue, week, regression in several
        ]
    return found


def rows(world: World, found: Coverage) -> list[str]:
    """Returns the rows of a trace, one for each kind of forecast of the same starts."""
    forecasts = {NAMES[0]: found, **found.others}
    label = f"{world.name}, {found.moments:,} moments, {found.starts:,} starts"
    lines = []
    for name in NAMES:
        each = forecasts[name]
        score, loss = (format_duration(round(time)) for time in (each.interval_score, each.pinball))
        shares = [f"{100 * share:.1f} %" for share in (each.printed, each.covered, each.by_moment)]
        before = world.before if name == NAMES[0] else ""
        cells = [label, name, *shares, score, loss, f"{each.factor:.1f} x", before]
        lines.append(f"| {' | '.join(cells)} |")
        label = ""
    return lines


def table(found: Mapping[str, Coverage]) -> str:
    """Returns the table of the page, for the judged traces."""
    lines = [HEAD, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for world in WORLDS:
        if world.name in found:
            lines += rows(world, found[world.name])
    return "\n".join(lines)


def put(page: str, made_table: str) -> str:
    """Returns the page with this table instead of the table with the same header."""
    before, _, after = page.partition(HEAD)
    _, _, rest = after.partition("\n\n")
    return f"{before}{made_table}\n\n{rest}"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--write", is_flag=True, help="Put the table into docs/forecast.md.")
def main(folder: Path, write: bool) -> None:
    """Compute the table in FOLDER, or continue an interrupted computation."""
    folder.mkdir(parents=True, exist_ok=True)
    made_table = table({world.name: held(folder.resolve(), world) for world in WORLDS})
    click.echo(made_table)
    if write:
        PAGE.write_text(put(PAGE.read_text(), made_table))


if __name__ == "__main__":
    main()
