"""Kueue's scheduler against the figures that were measured with the real code.

The corpora are not part of the repository: without them beside the checkout (or where `HARNESS_CORPORA` says)
these benchmarks are skipped.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.base.collector import seldom_collected
from harness.plugins.conformance import read_cases
from harness_plugins.kueue.conformance import cycles
from harness_plugins.kueue.conformance.targets import question

_BESIDE = Path(__file__).parents[2].parent / "shared" / "conformance"
CORPORA = Path(os.environ.get("HARNESS_CORPORA", _BESIDE))
REPEATS = 5


def corpus(name: str) -> Path:
    """A recorded corpus.

    Raises:
        NotImplementedError: it is not there, which makes asv skip the benchmark.
    """
    path = CORPORA / f"{name}.jsonl.gz"
    if not path.exists():
        raise NotImplementedError(f"{path} is not there; set HARNESS_CORPORA to the folder of the corpora")
    return path


class TargetSelection:
    """Whom to preempt, in trees of 20 to 50 queues with 300 to 1,000 holders of quota."""

    params = ("classic", "fair")
    param_names = ("preemption",)
    unit = "x"
    timeout = 600

    def setup(self, preemption: str) -> None:
        """The states that the real code was asked about; to build them is not part of what is measured."""
        cases = read_cases([corpus("kueue-targets-stress")], features=[preemption])
        self.questions = [(question(case), case["given"]["kueueCpuMicros"]) for case in cases]

    def track_time_against_kueue(self, preemption: str) -> float:
        """The median over all questions: our CPU time as a multiple of the real code's."""
        return statistics.median(
            _median_micros(partial(search.find_targets, incoming)) / micros
            for (_, incoming, search), micros in self.questions
        )


class Performance:
    """Kueue's own performance set-ups: a trace of cycles, decided but not written anywhere."""

    params = ("baseline", "baseline-fair", "large")
    param_names = ("setup",)
    unit = "CPU-s"
    timeout = 600

    def setup(self, setup: str) -> None:
        """The recorded trace."""
        (self.case,) = read_cases([corpus(f"kueue-perf-{setup}")])

    def track_cpu_seconds(self, setup: str) -> float:
        """The whole set-up from manifests to counts."""
        began = time.process_time()
        with seldom_collected:  # as commands do it
            cycles.answer(self.case)
        return time.process_time() - began


def _median_micros(call: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        call()
        spent.append((time.process_time_ns() - began) / 1000)
    return statistics.median(spent)
