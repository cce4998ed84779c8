"""Every command of every page works, in the order of the page and in one folder, but for exceptions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_lines import brief, carried_out, examples, expanded, subcommands, undrawn
from doc_pages import EXCEPTED, PAGES, commands, shared, stock, why_excepted

from harness.analysis.validation import capacity_events

WITH_COMMANDS = [page for page in PAGES if any(why_excepted(each) is None for each in commands(page))]

WHOLE = "docs/live-dump.md"
"""A page whose commands tests/docs/test_live_dump.py executes as they are."""

LONG = (
    "docs/changed-quota.md",
    "docs/cluster.md",
    "docs/compare.md",
    "docs/data-sets.md",
    "docs/elasticquota.md",
    "docs/events.md",
    "docs/experiments.md",
    "docs/forecast.md",
    "docs/gallery.md",
    "docs/generate.md",
    "docs/how-fair-sharing.md",
    "docs/how-model.md",
    "docs/how-quota.md",
    "docs/kube-scheduler.md",
    "docs/kueue-pods-ready.md",
    "docs/kueue-previews.md",
    "docs/kueue-releases.md",
    "docs/kueue.md",
    "docs/nodes-over-time.md",
    "docs/philly-six-plugins.md",
    "docs/report.md",
    "docs/reproduced.md",
    "docs/slurm.md",
    "docs/sources-published.md",
    "docs/statistics.md",
    "docs/study.md",
    "docs/validate.md",
    "docs/what-if.md",
    "docs/why-waiting.md",
)
"""Pages whose commands take half a second or more, except for README.md and the tutorial."""

NOT_NOW = (3, 4)
"""The exit codes that answer the question of `harness simulate`."""


def on_cut_traces(page: str) -> Iterator[str]:
    """The commands of a page with less of everything.

    Charts are drawn in tests/report; of many data sets the first one is validated. Those of the benchmark
    that help shows, too, are executed by its test.
    """
    seen = set[str]()
    shown = examples()
    for command in commands(page):
        if command.startswith("harness bench ") and re.sub(r" --seed \d+", "", command) in shown:
            continue
        if command.startswith("harness validate "):
            alike = re.sub(r"\S+\.parquet", "", command)
            if alike in seen:
                continue
            seen.add(alike)
        yield undrawn(brief(command))


def run_page(page: str, place: Path, capsys: pytest.CaptureFixture[str], *, whole: bool) -> None:
    """Execute a page from top to bottom."""
    stock(place, page)
    failed = [
        f"{command}\n{said}"
        for command in (commands(page) if whole else on_cut_traces(page))
        if why_excepted(command) is None
        for code, _, said in [carried_out(command, capsys)]
        if code and not (command.startswith("harness simulate ") and code in NOT_NOW)
    ]
    assert not failed, "\n\n".join(failed)


@pytest.fixture(scope="session")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages share, with little of everything; each page gets a copy."""
    place = tmp_path_factory.mktemp("cut")
    shared(place, whole=False)
    return place


def test_every_command_has_a_name_and_options_that_exist() -> None:
    """Also those of pages whose commands are executed at night only."""
    known = dict(subcommands())
    read = 0
    for page in PAGES:
        for line in commands(page):
            if not line.startswith("harness ") or why_excepted(line) is not None:
                continue
            words, _ = expanded(line)
            parts = next(count for count in range(4, 0, -1) if " ".join(words[:count]) in known)
            command = known[" ".join(words[:parts])]
            try:
                _, left, _ = command.make_parser(click.Context(command)).parse_args(words[parts:])
            except click.UsageError as error:
                pytest.fail(f"{page}: {line}: {error.format_message()}")
            assert not (left and isinstance(command, click.Group)), f"{page}: {line}"
            read += 1
    assert read > 200


@pytest.mark.early
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.nightly if page in LONG else ())
        for page in WITH_COMMANDS
        if page != WHOLE
    ],
)
def test_a_page_works_from_top_to_bottom_on_cut_traces(
    page: str, cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a command leaves, the next one finds. A search for events soon gives up."""
    monkeypatch.setattr(capacity_events, "_MOST", 0.1)
    shutil.copytree(cut, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, capsys, whole=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_a_page_works_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with the whole traces and all recorded decisions."""
    shared(tmp_path, whole=True)
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, capsys, whole=True)


def test_every_exception_is_of_some_command() -> None:
    """The list is no longer than it has to be, and says why."""
    every = [command for page in PAGES for command in commands(page)]
    for pattern, why in EXCEPTED.items():
        assert why
        assert any(re.match(pattern, command) for command in every), pattern
