"""Measures the cost of replays, for docs/speed.md.

    python scripts/speed.py FOLDER [--write]
    python scripts/speed.py FOLDER --against ../before/.venv/bin/python [--pairs 5] [--write]

The script writes traces and runs to FOLDER. Each figure is the CPU time of a whole process (user and system)
with one worker. Without `--against`, the script measures months, which takes some minutes. With `--against`,
this Python and the Python of another checkout carry out each replay in turn, and the table shows the ratio of
their CPU times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click
import marks
import polars as pl

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "speed.md"
NAME = "scripts/speed.py"
HARNESS = ("-P", "-m", "harness")
"""The arguments that run the harness of a Python in any folder. `-P` keeps the folder out of its path."""

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of replays. All replays except the first read bytecode, as users' replays do."""

PLUGINS = ("none", "backfill", "default-preemption", "kueue-classic", "fairsharing", "elasticquota")
"""The measured plugins. `auto` makes the same decisions as `elasticquota`."""

MONTH = ROOT / "docs" / "examples" / "own-amounts.yaml"
GROWTH = ("3d", "9d", "30d")
"""The parts of the month in which about 1,000, 3,000 and 10,000 jobs arrive."""

LOAD = "0.8"
NODE = "nvidia.com/gpu=8,cpu=128,memory=1Ti"

BUNDLED = {
    "Philly, 30 days": ("philly", ("--until", "30d"), ("none", "kueue-classic", "fairsharing")),
    "HPC2N": ("hpc2n", (), ("none", "backfill")),
    "mix": ("mix", (), ("default-preemption", "elasticquota")),
}
"""Maps a label to the name of a trace in `traces/`, options, and plugins."""


class Cost(NamedTuple):
    """The cost of a process, with CPU-seconds and the peak memory in bytes."""

    seconds: float
    memory: int


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Returns the cost of a process that runs in a folder.

    The file `output` in the folder gets its output.
    """
    with (folder / "output").open("w") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), to) for to in (1, 2)]
        child = os.posix_spawn(command[0], list(command), ENVIRONMENT, file_actions=actions)
        _, status, used = os.wait4(child, 0)
    if status:
        raise click.ClickException(f"{' '.join(command)}: see {folder / 'output'}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def replay(python: str, trace: Path, cluster: Path, plugin: str, folder: Path, *more: str) -> Cost:
    """Returns the cost of a replay that does not use a stored run."""
    about = ["--cluster", str(cluster), "-p", plugin, "--workers", "1", "--force", "-q"]
    return cost([python, *HARNESS, "replay", str(trace), *about, "-o", str(folder / "runs"), *more], folder)


def month(folder: Path) -> tuple[Path, Path, Path]:
    """Returns a month with different requests for each job, a month with few requests, and their cluster."""
    own, few, cluster = folder / "own.parquet", folder / "few.parquet", folder / "own.cluster.yaml"
    harness = [sys.executable, *HARNESS]
    cost([*harness, "trace", "generate", str(MONTH), "--seed", "1", "-o", str(own)], folder)
    sized = ("--target-load", LOAD, "--node", NODE, "--node-pool", "-o", str(cluster))
    cost([*harness, "cluster", "init", str(own), *sized], folder)
    amounts = [pl.col(name) for name in ("request.cpu", "request.memory")]
    rounded = [(2.0 ** each.log(2).round()).cast(pl.Int64).alias(each.meta.output_name()) for each in amounts]
    pl.read_parquet(own).with_columns(rounded).write_parquet(few)
    return own, few, cluster


def months(folder: Path) -> Iterator[str]:
    """Yields a row for each plugin, with its cost for a month, and its cost per job as jobs increase."""
    own, few, cluster = month(folder)
    counts = [_jobs(own, span) for span in GROWTH]
    yield (
        f"| plugin | {counts[-1]:,} jobs, CPU-s | MiB | the same with few amounts, CPU-s "
        f"| {' | '.join(f'ms a job, {count:,} jobs' for count in counts)} |"
    )
    yield f"| --- |{' ---: |' * (3 + len(counts))}"
    for plugin in PLUGINS:
        costs = [
            replay(sys.executable, own, cluster, plugin, folder, "--window", f"0d..{span}") for span in GROWTH
        ]
        whole = costs[-1]
        each = " | ".join(f"{1000 * of.seconds / count:.2f}" for of, count in zip(costs, counts, strict=True))
        rounded = replay(sys.executable, few, cluster, plugin, folder)
        yield (
            f"| `{plugin}` | {whole.seconds:.1f} | {whole.memory >> 20:,} | {rounded.seconds:.1f} | {each} |"
        )


def _jobs(trace: Path, span: str) -> int:
    return int((pl.read_parquet(trace)["submit_time"] < timedelta(days=int(span[:-1]))).sum())


def against(python: str, pairs: int, folder: Path) -> Iterator[str]:
    """Yields a row for each bundled replay, with its CPU time and the ratio to that of another checkout."""
    yield "| replay | plugin | CPU-s | ratio, median | least to most |"
    yield "| --- | --- | ---: | ---: | --- |"
    for label, (name, options, plugins) in BUNDLED.items():
        trace = ROOT / "traces" / f"{name}.parquet"
        cluster = trace.with_suffix(".cluster.yaml")
        for plugin in plugins:
            for each in (python, sys.executable):
                replay(each, trace, cluster, plugin, folder, "--until", "1h")  # writes bytecode
            ratios, now = [], []
            for _ in range(pairs):
                before, after = (
                    replay(each, trace, cluster, plugin, folder, *options).seconds
                    for each in (python, sys.executable)
                )
                now.append(after)
                ratios.append(after / before)
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            yield f"| {label} | `{plugin}` | {median(now):.2f} | {median(ratios):.2f} | {spread} |"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--against", "python", type=click.Path(exists=True), help="The Python of another checkout.")
@click.option("--pairs", default=5, show_default=True, help="Pairs of replays for each ratio.")
@click.option("--write", is_flag=True, help="Put the table into docs/speed.md.")
def main(folder: Path, python: str | None, pairs: int, *, write: bool) -> None:
    """Measure the cost, and print a table."""
    folder.mkdir(parents=True, exist_ok=True)
    what, rows = ("months", months(folder)) if python is None else ("ratios", against(python, pairs, folder))
    lines = []
    for line in rows:
        click.echo(line)
        lines.append(line)
    if write:
        marks.write(PAGE, marks.begins(NAME, what), ["", *lines, ""])


if __name__ == "__main__":
    main()
