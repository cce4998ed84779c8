"""The dump of a busy cluster by which a page says what a forecast costs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.runs.estimates.present import now_of

SCRIPT = Path(__file__).parents[2] / "scripts" / "busy_dump.py"


def test_as_many_workloads_run_and_wait_as_are_asked_for(tmp_path: Path) -> None:
    """Kueue takes them over: nobody holds what the cluster does not have."""
    spec = importlib.util.spec_from_file_location("busy_dump", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(script.manifests(40, 30))}))
    now = now_of(load_cluster(path), load().policy("kueue-classic"), None)
    assert (len(now.running), len(now.waiting)) == (40, 30)
