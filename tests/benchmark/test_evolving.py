"""The example of an evolutionary loop improves the order in which a policy starts jobs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import harness
from harness.studies.benchmark.suite import Suite

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "evolve_order.py"


@pytest.fixture(scope="module")
def loop() -> ModuleType:
    """The script, which is in no package."""
    spec = spec_from_file_location("evolve_order", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_policy_replays_and_its_weights_matter(loop: ModuleType, small: Suite, scale: Path) -> None:
    """Those that wait least come first, or last: other weights are another score."""
    scores = []
    for weights in (loop.START, (-1.0, 0.0, 0.0, 0.0, 0.0)):
        source = loop.POLICY.format(weights=weights)
        found = harness.evaluate(source, small.task("morning"), twins=1, output=scale, brief=True)
        assert found.error == ""
        scores.append(found.score)
    assert scores[0] != scores[1]
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.slow
def test_the_loop_finds_a_better_rule(tmp_path: Path) -> None:
    """The winner scores more on the weeks of the search, and both are reported on weeks of seeds."""
    command = [sys.executable, str(SCRIPT), "hpc2n", "4"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    found = [float(line.split()[1 if line.startswith("start") else 2]) for line in lines[:-2]]
    assert found == sorted(found)
    assert len(found) > 1
    assert [line.split(":")[0] for line in lines[-2:]] == ["weeks of seed 1", "weeks of seed 2"]
