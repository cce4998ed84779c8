"""Computes the figures that pages show for bundled traces, and lists stale pages.

    python scripts/figures.py FOLDER [--write]

The script carries out the commands of the pages in FOLDER, which takes minutes, or uses existing runs.
`--write` corrects stale pages. This file contains each sentence or table row once, with `{}` for the figures.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl

import harness
from harness.analysis.comparison.figures import shown
from harness.base.units import DAY, HOUR, HOURS_OF_RESOURCES, MINUTE

ROOT = Path(__file__).parents[1]
GPU = "nvidia.com/gpu"
SIX = "docs/philly-six-plugins.md"
PODS_READY = "docs/kueue-pods-ready.md"
PLUGINS = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota")
"""The columns in the tables of six plugins. `auto` makes the same decisions as `elasticquota`."""

QUOTAS = "docs/elasticquota.md"
CLAIMING = {
    "mix": "harness replay traces/mix.parquet",
    "philly": "harness replay traces/philly.parquet --cluster philly-six.cluster.yaml "
    "--priority-share 0.2:1000@1 --set gang=all-or-nothing",
}
"""The replays for the page about the effect of `claims`, without their plugin."""

ALONE = "harness replay traces/philly.parquet --plugin none"
"""The replay in README and on the page about the traces."""


ON_AND_OFF = (
    "replay traces/philly.parquet -p kueue-classic@on -p kueue-classic@off "
    "--set off.featureGates=DisableWaitForPodsReady=true"
)
"""The replays on the page about `waitForPodsReady`."""


RELEASES = "docs/kueue-releases.md"
UPGRADE = (
    "-p fairsharing@today -p fairsharing@next -p fairsharing@rules --set today.kueueVersion=v0.15 "
    "--set rules.featureGates=DisableWaitForPodsReady=true"
)
UPGRADED = {
    "mix": f"harness replay traces/mix.parquet {UPGRADE} --until 2d",
    "philly": f"harness replay traces/philly.parquet {UPGRADE} --window 30d..34d",
}
"""The replays on the page about Kueue's releases."""


class Runs:
    """The runs that the figures of pages come from. Each run is replayed when it is first used.

    Args:
        folder: the folder that keeps the runs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def alone(self) -> harness.Run:
        """The run of Philly with `none`, on its own cluster."""
        return self._found("results/philly/none-*", [ALONE])

    def pods_ready(self, which: str) -> harness.Run:
        """Returns the run of Philly with `waitForPodsReady` on or off, as on its page."""
        return self._found(f"results/philly/kueue-classic@{which}-*", [f"harness {ON_AND_OFF}"])

    def upgraded(self, trace: str, which: str) -> harness.Run:
        """Returns the run of a trace with one of Kueue's releases, as on their page."""
        command = f"{UPGRADED[trace]} -o results/upgrade"
        return self._found(f"results/upgrade/{trace}/fairsharing@{which}-*", [command])

    def six(self, plugin: str) -> harness.Run:
        """Returns the run of Philly with one of six plugins, as on their page."""
        return self._found(f"results/six/philly/{plugin}-*", _commands_of_six())

    def claiming(self, trace: str, claims: str) -> harness.Run:
        """Returns the run of a trace with `elasticquota` and one of the values of its option `claims`."""
        replay = f"{CLAIMING[trace]} -p elasticquota --set claims={claims} -o results/{claims}"
        commands = [*_commands_of_six()[:1], replay]  # the first command makes the cluster
        return self._found(f"results/{claims}/{trace}/elasticquota-*", commands)

    def _found(self, pattern: str, commands: Sequence[str]) -> harness.Run:
        if not list(self._folder.glob(pattern)):
            traces = self._folder / "traces"
            if not traces.exists():
                traces.symlink_to(ROOT / "traces")
            for command in commands:
                call = [sys.executable, "-m", *shlex.split(command)]
                subprocess.run(call, cwd=self._folder, check=True)  # noqa: S603 - what our own pages say
        (path,) = self._folder.glob(pattern)
        return _opened(path)


def _commands_of_six() -> list[str]:
    text = (ROOT / SIX).read_text(encoding="utf-8")
    return [line.strip() for line in text.split("\n") if line.startswith("    harness ")]


@cache
def _opened(path: Path) -> harness.Run:
    return harness.Run.open(path)


def value(run: harness.Run, metric: str, scope: str = "all", resource: str = "") -> str:
    """Returns a metric in the format of tables."""
    (row,) = run.metrics.filter(metric=metric, scope=scope, resource=resource).iter_rows(named=True)
    text = shown(row["value"], row["unit"])
    return text.removesuffix(f" {row['unit']}") if row["unit"] in HOURS_OF_RESOURCES else text


class Claim(NamedTuple):
    """A statement on a page.

    Attributes:
        page: the path of the page in the repository.
        text: a sentence or a table row, with `{}` for each figure.
        figures: the figures, in order.
    """

    page: str
    text: str
    figures: Callable[[Runs], Sequence[str]]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that finds the text on its page, regardless of line breaks."""
        parts = (r"\s+".join(map(re.escape, part.split(" "))) for part in self.text.split("{}"))
        return re.compile(r"(\d[\w,.]*(?: %)?)".join(parts))


def _of_six(metric: str, scope: str = "all", resource: str = "") -> Callable[[Runs], list[str]]:
    return lambda runs: [value(runs.six(plugin), metric, scope, resource) for plugin in PLUGINS]


def _row(label: str) -> str:
    return f"| {label} |" + " {} |" * len(PLUGINS)


def _tables() -> Iterator[Claim]:
    for label, metric, scope, resource in (
        ("GPU time allocated", "utilization.allocated", "all", GPU),
        ("useful", "utilization.useful", "all", GPU),
        ("lost", "utilization.lost", "all", GPU),
        ("wait for a first start, mean", "wait.first_start.mean", "all", ""),
        ("wait for a first start, 95th percentile", "wait.first_start.p95", "all", ""),
        ("the same, only jobs of priority 1000", "wait.first_start.p95", "priority=1000", ""),
        ("the same, only jobs of priority 0", "wait.first_start.p95", "priority=0", ""),
        ("total wait, including waits after preemptions, 95th percentile", "wait.total.p95", "all", ""),
        ("bounded slowdown, mean", "slowdown.bounded.mean", "all", ""),
        ("makespan", "makespan", "all", ""),
        ("preemptions", "disruption.preemptions", "all", ""),
        ("GPU-hours lost", "disruption.lost", "all", GPU),
        ("deficit of guarantees, GPU-hours", "fairness.guarantee_deficit", "all", GPU),
    ):
        yield Claim(SIX, _row(label), _of_six(metric, scope, resource))


def _of_claiming(figure: Callable[[harness.Run], str]) -> Callable[[Runs], list[str]]:
    """Returns one figure for both traces, with claims by request and by usage."""
    return lambda runs: [
        figure(runs.claiming(trace, claims)) for trace in CLAIMING for claims in ("with-request", "usage")
    ]


def _of_claims() -> Iterator[Claim]:
    figures: dict[str, Callable[[harness.Run], str]] = {
        "preemptions": lambda run: value(run, "disruption.preemptions"),
        "most preemptions of one job": lambda run: f"{max(run.jobs['preemptions'].to_list()):,}",
        "GPU-hours lost": lambda run: value(run, "disruption.lost", resource=GPU),
        "repeated preemptions without progress (`disruption.ping_pong`)": lambda run: value(
            run, "disruption.ping_pong"
        ),
    }
    for label, figure in figures.items():
        yield Claim(QUOTAS, f"| {label} |" + " {} |" * 4, _of_claiming(figure))


def _evicted(run: harness.Run, reason: str | None = None) -> pl.DataFrame:
    """Returns the pods that were preempted, for one reason or for any reason."""
    rows = run.decisions.filter(action="preempt")
    return rows if reason is None else rows.filter(reason=reason)


def _mean_loss(run: harness.Run, reason: str) -> str:
    rows = _evicted(run, reason).select("job", "time").unique()
    lost = run.stints.join(rows, left_on=["job", "end"], right_on=["job", "time"], how="semi")
    amount = lost.select((pl.col("lost").dt.total_microseconds() * pl.col(f"request.{GPU}")).sum()).item()
    return f"{amount / HOUR / len(_evicted(run, reason)):.1f}"


def _pods_and_preemptions(runs: Runs) -> list[str]:
    elastic, default = runs.six("elasticquota"), runs.six("default-preemption")
    found = []
    for run in (elastic, default):
        each = _evicted(run).group_by("job", "by", "time").len()["len"]
        found.append((int((each > 1).sum()), len(each), int(each.sum())))
    (several, all_of_it, pods), (_, few, few_pods) = found
    return [f"{each:,}" for each in (several, all_of_it, pods, few, few_pods)]


def _reclaims(runs: Runs) -> list[str]:
    elastic, classic = runs.six("elasticquota"), runs.six("kueue-classic")
    return [
        f"{len(_evicted(elastic)):,}",
        f"{len(_evicted(elastic, 'QuotaReclaim')):,}",
        _mean_loss(elastic, "QuotaReclaim"),
        f"{len(_evicted(classic, 'InCohortReclamation')):,}",
        _mean_loss(classic, "InCohortReclamation"),
    ]


def _hardest_hit(runs: Runs) -> list[str]:
    """Returns figures about the job of `7f04ca` that loses the most under `elasticquota`."""
    jobs = runs.six("elasticquota").micros("jobs").filter(queue="7f04ca").collect()
    row = jobs.sort("progress_lost", descending=True).row(0, named=True)
    took = (row["finish_time"] - row["submit_time"]) / DAY
    return [f"{row['duration'] / DAY:.1f}", f"{row['progress_lost'] / DAY:.1f}", f"{took:.0f}"]


def _of_7f04ca(runs: Runs) -> list[str]:
    run = runs.six("elasticquota")
    jobs = run.jobs.filter(queue="7f04ca").height
    return [value(run, "disruption.preemptions", "queue=7f04ca"), f"{jobs:,}"]


def _refusals(runs: Runs) -> list[str]:
    reasons = runs.six("kueue-classic").decisions.filter(action="refuse")["reason"]
    return [f"{(reasons == 'PreemptionNoCandidates').sum():,}", f"{len(reasons):,}"]


def _across_queues(runs: Runs) -> list[str]:
    run = runs.six("default-preemption")
    taken, queue = _evicted(run), run.jobs["queue"]
    return [f"{(queue.gather(taken['job']) != queue.gather(taken['by_job'])).sum():,}", f"{len(taken):,}"]


def _alone(runs: Runs) -> list[str]:
    run = runs.alone
    jobs = run.micros("jobs").select(wait=pl.col("start_time") - pl.col("submit_time")).collect()
    long = (jobs["wait"] > MINUTE).sum() / jobs.height
    allocated = run.metrics.filter(metric="utilization.allocated", resource=GPU)["value"][0]
    return [f"{100 * long:.0f}", value(run, "wait.first_start.p95"), f"{100 * allocated:.0f}"]


def _time_outs(runs: Runs) -> list[str]:
    """Returns the numbers of jobs that time out, of time-outs, and of preemptions with and without these."""
    on, off = runs.pods_ready("on"), runs.pods_ready("off")
    rows = on.decisions.filter(action="evict")
    preemptions = [value(run, "disruption.preemptions") for run in (on, off)]
    return [f"{rows['job'].n_unique():,}", f"{len(rows):,}", *preemptions]


def _whole_nodes(runs: Runs) -> list[str]:
    run = runs.pods_ready("on")
    jobs, timed_out = run.jobs, run.decisions.filter(action="evict")["job"]
    whole = (jobs["pods"] == 1) & (jobs[f"request.{GPU}"] == 8)
    return [f"{whole.gather(timed_out).sum():,}"]


def _upgrade(trace: str, metric: str) -> Callable[[Runs], list[str]]:
    """Returns a row of the table of releases: 0.15, the newest, and the newest without waiting for pods."""
    return lambda runs: [value(runs.upgraded(trace, each), metric) for each in ("today", "next", "rules")]


_UPGRADES = (
    ("mix", "two days of `mix`: unfinished jobs", "jobs.unfinished"),
    ("mix", "two days of `mix`: mean delay (for unfinished jobs, the delay so far)", "delay.mean"),
    ("mix", "two days of `mix`: preemptions", "disruption.preemptions"),
    ("philly", "four days of Philly: 95th percentile of the wait", "wait.first_start.p95"),
    ("philly", "four days of Philly: mean delay", "delay.mean"),
    ("philly", "four days of Philly: preemptions", "disruption.preemptions"),
)

CLAIMS = (
    *(
        Claim(RELEASES, f"| {head} | {{}} | {{}} | {{}} |", _upgrade(trace, metric))
        for trace, head, metric in _UPGRADES
    ),
    Claim(
        PODS_READY,
        "{} jobs time out, {} times in total. With time-outs, there are {} preemptions instead of {}.",
        _time_outs,
    ),
    Claim(PODS_READY, "Of all time-outs, {} hit single pods that request a whole node", _whole_nodes),
    Claim(
        PODS_READY,
        "The mean delay of all jobs falls from {} to {}.\n",
        lambda runs: [value(runs.pods_ready(which), "delay.mean") for which in ("off", "on")],
    ),
    Claim(
        "traces/README.md",
        "{} % of the jobs wait more than a minute, the 95th percentile of the wait is {}, and {} % of the "
        "GPU time",
        _alone,
    ),
    Claim(
        "README.md",
        "jobs that finish use {} of the GPU time, and the 95th percentile of the wait is {}.\n",
        lambda runs: [
            value(runs.alone, "goodput.of_capacity", resource=GPU),
            value(runs.alone, "wait.first_start.p95"),
        ],
    ),
    *_tables(),
    *_of_claims(),
    Claim(
        SIX,
        "`elasticquota` {} of the {} preemptions take two to four pods of a gang from one job, so {} pods "
        "are evicted. Under `default-preemption` three of the {} preemptions take two pods, so {} pods are "
        "evicted.",
        _pods_and_preemptions,
    ),
    Claim(
        SIX,
        "`elasticquota` evicts {} pods, {} of them to reclaim quota (`QuotaReclaim`). Each reclaim throws "
        "away {} GPU-hours on average. `kueue-classic` reclaims {} pods (`InCohortReclamation`), "
        "and each reclaim throws away {} GPU-hours. Both plugins",
        _reclaims,
    ),
    Claim(
        SIX,
        "Almost half of the loss, {} GPU-hours, falls on one virtual cluster",
        lambda runs: [value(runs.six("elasticquota"), "disruption.lost", "queue=7f04ca", GPU)],
    ),
    Claim(
        SIX,
        "on 8 GPUs, needs {} days. It was restarted ten times and lost {} days in total, so it ended {} days "
        "after",
        _hardest_hit,
    ),
    Claim(SIX, "there are {} preemptions of the {} jobs of `7f04ca`", _of_7f04ca),
    Claim(SIX, "In this replay {} of {} refusals say `PreemptionNoCandidates`", _refusals),
    Claim(
        SIX,
        "{} of the {} pods that it evicts belong to another virtual cluster than the preemptor",
        _across_queues,
    ),
)


def stale(runs: Runs, *, write: bool = False) -> list[str]:
    """Returns sentences about the stale statements on pages.

    Args:
        runs: the runs from which figures are computed.
        write: whether to correct the pages.
    """
    found = []
    for claim in CLAIMS:
        path = ROOT / claim.page
        text = path.read_text(encoding="utf-8")
        (match,) = claim.pattern.finditer(text)
        now = list(claim.figures(runs))
        if list(match.groups()) == now:
            continue
        found.append(
            f"{claim.page}: {claim.text}\n  says {', '.join(match.groups())}\n  it is {', '.join(now)}"
        )
        if write:
            for number in range(len(now), 0, -1):
                text = text[: match.start(number)] + now[number - 1] + text[match.end(number) :]
            path.write_text(text, encoding="utf-8")
    return found


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--write", is_flag=True, help="Correct the pages.")
def main(folder: Path, write: bool) -> None:
    """Print stale statements. The exit code is 1 if any of them remain."""
    folder.mkdir(parents=True, exist_ok=True)
    found = stale(Runs(folder), write=write)
    click.echo("\n".join(found) or "all figures are those of the runs")
    sys.exit(1 if found and not write else 0)


if __name__ == "__main__":
    main()
