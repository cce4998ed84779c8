"""docs/preemption-pages.md: each row that is done has a test, and each that is not says what follows."""

from __future__ import annotations

import re
from pathlib import Path

from harness.cluster.load import cluster_from

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "preemption-pages.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what the page says"))
]


def test_every_row_is_backed() -> None:
    """By tests that exist where it is done; else by its consequence."""
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (HERE / "tests").rglob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)\(", tests, re.MULTILINE))
    assert len(ROWS) > 60
    for what, state, consequence, *named in ROWS:
        assert state in ("done", "approximated", "not"), what
        if state == "done":
            names = re.findall(r"`(test_\w+)`", " ".join(named))
            assert names, what
            assert set(names) <= known, what
        else:
            assert consequence, what


def test_what_the_page_says_is_warned_of_is_warned_of() -> None:
    """The annotations of a PriorityClass, and the kinds of OpenShift's operators, with what is assumed."""
    toleration = "preemption-toleration.scheduling.sigs.k8s.io/minimum-preemptable-priority"
    found = cluster_from(
        [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "tolerant", "annotations": {toleration: "10000"}},
                "value": 8000,
            },
            {
                "apiVersion": "kueue.openshift.io/v1",
                "kind": "Kueue",
                "metadata": {"name": "cluster"},
                "spec": {"config": {"preemption": {"preemptionPolicy": "FairSharing"}}},
            },
            {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "cluster"}},
        ],
        "test",
    )
    toleration_ignored, kueue, scheduler = found.warnings
    assert toleration_ignored == (
        f"PriorityClass tolerant: metadata.annotations.{toleration} is not modelled: "
        "pods of a higher priority can preempt pods of this class at any time"
    )
    assert kueue.startswith(
        "Kueue (kueue.openshift.io/v1): 1 object is not read: harness reads preemption, fair"
    )
    assert kueue.endswith(
        "add the ConfigMap kueue-manager-config, which the operator derives from this object"
    )
    assert scheduler == (
        "Scheduler (config.openshift.io/v1): 1 object is not read: kube-scheduler's default profile decides, "
        "even if this object names another profile"
    )
