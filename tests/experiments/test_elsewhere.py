"""The files for batch systems: each makes one item by a command that there is, and names what it shares."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from harness.cli.sweep import sweep

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize("name", ["sweep.sbatch", "sweep-job.yaml", "sweep-matrix.yml"])
def test_a_file_for_a_batch_system_makes_one_item(name: str) -> None:
    """Its command is understood as it stands, with a number in the place of the system's own."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    found = re.findall(r"harness (sweep run [^'\n]+)", text)
    assert found
    for line in found:
        numbered = re.sub(r'"\$[A-Z_]*(ID|INDEX)"|\$\{\{[^}]*\}\}', "7", line).replace(
            '"$SPEC"', "sweep.yaml"
        )
        context = click.Context(sweep)
        sweep.parse_args(context, shlex.split(numbered)[1:])
        assert context.params["words"] == ("run", "sweep.yaml")
        assert context.params["item"] == 7


def test_the_job_of_kubernetes_has_an_index_for_each_item() -> None:
    """It is indexed, as the command reads the index."""
    job = yaml.safe_load((EXAMPLES / "sweep-job.yaml").read_text(encoding="utf-8"))
    assert job["spec"]["completionMode"] == "Indexed"
    assert "JOB_COMPLETION_INDEX" in str(job["spec"]["template"]["spec"]["containers"][0]["command"])


def test_the_matrix_brings_its_items_together() -> None:
    """What one job uploads is what the other one downloads into the same folder."""
    jobs = yaml.safe_load((EXAMPLES / "sweep-matrix.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["items"]["steps"][-1]["with"]["path"] == "results"
    (download,) = (step for step in jobs["table"]["steps"] if "download-artifact" in step.get("uses", ""))
    assert download["with"] == {"pattern": "item-*", "path": "results", "merge-multiple": True}
