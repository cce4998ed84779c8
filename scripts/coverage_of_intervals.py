"""Measures how often the intervals of comparisons cover the truth, for the tables of docs/statistics.md.

    python scripts/coverage_of_intervals.py twins [--repetitions 2000] [--jobs 20000] [--twins 10]
    python scripts/coverage_of_intervals.py replay [--repetitions 2000] [--jobs 20000]
    python scripts/coverage_of_intervals.py headlines FOLDER [--repetitions 10000] [--pool 200] [--load 0.9]
    python scripts/coverage_of_intervals.py aa FOLDER... [--pairs 200]
    python scripts/coverage_of_intervals.py levels [--repetitions 20000]

`twins` and `replay` use single-server queues with a first-come-first-served order, by Lindley's recursion.
They compare two runs of the same jobs. In the second run, each job takes 2 % less time.

- `twins` measures how often an interval over ten twins of one trace covers the mean difference over 2,000
  other twins, and how skewed these differences are.
- `replay` measures how often the interval of one replay covers the difference of the stationary queues, and
  how often the interval is refused.
- `headlines` replays a small trace of three queues that preempt, at several loads, under two policies. For
  each headline metric, it compares intervals over ten twins, drawn from a pool, with the mean of the pool. It
  also compares each policy with itself, as `aa` does.
- `aa` uses twins that replays left in folders `<results>/<trace>/.twins/<run>`. It draws two sets of ten from
  the twins of one policy, and compares them like two policies.
- `levels` draws values from known distributions, and measures how often the interval of their mean covers the
  true mean.

All draws have seeds, and tables are printed as Markdown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import NamedTuple, TypeAlias

import click
import numpy as np
import polars as pl
import yaml
from numpy.typing import NDArray

import harness
from harness.analysis.comparison.family import Family
from harness.analysis.comparison.headlines import HEADLINES
from harness.analysis.comparison.missing import Lack
from harness.analysis.comparison.paired import Paired
from harness.analysis.comparison.shaken import Shaken
from harness.analysis.comparison.statistics import bootstrap
from harness.analysis.comparison.statistics.bounded import of_level
from harness.analysis.comparison.statistics.significance import LEVEL, of_pairs
from harness.runs.measuring import Key
from harness.runs.run import Run

Numbers = NDArray[np.float64]

LOADS = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
FASTER = 0.98
"""The factor by which the time of each job in the second run differs from that in the first run."""

TWINS = 10
OTHERS = 2_000
"""The number of twins for the truth, which is their mean difference."""

BETWEEN = 60.0
"""The mean time between two arrivals, in seconds."""

JITTER = 30.0
_LONG = 20_000_000
"""The number of jobs in the long run that determines percentiles for queues without a formula."""

_BATCH = 10.0  # the mean size of a batch in the bursty queue
_LONG_SHARE, _LONG_TIME, _SHORT_TIME = 0.1, 5.5, 0.5  # service times of M/G/1, whose mean is 1

_SLOWER = 30
"""The factor by which replayed traces run slower than single servers, so that some jobs wait for days."""

_POLICIES = ("kueue-classic", "fairsharing")
_QUEUES = ("a", "b", "c")
_NOMINAL = 8  # the cores of each queue
_MOST_ALIKE = 0.5
_NO_LACKS = (Lack(0, TWINS),) * 2  # these twins always have a value


class Queue(NamedTuple):
    """The arrivals and service times of jobs at a server. Both times have a mean of 1.

    Attributes:
        name: the name of the queue in tables.
        jobs: a function that draws service times and times between arrivals, given a generator and a number
            of jobs.
        wait: a function that returns the mean wait of the stationary queue for a load, in service times.
    """

    name: str
    jobs: Callable[[np.random.Generator, int], tuple[Numbers, Numbers]]
    wait: Callable[[float], float]


def _exponential(draw: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    return draw.exponential(size=count), draw.exponential(size=count)


def _hyperexponential(draw: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    mean = np.where(draw.random(count) < _LONG_SHARE, _LONG_TIME, _SHORT_TIME)
    return draw.exponential(size=count) * mean, draw.exponential(size=count)


def _batches(draw: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    first = draw.random(count) < 1 / _BATCH
    return draw.exponential(size=count), np.where(first, draw.exponential(_BATCH, size=count), 0.0)


def _pollaczek(square: float) -> Callable[[float], float]:
    """Returns the mean wait of M/G/1 (Pollaczek and Khinchine) from the second moment of service times."""
    return lambda load: load * square / (2 * (1 - load))


def _of_batches(load: float) -> float:
    """Returns the mean wait of jobs in geometric batches.

    A job waits for the batch and for earlier jobs in it.
    """
    of_batch = (_BATCH + 2 * _BATCH**2 - _BATCH) / _BATCH  # E[time^2] / E[time] of whole batches
    return load * of_batch / (2 * (1 - load)) + (_BATCH - 1)


QUEUES = (
    Queue("M/M/1", _exponential, _pollaczek(2.0)),
    Queue(
        "M/G/1 (squared variation 5.5)",
        _hyperexponential,
        _pollaczek(2 * (_LONG_SHARE * _LONG_TIME**2 + (1 - _LONG_SHARE) * _SHORT_TIME**2)),
    ),
    Queue("bursty (geometric batches of 10)", _batches, _of_batches),
)


def waits(services: Numbers, between: Numbers) -> Numbers:
    """Returns each job's wait by Lindley's recursion, which is the remaining work of earlier jobs.

    Args:
        services: the service time of each job, sorted by arrival.
        between: the time from each job's arrival to the next arrival.
    """
    walk = np.concatenate([[0.0], np.cumsum(services - between)[:-1]])
    found: Numbers = walk - np.minimum.accumulate(walk)
    return found


# --- twins ------------------------------------------------------------------------------------------------


def _twin_figures(
    draw: np.random.Generator, arrivals: Numbers, services: Numbers, count: int
) -> dict[str, Numbers]:
    """Returns the mean and the 95th percentile of the wait in `count` twins, for both runs."""
    found: dict[str, list[tuple[float, float]]] = {"mean": [], "p95": []}
    for _ in range(count):
        moved = np.maximum(arrivals + draw.uniform(-JITTER, JITTER, len(arrivals)), 0)
        order = np.argsort(moved, kind="stable")
        taken, between = services[order], np.diff(moved[order], append=0.0)
        both = [waits(factor * taken, between) for factor in (1.0, FASTER)]
        found["mean"].append((both[0].mean(), both[1].mean()))
        found["p95"].append((_p95(both[0]), _p95(both[1])))
    return {name: np.array(values) for name, values in found.items()}


def _p95(values: Numbers) -> float:
    place = 0.95 * (len(values) - 1)
    at = int(place)
    low, high = np.partition(values, (at, at + 1))[at : at + 2]
    return float(low + (place - at) * (high - low))


def twin_rows(
    repetitions: int, jobs: int, loads: Sequence[float] = LOADS, seed: int = 1, *, twins: int = TWINS
) -> Iterator[tuple[str, float, str, float, float]]:
    """Yields how often intervals over `twins` twins cover the truth, by queue, load and statistic.

    The last value of a row is the skewness of that trace's differences, which Student's t assumes to be 0.
    """
    for queue in QUEUES:
        for load in loads:
            draw = np.random.default_rng([seed, QUEUES.index(queue), LOADS.index(load)])
            services, between = queue.jobs(draw, jobs)
            services, arrivals = load * BETWEEN * services, BETWEEN * np.cumsum(between)
            truth = _twin_figures(draw, arrivals, services, OTHERS)
            figures = _twin_figures(draw, arrivals, services, twins * repetitions)
            for name, values in figures.items():
                mean = float(np.log(truth[name][:, 1] / truth[name][:, 0]).mean())
                every, covered = np.log(values[:, 1] / values[:, 0]), 0
                for of_one in values.reshape(repetitions, twins, 2):
                    interval = of_pairs(of_one[:, 0].tolist(), of_one[:, 1].tolist(), ratio=True)
                    assert interval is not None
                    covered += interval.low <= exp(mean) <= interval.high
                skew = float((((every - every.mean()) / every.std()) ** 3).mean())
                yield queue.name, load, name, covered / repetitions, skew


# --- one replay -------------------------------------------------------------------------------------------


def replay_rows(
    repetitions: int, jobs: int, seed: int = 1, *, long: int = _LONG
) -> Iterator[tuple[str, float, str, float, float | None]]:
    """Yields how often an interval is printed, and how often a printed interval covers, by queue and load."""
    for queue in QUEUES:
        for load in LOADS:
            draw = np.random.default_rng([seed, QUEUES.index(queue), LOADS.index(load)])
            truths = {"mean": log(FASTER * queue.wait(FASTER * load) / queue.wait(load))}
            printed, covered = 0, dict.fromkeys(("mean", "p95"), 0)
            for _ in range(repetitions):
                services, between = queue.jobs(draw, jobs)
                both = [pl.Series(waits(factor * load * services, between)) for factor in (1.0, FASTER)]
                paired = bootstrap.Paired(*both)
                if paired.congested("mean"):
                    continue
                if not printed:
                    truths["p95"] = _long_run(queue, load, long)
                printed += 1
                for name in covered:
                    interval = paired.interval(name)
                    assert interval is not None
                    covered[name] += interval.low <= exp(truths[name]) <= interval.high
            for name, count in covered.items():
                yield queue.name, load, name, printed / repetitions, count / printed if printed else None


def _long_run(queue: Queue, load: float, jobs: int) -> float:
    """Returns the logarithm of the factor between 95th percentiles, by a formula if there is one."""
    if queue is QUEUES[0]:
        both = [log(each / 0.05) / (1 / each - 1) for each in (load, FASTER * load)]
    else:
        services, between = queue.jobs(np.random.default_rng(7), jobs)
        both = [_p95(waits(factor * load * services, between)) for factor in (1.0, FASTER)]
    return log(both[1] / both[0])


# --- all headlines ----------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """The values of a metric under a policy, in each twin of a trace.

    Attributes:
        unit: the metric's unit.
        values: the values in the order of twins, or None if a twin has no value.
    """

    unit: str
    values: list[float | None]


Pools: TypeAlias = dict[Key, Pool]
"""The pool of each headline metric over all jobs, by resource."""


def contended(load: float, jobs: int, seed: int = 1) -> tuple[pl.DataFrame, str]:
    """Returns a trace with jobs of three queues, and the manifests of their shared quotas.

    Args:
        load: the requests of the jobs as a share of the cluster's capacity, while jobs arrive.
        jobs: the number of jobs. On average, a job arrives every half hour.
        seed: the seed of the trace.
    """
    draw = np.random.default_rng([seed, jobs])
    cores = np.array([1, 2, 4])[draw.integers(0, 3, jobs)]
    size = cores * (lasts := draw.exponential(size=jobs))
    arrives = _SLOWER * BETWEEN * np.cumsum(draw.exponential(size=jobs))
    seconds = lasts * load * len(_QUEUES) * _NOMINAL * arrives[-1] / size.sum()
    trace = pl.DataFrame(
        {
            "job_id": [f"j{number}" for number in range(jobs)],
            "submit_time": (arrives * 1e6).astype(np.int64),
            "duration": np.maximum(seconds * 1e6, 1e6).astype(np.int64),
            "queue": draw.choice(_QUEUES, jobs, p=(0.5, 0.3, 0.2)),
            "priority": (draw.random(jobs) < 0.1).astype(np.int32),
            "request.cpu": 1000 * cores,
        }
    ).with_columns(pl.col("submit_time", "duration").cast(pl.Duration("us")))
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    quota = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": str(_NOMINAL)}]}
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "preemption": {"reclaimWithinCohort": "LowerPriority", "withinClusterQueue": "LowerPriority"},
    }
    queues = [{**kueue, "kind": "ClusterQueue", "metadata": {"name": each}, "spec": spec} for each in _QUEUES]
    flavor = {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    return trace, yaml.safe_dump_all([flavor, *queues])


def pools_of(folder: Path, load: float, jobs: int, count: int) -> list[Pools]:
    """Returns the values of each policy in each twin, over the windows that twins of both policies share.

    Args:
        folder: the folder for runs and twins. Existing runs are not replayed again.
        load: the load of the trace.
        jobs: the number of jobs of the trace.
        count: the number of twins.
    """
    place = folder / f"load-{load}"
    place.mkdir(parents=True, exist_ok=True)
    trace, manifests = contended(load, jobs)
    trace.write_parquet(place / "trace.parquet")
    (place / "cluster.yaml").write_text(manifests)
    runs = [
        harness.replay(
            place / "trace.parquet", plugin=plugin, cluster=place / "cluster.yaml", output=place / "results"
        )
        for plugin in _POLICIES
    ]
    compared = harness.compare(runs, shake=f"{count},arrivals={_SLOWER * JITTER:.0f}s")
    assert compared.shake is not None
    shaken = Shaken(compared.runs, compared.shake, compared.twins, shared=True)
    return [
        {
            key: Pool(shaken.measured[number][key].unit, values)
            for key, values in shaken.outcome(number).items()
            if key[0] in HEADLINES and key[1] == "all"
        }
        for number in range(len(runs))
    ]


def coverage(
    pools: Sequence[Pools], repetitions: int, seed: int = 1
) -> Iterator[tuple[str, float | None, float]]:
    """Returns, for each headline, how often intervals of ten twins from a pool cover the pool's mean.

    It also returns the share of twins in which both policies have the same value. If these are most twins,
    intervals of ten twins are based on few differences or none, so their coverage is None. Because twins are
    drawn with replacement, the expected mean is exactly the mean of the pool. An interval of a factor is
    compared with the factor between the geometric means of the pool's twins with values above 0.
    """
    for number, metric in enumerate(HEADLINES):
        draw = np.random.default_rng([seed, number])
        base, other = (_only(of_policy, metric) for of_policy in pools)
        values = np.array([base.values, other.values], np.float64)
        values = values[:, np.isfinite(values).all(axis=0)]
        alike = float((values[0] == values[1]).mean())
        if alike > _MOST_ALIKE:
            yield metric, None, alike
            continue
        above = values[:, (values > 0).all(axis=0)]
        factor = float(np.log(above[1] / above[0]).mean()) if above.size else 0.0
        truths = {True: exp(factor), False: float((values[1] - values[0]).mean())}
        covered = 0
        for _ in range(repetitions):
            drawn = values[:, draw.integers(0, values.shape[1], TWINS)].tolist()
            interval = Paired(drawn, _NO_LACKS, base.unit).evidence(1).interval
            assert interval is not None
            truth = truths[interval.ratio]
            near = 1e-9 * max(abs(truth), float(abs(values).max()))
            covered += interval.low - near <= truth <= interval.high + near
        yield metric, covered / repetitions, alike


def _only(pools: Pools, metric: str) -> Pool:
    return next(pool for key, pool in pools.items() if key[0] == metric)


# --- real replays -----------------------------------------------------------------------------------------


def pools_in(folders: Sequence[Path]) -> Pools:
    """Returns the pools from folders with twins of one policy. Each twin has its own window."""
    tables = [Run.open(path).metrics for folder in folders for path in sorted(folder.iterdir())]
    found: Pools = {}
    for place, table in enumerate(tables):
        wanted = table.filter(pl.col("metric").is_in(HEADLINES), scope="all")
        for row in wanted.iter_rows(named=True):
            key = (row["metric"], "all", row["resource"])
            found.setdefault(key, Pool(row["unit"], [None] * len(tables))).values[place] = row["value"]
    return found


def calls(pools: Pools, pairs: int, seed: int = 1) -> int:
    """Returns how often two sets of ten twins of one policy have a headline that is called different.

    Args:
        pools: the pools of the policy.
        pairs: the number of pairs of sets.
        seed: the seed of the draws.
    """
    draw = random.Random(seed)  # noqa: S311 - drawn for statistics
    count = len(next(iter(pools.values())).values)
    chosen = (draw.sample(range(count), 2 * TWINS) for _ in range(pairs))
    return sum(_some_call(pools, each[:TWINS], each[TWINS:]) for each in chosen)


def _some_call(pools: Pools, ours: Sequence[int], theirs: Sequence[int]) -> bool:
    tests, large = {}, {}
    for key, (unit, values) in pools.items():
        sides = [[values[at] for at in side] for side in (ours, theirs)]
        interval = Paired(sides, _NO_LACKS, unit).evidence(1).interval
        if interval is not None:
            tests[key, 1] = interval.p
            large[key] = not interval.has_nothing
    family = Family(tests, [0, 1])
    return any(large[key] and family.corrected(key, 1, p) <= LEVEL for (key, _), p in tests.items())


# --- the command ------------------------------------------------------------------------------------------


@click.group(help=__doc__)
def main() -> None:
    """Chooses a table."""


@main.command()
@click.option("--repetitions", default=2_000, show_default=True)
@click.option("--jobs", default=20_000, show_default=True)
@click.option("--load", "loads", multiple=True, type=click.Choice([str(load) for load in LOADS]))
@click.option("--twins", "count", default=TWINS, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Of the traces.")
def twins(repetitions: int, jobs: int, loads: tuple[str, ...], count: int, seed: int) -> None:
    """Measure intervals over twins."""
    chosen = [float(load) for load in loads] or LOADS
    cells: dict[str, list[str]] = {}
    for name, _, statistic, covered, skew in twin_rows(repetitions, jobs, chosen, seed, twins=count):
        text = f"{100 * covered:.1f} %" + (f" (skewness {skew:+.1f})" if abs(skew) >= 1 else "")
        cells.setdefault(f"{name} | {statistic}", []).append(text)
    _table("queue | statistic", chosen, cells)


@main.command()
@click.option("--repetitions", default=2_000, show_default=True)
@click.option("--jobs", default=20_000, show_default=True)
def replay(repetitions: int, jobs: int) -> None:
    """Measure intervals of one replay."""
    click.echo("| queue | load | statistic | printed | covered where printed |")
    click.echo("| --- | ---: | --- | ---: | ---: |")
    for name, load, statistic, printed, covered in replay_rows(repetitions, jobs):
        share = "-" if covered is None else f"{100 * covered:.1f} %"
        click.echo(f"| {name} | {load} | {statistic} | {100 * printed:.1f} % | {share} |")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--repetitions", default=10_000, show_default=True)
@click.option("--jobs", default=1_000, show_default=True)
@click.option("--pool", "count", default=200, show_default=True, help="Twins that sets are drawn from.")
@click.option("--load", "loads", multiple=True, type=float, default=LOADS[:-1], show_default=True)
@click.option("--pairs", default=400, show_default=True, help="Of sets of one policy.")
def headlines(
    folder: Path, repetitions: int, jobs: int, count: int, loads: tuple[float, ...], pairs: int
) -> None:
    """Measure intervals of all headlines over twins, at every load. A folder keeps the runs and twins."""
    covered: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    for load in loads:
        pools = pools_of(folder, load, jobs, count)
        for metric, share, alike in coverage(pools, repetitions):
            text = f"({100 * alike:.0f} % alike)" if share is None else f"{100 * share:.1f} %"
            covered.setdefault(f"`{metric}`", []).append(text)
        for policy, of_policy in zip(_POLICIES, pools, strict=True):
            found = 100 * calls(of_policy, pairs) / pairs
            called.setdefault(f"`{policy}`", []).append(f"{found:.1f} %")
    _table("headline", loads, covered)
    click.echo("\nOne policy against itself:\n")
    _table("policy", loads, called)


@main.command()
@click.option("--repetitions", default=20_000, show_default=True)
def levels(repetitions: int) -> None:
    """Measure intervals of means, by Student's method and on the scale of logarithms."""
    draw = np.random.default_rng(1)
    cases: Mapping[str, tuple[float, Callable[[tuple[int, int]], NDArray[np.float64]]]] = {
        "normal, standard deviation 0.3": (1.0, lambda size: np.abs(draw.normal(1, 0.3, size))),
        "exponential": (1.0, lambda size: draw.exponential(1, size)),
        "exponential, three fifths 0": (
            0.4,
            lambda size: draw.exponential(1, size) * (draw.random(size) < 0.4),
        ),
    }
    sizes = (3, 5, 10)
    head = " | ".join(f"{size} values: Student's | logarithm" for size in sizes)
    click.echo(f"| distribution with mean 1 or 0.4 | {head} |\n| --- |{' ---: |' * 2 * len(sizes)}")
    for name, (truth, drawn) in cases.items():
        cells = []
        for size in sizes:
            rows = drawn((repetitions, size)).tolist()
            found = [(of_pairs([0.0] * size, row, ratio=False), of_level(row)) for row in rows]
            for several in zip(*found, strict=True):
                hits = sum(each is not None and each.low <= truth <= each.high for each in several)
                cells.append(f"{100 * hits / repetitions:.1f} %")
        click.echo(f"| {name} | {' | '.join(cells)} |")


def _table(head: str, loads: Sequence[float], cells: Mapping[str, Sequence[str]]) -> None:
    first, *others = loads
    click.echo(f"| {head} | load {first} | {' | '.join(map(str, others))} |".replace("|  |", "|"))
    click.echo(f"|{' --- |' * (head.count('|') + 1)}{' ---: |' * len(loads)}")
    for name, texts in cells.items():
        click.echo(f"| {name} | {' | '.join(texts)} |")


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--pairs", default=200, show_default=True)
def aa(folders: tuple[Path, ...], pairs: int) -> None:
    """Compare a policy with itself, from real replays. Folders of the same policy are joined."""
    of_policy: dict[str, list[Path]] = {}
    for folder in folders:
        of_policy.setdefault(folder.name.rpartition("-")[0], []).append(folder)
    click.echo("| policy | twins | pairs | called different |\n| --- | ---: | ---: | ---: |")
    for name, several in of_policy.items():
        pools = pools_in(several)
        count, called = len(next(iter(pools.values())).values), calls(pools, pairs)
        click.echo(f"| `{name}` | {count} | {pairs} | {called} ({100 * called / pairs:.1f} %) |")


if __name__ == "__main__":
    main()
