"""Makes docs/report.png and the pictures of docs/gallery.md: `python scripts/pictures.py FOLDER`.

The script carries out the replays of the pages in FOLDER, or uses existing runs. It needs the extra `report`,
playwright, and Chromium on the PATH.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click
from playwright.sync_api import Browser, sync_playwright

import harness

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHILLY = ("none", "kueue-classic", "fairsharing")
MIX = ("default-preemption", "kueue-classic", "fairsharing")
GALLERY = {
    "traded": "Wait of 95 of 100 jobs",
    "thrown-away": "Work thrown away",
    "started": "Jobs that had started",
    "held": "nvidia.com/gpu held, by",
    "gantt": "When jobs held resources",
}
"""Maps the name of a picture to the beginning of its figure's title."""


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Make all pictures."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise click.ClickException(f"none of {', '.join(BROWSERS)} is on the PATH")
    trace, store = ROOT / "traces" / "philly.parquet", folder.resolve() / "results"
    philly = [harness.replay(trace, plugin=plugin, output=store) for plugin in PHILLY]
    trace = ROOT / "traces" / "mix.parquet"
    mix = [harness.replay(trace, plugin=plugin, output=store, until="3d") for plugin in MIX]
    with sync_playwright() as driven:
        browser = driven.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        show(browser, philly, folder / "philly.html", {})
        show(browser, mix, folder / "mix.html", GALLERY)
        browser.close()


def show(browser: Browser, runs: Sequence[harness.Run], page: Path, figures: dict[str, str]) -> None:
    """Takes screenshots of the given figures of a report.

    If there are none, it takes one of the first screen.
    """
    page.write_text(harness.make_report(runs, gantt="1d..1d1h").html(), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 900 if figures else 1280, "height": 1000})
    tab.goto(page.resolve().as_uri())
    for name, title in figures.items():
        tab.locator("figure", has_text=title).first.screenshot(path=ROOT / "docs" / "gallery" / f"{name}.png")
    if not figures:
        tab.screenshot(path=ROOT / "docs" / "report.png")


if __name__ == "__main__":
    main()
