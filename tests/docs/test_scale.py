"""The commands of docs/scale.md with some hundred jobs in place of millions."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import called
from doc_pages import ROOT, commands


@pytest.mark.parametrize("name", [pytest.param("scale", marks=pytest.mark.slow), "windows"])
def test_traces_fit_the_clusters_that_scripts_make(name: str, tmp_path: Path) -> None:
    """Teams of the specification are the queues of the cluster, and windows are measured."""
    every = list(commands("docs/scale.md"))
    clusters = [shlex.split(each.split(">")[0]) for each in every if "many_queues" in each]
    _, *script = clusters[("scale", "windows").index(name)]
    trace, manifests = tmp_path / f"{name}.parquet", tmp_path / f"{name}.cluster.yaml"
    spec = ROOT / "docs" / "examples" / f"{name}.yaml"
    assert f"harness trace generate docs/examples/{name}.yaml -o {name}.parquet --seed 7" in every
    assert called(["trace", "generate", str(spec), "-o", str(trace), "--seed", "7", "--jobs", "100"]) == 0
    manifests.write_text(_printed(*script))
    assert called(["trace", "check", str(trace), "--cluster", str(manifests)]) == 0
    if name == "scale":
        return
    measured = shlex.split(next(each for each in every if "error_of_windows" in each))[1:]
    measured[measured.index("14d")] = "1h"
    folder = str(tmp_path)
    table = _printed(*(each.replace("windows.", f"{folder}/windows.") if "scripts" not in each else each
                       for each in measured), "-o", folder).splitlines()  # fmt: skip
    assert table[0].startswith("the whole: 100 jobs; ")
    assert [row.split(" | ")[0] for row in table[3:]] == ["| 0d", "| 1d", "| 3d"]
    assert table[3].split(" | ")[2] == "1.00 x"
    assert "100.0%" in table[4]  # a day before each of its hours is all of it


def _printed(*script: str) -> str:
    return subprocess.run(
        [sys.executable, *script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
