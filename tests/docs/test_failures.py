"""What failing nodes cost: the tables of docs/nodes-over-time.md are those of scripts/failures.py."""

from __future__ import annotations

import importlib
import re
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pytest
from doc_pages import ROOT

CELL = re.compile(r"([+-][\d,.]+) \(([+-][\d,.]+) to ([+-][\d,.]+)\): (more|less|may be luck)")


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`scripts/failures.py`, which is in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("failures")


def made(failures: ModuleType, what: str) -> list[str]:
    """The lines between two marks of the page."""
    page = failures.PAGE.read_text(encoding="utf-8")
    part = page.partition(failures.marks.begins(failures.NAME, what))[2]
    return [line for line in part.partition(failures.marks.ENDS)[0].splitlines() if line]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def amount(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_page_has_the_rows_that_the_script_makes(failures: ModuleType) -> None:
    """A row for each plugin, and one for each two plugins that differ."""
    invented = {
        (plugin, *column): [100.0 * place, 100.0 * place + 1]
        for place, plugin in enumerate(failures.PLUGINS)
        for column in failures._COLUMNS
    }
    head, line, *rows = [each for each in made(failures, "added") if each.startswith("|")]
    assert [head, line] == list(failures.added(invented))[:2]
    assert [cells(row)[0] for row in rows] == [f"`{plugin}`" for plugin in failures.PLUGINS]
    assert all(re.fullmatch(r"-?[\d,.]+ ± [\d,.]+", cell) for row in rows for cell in cells(row)[1:])
    apart = {tuple(cells(row)[1:]): cells(row)[0] for row in reversed(rows)}
    head, line, *compared = made(failures, "differences")
    assert [head, line] == list(failures.differences(invented))[:2]
    pairs = combinations(sorted(apart.values(), key=[cells(row)[0] for row in rows].index), 2)
    assert [cells(row)[0] for row in compared] == [f"{plugin} minus {base}" for base, plugin in pairs]


def test_the_page_says_which_part_of_the_work_is_lost(failures: ModuleType) -> None:
    """Of the GPU-hours that the jobs ask for, from the plugin that loses least to the one that loses most."""
    lines = made(failures, "added")
    rows = [cells(each)[1:3] for each in lines[2:] if each.startswith("|")]
    told = " ".join(each for each in lines if not each.startswith("|"))
    assert (
        f" twins of the trace, with 95 % intervals. The jobs request {failures.asked():,.0f} GPU-hours. "
        in told
    )
    shares = re.findall(r"([\d.]+)(?: to ([\d.]+))? % under `([^`]+)`", told)
    assert [loss for *_, loss in shares] == list(failures.LOSSES)
    for column, (low, high, _) in enumerate(shares):
        lost = [100 * amount(row[column].split()[0]) / failures.asked() for row in rows]
        assert (float(low), float(high or low)) == pytest.approx((min(lost), max(lost)), abs=0.05)


def test_the_verdict_of_the_page_follows_from_its_intervals(failures: ModuleType) -> None:
    """Each cell says luck if its interval has 0, and the page says so of the plugins."""
    verdicts = set()
    for row in made(failures, "differences")[2:]:
        for cell in cells(row)[1:]:
            match = CELL.fullmatch(cell)
            assert match
            mean, low, high = (amount(match[number]) for number in (1, 2, 3))
            assert low <= mean <= high
            assert match[4] == ("more" if low > 0 else "less" if high < 0 else "may be luck")
            verdicts.add(match[4])
    page = " ".join(failures.PAGE.read_text(encoding="utf-8").split())
    assert verdicts == {"may be luck"}
    assert "Each interval in the second table contains 0, so the differences may be luck." in page


def test_differences_are_told_from_luck(failures: ModuleType) -> None:
    """A plugin that loses more in each twin, one that wavers, and one that is like another."""
    noise = [3.0, -2.0, 4.0, -5.0, 1.0, 2.0]
    losses = {"none": noise, "default-preemption": noise}
    losses["kueue-classic"] = [each + 100 + place for place, each in enumerate(noise)]
    losses["fairsharing"] = noise[::-1]
    found = {(plugin, *column): values for plugin, values in losses.items() for column in failures._COLUMNS}
    first, second, third = (cells(row) for row in list(failures.differences(found))[2:])
    assert [row[0] for row in (first, second, third)] == [
        "`kueue-classic` minus `none`",
        "`fairsharing` minus `none`",
        "`fairsharing` minus `kueue-classic`",
    ]
    assert [row[1].rpartition(": ")[2] for row in (first, second, third)] == ["more", "may be luck", "less"]


@pytest.mark.slow
def test_the_script_measures(failures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of the trace with one plugin: failures cost hours, and checkpoints save most of them."""
    monkeypatch.setattr(failures, "PLUGINS", ("none",))
    monkeypatch.setattr(failures, "WINDOW", "40d..41d")
    found = failures.costs(2, tmp_path)
    more, less = (sum(found["none", loss, failures.FIGURES[0]]) for loss in failures.LOSSES)
    assert 0 < less < more
