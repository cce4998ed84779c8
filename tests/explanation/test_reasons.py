"""Every wait has its reason, and sentences say nothing but what stands in the record: properties of runs."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest
from sentences import contradictions, silent, unrecorded

import harness
from harness.base.errors import HarnessError
from harness.runs.run import Run
from harness.testing.worlds import random_world

PLUGINS = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota", "backfill")
FIRST, END = (int(seed) for seed in os.environ.get("WORLDS", "0:500").split(":"))
TRACES = Path(__file__).parents[2] / "traces"
BUNDLED = ("mix", "hpc2n", "openb", "philly")


def faults(run: Run, most: int | None = None) -> list[str]:
    """What is wrong with the reasons of a run."""
    wrong = [f"{job}: waits for no reason" for job in silent(run)]
    return [*wrong, *islice(contradictions(run, most), 5), *islice(unrecorded(run), 5)]


def of_world(seed: int, folder: Path) -> list[str]:
    """The same of a random world with every plugin that takes it."""
    world, wrong = random_world(seed), []
    for plugin in PLUGINS:
        try:
            run = world.replay(plugin, folder)
        except HarnessError:
            continue  # the plugin does not take this cluster, which tests of worlds look at
        wrong += [f"{seed} {plugin}: {fault}" for fault in faults(run)]
    return wrong


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.nightly), 1])
def test_reasons_of_small_worlds(seed: int, tmp_path: Path) -> None:
    """No wait of ten minutes without a reason; numbers and names are those of the record."""
    wrong = of_world(seed, tmp_path)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, END))
def test_reasons_of_a_world(seed: int, tmp_path: Path) -> None:
    """The same of each of five hundred."""
    wrong = of_world(seed, tmp_path)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("name", BUNDLED)
def test_reasons_of_bundled_traces(name: str, plugin: str, tmp_path: Path) -> None:
    """The same of bundled traces, with a thousand jobs taken apart."""
    try:
        run = harness.replay(TRACES / f"{name}.parquet", plugin=plugin, output=tmp_path)
    except HarnessError:
        pytest.skip("the plugin does not take the trace's cluster")
    assert not faults(run, 1000)
