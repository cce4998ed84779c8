"""`harness trace fetch` fetches samples from Prometheus, and writes a file of answers or a trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from harness.base.errors import InputError, OptionError
from harness.base.text import counted
from harness.base.units import SECOND, parse_duration
from harness.cli.output import writing
from harness.cli.screen import tell

if TYPE_CHECKING:
    from harness.readers.live.prometheus import Page

_LEVEL = 6


headers_option = click.option(
    "--header-file", type=click.Path(path_type=Path), metavar="FILE",
    help="A file of headers to send, such as 'Authorization: Bearer ...'.",
)  # fmt: skip


@click.command(
    epilog="""\b
Examples:
  harness trace fetch http://prometheus:9090 month.json.gz --from 2026-10-01 --to 2026-11-01
  harness trace fetch http://prometheus:9090 day.parquet --from 2026-10-01 --to 2026-10-02"""
)
@click.argument("url")
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--from", "begin", required=True, metavar="TIME", help="Start: a date, or a time; in UTC by default."
)
@click.option("--to", "end", required=True, metavar="TIME", help="End, in the same form as --from.")
@click.option("--window", default="1h", show_default=True, metavar="SPAN", help="Time span of one query.")
@click.option(
    "--selector", default='job="kube-state-metrics"', show_default=True, metavar="MATCHERS",
    help="Label matchers for the series, without braces.",
)  # fmt: skip
@headers_option
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="For OUT.parquet: an option of the reader 'prometheus'; may be repeated.",
)  # fmt: skip
@click.pass_context
def fetch(
    ctx: click.Context,
    url: str,
    output: Path,
    begin: str,
    end: str,
    window: str,
    selector: str,
    header_file: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Fetch samples of kube-state-metrics from Prometheus, and store them or make a trace.

    If OUTPUT ends with .json or .json.gz, it contains the server's answers, for `harness trace convert`. If
    it ends with .parquet, it is a trace. The command only reads from the server.
    """
    from harness.cli.trace_file import account, open_file
    from harness.readers.live.prometheus import connect
    from harness.readers.live.prometheus import fetch as pages_of
    from harness.trace.write import write_trace

    as_trace = output.suffix == ".parquet"
    if not as_trace and not output.name.endswith((".json", ".json.gz")):
        raise OptionError(
            f"{output} is not the name of an answer file or a trace",
            hint="use the suffix .json.gz or .parquet",
        )
    if settings and not as_trace:
        raise OptionError(
            "--set has no effect, because only an output file that ends with .parquet is converted",
            hint="use such an output file, or give --set to 'harness trace convert'",
        )
    first, last = seconds_of("--from", begin), seconds_of("--to", end)
    span = parse_duration(window) // SECOND
    if last <= first:
        raise OptionError(f"--to {end} is not after --from {begin}")
    if span < 1:
        raise OptionError(f"--window {window} is less than a second")
    with closing(connect(url, header_file)) as http:
        pages = pages_of(http, first, last, window=span, selector=selector)
        if not as_trace:
            _write(output, pages)
            return
        with TemporaryDirectory(prefix="harness-") as folder:
            answers = Path(folder, f"{output.stem}.json.gz")
            _write(answers, pages)
            trace = open_file(ctx, answers, "prometheus", settings)
            write_trace(trace, output)
    click.echo(account(trace, output))


def _write(output: Path, pages: Iterable[Page]) -> None:
    count = series = samples = 0

    def lines() -> Iterator[bytes]:
        nonlocal count, series, samples
        for page in pages:
            if page.series:
                count, series, samples = count + 1, series + page.series, samples + page.samples
                yield json.dumps(page.answer, separators=(",", ":")).encode() + b"\n"

    with writing(output) as file, file.open("wb") as raw:
        if output.name.endswith(".gz"):
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
                packed.writelines(lines())
        else:
            raw.writelines(lines())
        if not count:
            raise InputError(
                "the server has no series of kube-state-metrics in this time span",
                hint="query 'count by (job) (kube_pod_info)' to find the job label, and give it with "
                "--selector",
            )
    tell(f"{counted(samples, 'sample')} in {counted(count, 'answer')} fetched")


def seconds_of(option: str, text: str) -> int:
    """Returns a date or a time in seconds since 1970.

    Raises:
        OptionError: the text is neither a date nor a time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "write 2026-10-01, or 2026-10-01T12:00:00Z"
        raise OptionError(f"{option} {text} is not a date or time", hint=hint) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
