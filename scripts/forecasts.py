"""Writes the table of docs/forecast.md that says how forecasts of bundled traces held.

    python scripts/forecasts.py FOLDER [--write]

replays each trace on its cluster without nodes, forecasts at moments of its second half and compares with
what came: about half an hour of a core. `--write` puts the table into the page.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from harness.base.units import SECOND, format_duration

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "forecast.md"
HEAD = (
    "| trace | forecast | with interval | of starts within | mean over moments | interval score "
    "| pinball loss | p50 off by | was within |"
)
NAMES = ("futures", "calibrated", "mean wait of the week", "quantile regression")


class World(NamedTuple):
    """What is judged.

    Attributes:
        name: of the trace.
        args: of `harness forecast`.
        before: which share of the starts lay within before intervals were calibrated, as a cell.
    """

    name: str
    args: tuple[str, ...]
    before: str


WORLDS = (
    World("hpc2n", ("--backtest", "200", "--futures", "9"), "45.9 %"),
    World("philly", ("--backtest", "200", "--futures", "3"), "71.3 %"),
    World("month", ("--backtest", "200", "--futures", "3", "--horizon", "2d"), "17.2 % (mix)"),
)


def carried_out(folder: Path, *args: str) -> str:
    """What a command of harness prints in a folder."""
    command = [sys.executable, "-m", "harness", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S603


def made(folder: Path, name: str) -> tuple[Path, Path]:
    """A trace, and its cluster without nodes; the month is of mix's kind, on a cluster that is 80 % full."""
    trace, cluster = ROOT / "traces" / f"{name}.parquet", ROOT / "traces" / f"{name}.cluster.yaml"
    if name == "month":
        trace, cluster = folder / "month.parquet", folder / "month.cluster.yaml"
        specification = (ROOT / "traces" / "mix.yaml").read_text().replace("span: 14d", "span: 42d")
        (folder / "month.yaml").write_text(specification)
        carried_out(folder, "trace", "generate", "month.yaml", "-o", trace.name, "--seed", "11")
        sized = ("--target-load", "0.8", "--node-pool", "-o", cluster.name)
        carried_out(folder, "cluster", "init", trace.name, *sized)
    documents = cluster.read_text().split("\n---\n")
    without = folder / f"{name}-without-nodes.yaml"
    without.write_text("\n---\n".join(each for each in documents if "kind: NodePool" not in each))
    return trace, without


def held(folder: Path, world: World) -> Mapping[str, Any]:
    """How forecasts of a trace held, as `--json` has it."""
    file = folder / f"{world.name}.json"
    if not file.exists():
        trace, cluster = made(folder, world.name)
        about = ("--cluster", str(cluster), "-p", "kueue-classic")
        carried_out(folder, "replay", str(trace), *about, "-o", f"runs-{world.name}", "-q")
        (run,) = (folder / f"runs-{world.name}").rglob("run.json")
        past = ("--history", str(run.parent), "--workers", "1", "--json")
        file.write_text(carried_out(folder, "forecast", *about, *past, *world.args))
    found: Mapping[str, Any] = json.loads(file.read_text())
    return found


def rows(world: World, found: Mapping[str, Any]) -> list[str]:
    """The rows of a trace: one for each forecast of the same starts."""
    forecasts = {NAMES[0]: found, **found["others"]}
    label = f"{world.name}, {found['moments']:,} moments, {found['starts']:,} starts"
    lines = []
    for name in NAMES:
        each = forecasts[name]
        score, loss = (
            format_duration(round(each[f"{key}_seconds"] * SECOND)) for key in ("interval_score", "pinball")
        )
        shares = [f"{100 * each[key]:.1f} %" for key in ("printed", "covered", "by_moment")]
        before = world.before if name == NAMES[0] else ""
        cells = [label, name, *shares, score, loss, f"{2.718281828 ** each['log_error']:.1f} x", before]
        lines.append(f"| {' | '.join(cells)} |")
        label = ""
    return lines


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of the page, of the traces that were judged."""
    lines = [HEAD, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for world in WORLDS:
        if world.name in found:
            lines += rows(world, found[world.name])
    return "\n".join(lines)


def put(page: str, made_table: str) -> str:
    """The page with this table in the place of the one that has the same head."""
    before, _, after = page.partition(HEAD)
    _, _, rest = after.partition("\n\n")
    return f"{before}{made_table}\n\n{rest}"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--write", is_flag=True, help="Put the table into docs/forecast.md.")
def main(folder: Path, write: bool) -> None:
    """Compute the table in FOLDER, or take what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    made_table = table({world.name: held(folder.resolve(), world) for world in WORLDS})
    click.echo(made_table)
    if write:
        PAGE.write_text(put(PAGE.read_text(), made_table))


if __name__ == "__main__":
    main()
