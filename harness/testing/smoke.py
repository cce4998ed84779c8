"""Tests that an installation works: `pytest --pyargs harness.testing.smoke`.

The tests don't need a checkout. They replay parts of a bundled trace with the built-in plugins, check each
run independently, and run the commands that show a run.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import harness
from harness.analysis.export.openmetrics import write_openmetrics
from harness.analysis.export.perfetto import write_perfetto
from harness.base.units import HOUR
from harness.plugins import load
from harness.runs.inputs import read_cluster, read_trace
from harness.testing.checks import check_run
from harness.trace.bundled import BUNDLED, bundled_path

PLUGINS = ("none", "backfill", "default-preemption", "kueue-classic", "fairsharing", "elasticquota", "auto")


def test_the_command_answers() -> None:
    """The commands for the version, the help and the list of plugins work."""
    for arguments in (["--version"], ["--help"], ["plugins"]):
        ran = subprocess.run(  # noqa: S603 - all words are constants
            [sys.executable, "-m", "harness", *arguments], capture_output=True, text=True, check=True
        )
        assert ran.stdout
    assert all(name in ran.stdout for name in PLUGINS)


def test_bundled_traces_are_there() -> None:
    """The bundled traces are installed with their clusters."""
    for name in BUNDLED:
        assert bundled_path(name).is_file()
    assert bundled_path("mix").with_suffix(".cluster.yaml").is_file()


def test_replays_are_what_could_be(tmp_path: Path) -> None:
    """Every plugin replays three hours of the synthetic mix on its nodes without a violation."""
    path = bundled_path("mix")
    trace = read_trace(path, load())
    cluster = read_cluster(path.with_suffix(".cluster.yaml"), trace)
    for plugin in PLUGINS:
        run = harness.replay(path, plugin=plugin, until="3h", output=tmp_path)
        assert run.info["outcome"]["jobs"] > 0
        assert not check_run(run, cluster, trace)


def test_a_run_can_be_looked_at(tmp_path: Path) -> None:
    """You can compare, report and export runs, and an equal replay reuses the stored run."""
    path = bundled_path("mix")
    one, other = (
        harness.replay(path, plugin=plugin, until="2h", output=tmp_path) for plugin in ("none", "fairsharing")
    )
    assert not harness.compare([one, other]).to_polars().is_empty()
    assert harness.make_report([one, other]).markdown().startswith("# mix: none, fairsharing")
    trace, series = io.BytesIO(), io.BytesIO()
    write_perfetto(other, other.window, trace)
    write_openmetrics(other, other.window, HOUR, series)
    assert trace.getvalue()
    assert series.getvalue().endswith(b"# EOF\n")
    assert harness.replay(path, plugin="none", until="2h", output=tmp_path).stored
