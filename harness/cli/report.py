"""`harness report` writes a page about finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import OptionError
from harness.cli.context import command_line, loaded_plugins
from harness.cli.output import STDOUT, deliver, is_page, page_format
from harness.cli.run_options import baseline_option, twin_workers
from harness.cli.screen import results_only

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison

_PAGE = Path("report.html")
_NO = "no"


@click.command(
    epilog="""\b
Examples:
  harness report results/philly/* -o report.html
  harness report results/philly/none-* --gantt 1d..1d6h
  harness report results/philly/none-* --format markdown"""
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="Write to this file; - is stdout. [default: report.html, or stdout for Markdown]",
)  # fmt: skip
@page_format
@baseline_option
@click.option(
    "--gantt", metavar="FROM..TO",
    help="Draw each job in this window: two times as the run shows them, or two durations since the origin "
    "such as 1d..1d6h. If there are many jobs, harness draws those that held the most resources. [default: "
    "all jobs, if there are at most 60]",
)  # fmt: skip
@click.option(
    "--shake", "shake_text", metavar="N[@SEED]|no",
    help="Compute figures and verdicts over N twins of every run, as `harness compare` does; `no` uses only "
    "the runs. [default: the stored twins, if all runs have them]",
)  # fmt: skip
@twin_workers
@click.option(
    "--interactive", is_flag=True,
    help="Draw charts that you can zoom, and that show values under the pointer; this adds a few MB.",
)  # fmt: skip
@click.pass_context
def report(
    ctx: click.Context,
    runs: tuple[Path, ...],
    output: Path | None,
    form: str | None,
    baseline: str | None,
    gantt: str | None,
    shake_text: str | None,
    workers: int | None,
    interactive: bool,
) -> None:
    """Write a report of finished runs of the same jobs: figures, charts, and the data behind them.

    If all runs have stored twins (`harness replay --shake`), figures and verdicts are over the twins.
    """
    from harness import api
    from harness.analysis.comparison import Comparison

    page = is_page(form, output)
    if interactive and not page:
        raise OptionError(
            "only an HTML page can be interactive", hint="leave out --interactive, or write HTML"
        )
    comparison = Comparison.of(runs, baseline=baseline)
    if shake_text != _NO:
        comparison = _shaken(ctx, comparison, shake_text, workers)
    with results_only():
        made = api.make_report(
            comparison, plugins=loaded_plugins(ctx), command=command_line(ctx), gantt=gantt
        )
        text = made.html(interactive=interactive) if page else made.markdown()
    deliver(text, output or (_PAGE if page else STDOUT))


def _shaken(ctx: click.Context, comparison: Comparison, text: str | None, workers: int | None) -> Comparison:
    """Returns the comparison over the requested twins, or over the twins that all runs have stored."""
    from harness.cli.replays import How, shaken
    from harness.studies.twins import Twins, kept_shake
    from harness.trace.shake import Shake

    runs, pairs = comparison.runs, comparison.pairs
    several = len(runs) > 1 and pairs.whole
    shake = Shake.parse(text) if text is not None else kept_shake(runs) if several else None
    if shake is None:
        return comparison
    if text is None:
        kept = Twins(runs, shake, lambda: loaded_plugins(ctx), shared=pairs.same_arrivals)
        if not kept.complete:  # The stored twins were made for another comparison.
            return comparison
    how = How(workers, command_line(ctx), quiet=text is None)
    return shaken(comparison, shake, lambda: loaded_plugins(ctx), how)
