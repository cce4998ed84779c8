"""Writes a table into docs/reproduced.md: how six policies pack openb's 17 lists, and published results.

    python scripts/openb_packing.py [--run]

The script makes the table from tests/published_openb.csv. `--run` first replays all lists with all policies
and ten seeds, and writes the results to that file. This takes 50 CPU-minutes and needs the lists in
`../shared/traces/openb`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import marks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduced.md"

sys.path.insert(0, str(ROOT / "tests"))

from test_published_devices import CASES, LISTS, OURS, list_of, table  # noqa: E402 the path comes first

from harness.studies.reproduced.openb import SEEDS, SOURCES, allocated, nodes_of  # noqa: E402 the same


@click.command()
@click.option("--run", is_flag=True, help="Replay everything first.")
def main(*, run: bool) -> None:
    """Make the table again."""
    if run:
        if not LISTS.is_dir():
            raise click.ClickException(f"{LISTS} is not there: put openb's lists there, or leave --run out")
        nodes = nodes_of(SOURCES[0].among([LISTS]))
        rows = [",".join(("list", "policy", *map(str, SEEDS)))]
        for name, policy in CASES:
            found = [allocated(nodes, list_of(name), policy, seed) for seed in SEEDS]
            rows.append(",".join((name, policy, *(f"{share:.2f}" for share in found))))
            click.echo(rows[-1])
        OURS.write_text("\n".join(rows) + "\n", encoding="utf-8")
    marks.write(PAGE, marks.begins("scripts/openb_packing.py"), ["", table()])


if __name__ == "__main__":
    main()
