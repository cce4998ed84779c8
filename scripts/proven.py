"""Counts the recorded decisions that plugins reproduce, for README.md and docs/proven.md.

    python scripts/proven.py [FILE...] [--jobs N] [--write]

The script answers every case of the corpora, and prints a table by component and release. By default, it uses
the corpora in `../shared/conformance` that `tests/conformance` names. `--write` puts the table into both
pages. With FILEs, only the rows of their components and releases change, so give all corpora of a component
and release together.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click
import marks

from harness.cluster.kinds.kueue_releases import NEWEST, release_named
from harness.plugins import loading as plugins
from harness.plugins.conformance import Case, Report, Tally, check, read_cases

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "proven.md", ROOT / "README.md"
FOLDER = ROOT.parent / "shared" / "conformance"
BEGINS = marks.begins("scripts/proven.py")

_RELEASES: Mapping[str, str] = {
    "elasticquota": "scheduler-plugins",
    "koordinator": "Koordinator",
    "kube-scheduler": "kube-scheduler v1.36",
}
"""Maps the first part of a component's name to the recorded release. Cases of Kueue contain the release."""

Key = tuple[str, str]
"""The recorded release and the component."""


def release_of(case: Case) -> str:
    """Returns the release whose answer was recorded for a case."""
    family = case["component"].partition("/")[0]
    if family != "kueue":
        return _RELEASES.get(family, family)
    return f"Kueue {release_named((case.get('config') or {}).get('kueueVersion', str(NEWEST)))}"


def tallies(paths: Iterable[Path], *, jobs: int) -> dict[Key, Tally]:
    """Returns the number of cases, and of equal answers, for each release and component."""
    loaded = plugins.load()
    found: dict[Key, Tally] = {}
    for path in paths:
        release = {case["id"]: release_of(case) for case in read_cases([path])}
        report: Report = check(read_cases([path]), loaded, jobs=jobs)
        differing = {verdict.id for verdict in report.differing}
        component = next(iter(report.components))
        for name, told in release.items():
            found.setdefault((told, component), Tally()).add(agrees=name not in differing)
    return found


def rows_of(found: Mapping[Key, Tally]) -> dict[Key, str]:
    """Returns a row for each release and component."""
    rows = {}
    for (release, component), tally in found.items():
        share = "all" if tally.agree == tally.cases else f"{tally.agree:,} ({tally.agree / tally.cases:.2%})"
        rows[release, component] = f"| {release} | `{component}` | {tally.cases:,} | {share} |"
    return rows


def rows_in(page: str) -> dict[Key, str]:
    """Returns the rows of a page's table."""
    part = page.partition(BEGINS)[2].partition(marks.ENDS)[0]
    return {
        (each[1], each[2]): each[0] for each in re.finditer(r"^\| (.+?) \| `(.+?)` \|.*$", part, re.MULTILINE)
    }


def table(rows: Mapping[Key, str]) -> Iterator[str]:
    """Yields the rows, sorted by the number of the release and then by component."""
    yield "| recorded from | component | cases | reproduced |"
    yield "| --- | --- | ---: | ---: |"
    yield from (rows[key] for key in sorted(rows, key=lambda key: (_order(key[0]), key[1])))


def brief(rows: Mapping[Key, str]) -> Iterator[str]:
    """Yields the table in README, which has a row for each real component with its releases."""
    yield "| real component | releases | recorded cases | reproduced |"
    yield "| --- | --- | ---: | ---: |"
    found: dict[str, tuple[dict[str, None], list[int], list[int]]] = {}
    for (recorded, _), row in sorted(rows.items(), key=lambda item: _order(item[0][0])):
        cases, share = (cell.strip() for cell in row.split("|")[3:5])
        component, _, release = recorded.partition(" ")
        releases, of, agree = found.setdefault(component, ({}, [], []))
        releases[release or "-"] = None
        of.append(int(cases.replace(",", "")))
        agree.append(of[-1] if share == "all" else int(share.split()[0].replace(",", "")))
    for component, (releases, of, agree) in found.items():
        share = "all" if of == agree else f"{sum(agree):,}"
        yield f"| {component} | {', '.join(releases)} | {sum(of):,} | {share} |"


def corpora() -> list[Path]:
    """Returns the corpora that the tests name and that exist here."""
    sys.path.insert(0, str(ROOT / "tests" / "conformance"))
    from test_corpora import CORPORA

    return [path for name in CORPORA if (path := FOLDER / f"{name}.jsonl.gz").is_file()]


def _order(release: str) -> tuple[str, list[int]]:
    family, _, number = release.partition(" v")
    return family, [int(part) for part in re.findall(r"\d+", number)]


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--jobs", default=1, show_default=True, help="Processes to use.")
@click.option("--write", is_flag=True, help="Put the table into README.md and docs/proven.md.")
def main(files: tuple[Path, ...], jobs: int, *, write: bool) -> None:
    """Answer all cases, and print the table."""
    rows = rows_of(tallies(files or corpora(), jobs=jobs))
    click.echo("\n".join(table(rows)))
    if write:
        every = (rows_in(PAGE.read_text(encoding="utf-8")) if files else {}) | rows
        marks.write(PAGE, BEGINS, table(every))
        marks.write(README, BEGINS, brief(every))


if __name__ == "__main__":
    main()
