"""Makes docs/report.png: the first screen of a report of the runs that README replays.

    python scripts/report_picture.py FOLDER

replays them in FOLDER, which takes minutes, or takes the runs that are there. It needs Chromium on the PATH,
and the extra `report`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click

import harness

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLUGINS = ("none", "kueue-classic", "fairsharing")
WIDTH, HEIGHT = 1280, 1000  # pixels


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """The command line."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise click.ClickException(f"none of {', '.join(BROWSERS)} is on the PATH")
    trace = ROOT / "traces" / "philly.parquet"
    runs = [harness.replay(trace, plugin=plugin, output=folder / "results") for plugin in PLUGINS]
    page = folder.resolve() / "report.html"
    page.write_text(harness.make_report(runs).html(), encoding="utf-8")
    subprocess.run(  # noqa: S603 - a page of our own
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={PICTURE}", page.as_uri(),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    click.echo(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
