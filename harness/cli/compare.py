"""`harness compare` compares finished runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import CheckError, HarnessError, OptionError
from harness.base.text import counted
from harness.cli.context import command_line, loaded_plugins
from harness.cli.output import json_layout, layout_option
from harness.cli.run_options import baseline_option, twin_workers
from harness.cli.screen import put, show_table, tell, terminal_width

if TYPE_CHECKING:
    from harness.analysis.comparison.conditions import Check


@click.command(
    epilog="""\b
Examples:
  harness compare results/philly/none-* --metric 'wait.*'
  harness compare results/philly/* --scope queue --metric wait.first_start.p95 --format markdown
  harness compare results/philly/* --shake 5 --fail-on 'wait.first_start.p95 > +500%'"""
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@baseline_option
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME",
    help="Show only these metrics, such as 'wait.*'; may be repeated.",
)  # fmt: skip
@click.option(
    "--scope", default="all", show_default=True, metavar="SCOPE",
    help="Break metrics down by 'all', 'queue', 'quota', 'priority', 'user', 'reason', 'beneficiary', or a "
    "value such as queue=prod.",
)  # fmt: skip
@layout_option
@click.option(
    "--all", "every", is_flag=True, help="Show all headline metrics, not only the most important ones."
)
@click.option("--notes", "every_note", is_flag=True, help="Show all notes below the table, not only four.")
@json_layout
@click.option(
    "--fail-on", "conditions", multiple=True, metavar="CONDITION",
    help="Exit with status 1 if the whole 95 % interval over the twins of --shake is beyond a bound, for "
    "example 'wait.first_start.p95{queue=prod} > +5%'; may be repeated.",
)  # fmt: skip
@click.option(
    "--fail-on-values", is_flag=True,
    help="With --fail-on, compare bounds with single values instead of intervals over twins.",
)  # fmt: skip
@click.option(
    "--shake", "shake_text", metavar="N[@SEED]",
    help="Compare N twins of every run, in which jobs arrive up to 30 s earlier or later. Every difference "
    "then has a 95 % interval. Missing twins are replayed.",
)  # fmt: skip
@twin_workers
@click.pass_context
def compare(
    ctx: click.Context,
    runs: tuple[Path, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    scope: str,
    layout: str,
    every: bool,
    every_note: bool,
    conditions: tuple[str, ...],
    fail_on_values: bool,
    shake_text: str | None,
    workers: int | None,
) -> None:
    """Compare finished runs of the same jobs in one table, with the first run as the baseline.

    The output begins with a recommendation and the most important metrics; --all shows the other metrics.
    With one replay per run, harness judges only waits, slowdown and lost work, and only if queues are not
    congested. With --shake, every change has a 95 % interval. The sign ~ means neither better nor worse.

    With --shake, --fail-on fails if the whole 95 % interval is beyond the bound. If the bound is within the
    interval, the condition is undecided and passes.
    """
    from harness.analysis.comparison import (
        Comparison,  # `harness.api` would import everything that a replay needs.
    )
    from harness.analysis.comparison.conditions import (
        NEEDS_TWINS,
        checks_markdown,
        checks_text,
        parse_condition,
    )

    parsed = [parse_condition(text) for text in conditions]
    if fail_on_values and not parsed:
        raise OptionError("--fail-on-values has no effect without --fail-on", hint="add --fail-on CONDITION")
    comparison = Comparison.of(runs, baseline=baseline)
    for condition in parsed:  # Report errors before any twins are replayed.
        condition.rows(comparison)
    if parsed and shake_text is None and not fail_on_values:
        raise OptionError(NEEDS_TWINS, hint="add --shake 5 or --fail-on-values")
    if shake_text is not None:
        from harness.cli.replays import How, shaken
        from harness.trace.shake import Shake

        how = How(workers, command_line(ctx), quiet=False)
        comparison = shaken(comparison, Shake.parse(shake_text), lambda: loaded_plugins(ctx), how)
    checks: list[Check] = []
    refused: HarnessError | None = None
    try:
        checks = comparison.check(*parsed, values=fail_on_values)
    except HarnessError as error:
        refused = error
    if layout == "json":
        document = comparison.to_json(*metrics, scope=scope)
        click.echo(json.dumps(document | {"checks": [check.to_json() for check in checks]}))
    elif layout == "csv":
        put(comparison.changes(*metrics, scope=scope).write_csv())
        for sentence in comparison.absent(*metrics, scope=scope):
            tell(f"warning: {sentence}")
    else:
        brief = not (every or metrics or scope != "all")
        if layout == "markdown":
            table = comparison.markdown(*metrics, scope=scope, brief=brief)
            told = checks_markdown(comparison, checks, values=fail_on_values) if checks else ""
        else:
            width = terminal_width()
            table = comparison.table(*metrics, scope=scope, width=width, brief=brief, every_note=every_note)
            told = checks_text(comparison, checks, values=fail_on_values, width=width) if checks else ""
        parts = [table, *([told] if told else [])]
        first = layout == "markdown" and brief  # Sites cut off the end of a long comment.
        show_table("\n\n".join(reversed(parts) if first else parts))
    if refused is not None:
        raise refused
    held = [f"  {check.condition}: {check.text}" for check in checks if check.holds]
    if held:
        raise CheckError(
            "\n".join([f"{counted(len(held), 'bound')} {'is' if len(held) == 1 else 'are'} broken:", *held])
        )
