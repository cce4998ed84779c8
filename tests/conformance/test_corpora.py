"""Recorded decisions of the real components: the named cases and the first ones of each random corpus."""

from __future__ import annotations

import gzip
import os
import re
from itertools import islice
from pathlib import Path

import pytest

from harness.plugins import loading as plugins
from harness.plugins.conformance import Report, check, read_cases

HERE = Path(__file__).parent
WHOLE = HERE.parents[2] / "shared" / "conformance"
"""Where the whole corpora are, on machines that have them."""

CORPORA = (
    "kube-preempt-named",
    "kube-preempt-dev",
    "kube-cycles-named",
    "kube-cycles-dev",
    "kube-cycles-wide-dev",
    "kube-large-named",
    "kube-large-dev",
    "kube-events-named",
    "kube-events-dev",
    "kube-large-events-named",
    "kube-large-events-dev",
    "elasticquota-upstream",
    "elasticquota-dev",
    "koordinator-runtime-dev",
    "koordinator-preempt-dev",
    "kueue-targets-upstream",
    "kueue-targets-random-dev",
    "kueue-targets-focus-dev",
    "kueue-targets-stress",
    "kueue-cycles-upstream",
    "kueue-cycles-dev",
    "kueue-cycles2-dev",
    "kueue-deep-dev",
    *(f"kueue-cycles-v0.{minor}-dev" for minor in range(13, 20)),
    "kueue-afs-dev",
    "kueue-podsready-dev",
    "kueue-events-dev",
    "kueue-tas-dev",
    "kueue-tas-cycles-dev",
    "kueue-tas-nodes-dev",
    "kueue-perf-baseline",
    "kueue-perf-baseline-fair",
    "kueue-perf-large",
)

COUNTED = (
    "kueue-cycles-upstream",
    "kueue-cycles-dev",
    "kueue-cycles2-dev",
    "kueue-deep-dev",
    "kueue-afs-dev",
    "kueue-podsready-dev",
    "kueue-events-dev",
)
"""Corpora with judged cycle numbers: a cycle that is passed over and not counted shows only there."""


def disagreements(report: Report) -> list[str]:
    """The first cases that differ, each with its first difference."""
    return [f"{verdict.id}: {verdict.error or verdict.differences[0]}" for verdict in report.differing[:5]]


excerpts = pytest.mark.parametrize(
    "path", sorted(HERE.glob("*.jsonl.gz")), ids=lambda path: path.name[: -len(".jsonl.gz")]
)


def reproduced(path: Path, every: int = 1) -> None:
    """Each case, or every so manieth, is answered as the component's own code answered it."""
    cases = islice(read_cases([path]), 0, None, every)
    report = check(cases, plugins.load(), counters=path.name.startswith(COUNTED))
    assert report.total.cases > 0
    assert disagreements(report) == []


@excerpts
def test_recorded_decisions_are_reproduced(path: Path) -> None:
    """All cases that somebody wrote, and every twentieth of those that were drawn at random."""
    reproduced(path, 20 if "-dev-first-" in path.name else 1)


@pytest.mark.slow
@excerpts
def test_all_recorded_decisions_are_reproduced(path: Path) -> None:
    """The same for every case of the excerpts, unless the next test asks it as one of the whole corpus."""
    name = re.sub(r"-dev(-first)?-\d+$", "-dev", path.name[: -len(".jsonl.gz")])
    if name in CORPORA and whole(name).is_file():
        with gzip.open(path) as some, gzip.open(whole(name)) as every:
            assert set(some) <= set(every)
    else:
        reproduced(path)


def whole(name: str) -> Path:
    """Where a whole corpus is, on machines that have it."""
    return WHOLE / f"{name}.jsonl.gz"


def size(name: str) -> int:
    """The size of a whole corpus: several workers begin with the largest ones."""
    return whole(name).stat().st_size if whole(name).is_file() else 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CORPORA, key=size, reverse=True))
def test_whole_corpora_are_reproduced(name: str) -> None:
    """The same for all cases there are, in two processes unless several workers ask already."""
    if not whole(name).is_file():
        pytest.skip("the whole corpora are not here: they belong in ../shared/conformance")
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
    report = check(read_cases([whole(name)]), plugins.load(), jobs=jobs, counters=name in COUNTED)
    assert disagreements(report) == []
