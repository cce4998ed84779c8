"""Replays parts of bundled traces with all built-in policies, to compare the results of two builds.

    python scripts/runs_to_compare.py FOLDER [UNTIL]

The script writes to FOLDER the tables of each run, and the entries of `run.json` except for its time, place
and speed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

TRACES = Path(__file__).parents[1] / "traces"
SIX = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota", "auto")


def main(folder: Path, until: str) -> None:
    """Replay, and keep the results."""
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        cluster = place / "six.cluster.yaml"
        philly = TRACES / "philly.cluster.yaml"
        _harness("cluster", "convert", "--to", "elasticquota", "--keep", philly, "-o", cluster)
        shaped: list[str | Path] = ["--cluster", cluster, "--priority-share", "0.2:1000@1"]
        shaped += ["--set", "gang=all-or-nothing"]
        plugins = [part for plugin in SIX for part in ("-p", plugin)]
        _harness(
            "replay", TRACES / "philly.parquet", *shaped, *plugins, "--until", until, "-o", place / "runs"
        )
        for algorithm in ("easy", "conservative"):
            backfill = ["-p", "backfill", "--set", f"algorithm={algorithm}", "--until", until]
            _harness("replay", TRACES / "hpc2n.parquet", *backfill, "-o", place / "runs" / algorithm)
        for info in (place / "runs").rglob("run.json"):
            run = json.loads(info.read_text(encoding="utf-8"))
            kept = folder / run["run"]
            kept.mkdir(parents=True)
            for table in info.parent.glob("*.parquet"):
                shutil.copy(table, kept)
            del run["provenance"]
            (kept / "run.json").write_text(json.dumps(run, indent=1, sort_keys=True), encoding="utf-8")


def _harness(*words: str | Path) -> None:
    """Runs the installed harness, and not that of the checkout."""
    command = [sys.executable, "-P", "-m", "harness", *map(str, words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "25d")
