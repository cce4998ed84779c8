"""Prints the manifests for docs/scale.md, with a cluster where ClusterQueues share all nodes equally.

    python scripts/many_queues.py --queues 200 --nodes 5000 --divisions 10 > scale.cluster.yaml

Queues are named team-000, team-001, ... like 200 equal tenants of `harness trace generate`. Each queue is in
the cohort of its division, and all divisions are in one cohort. Without divisions, all queues are in that
cohort.
"""

from __future__ import annotations

from typing import Any

import click
import yaml

from harness.base.units import format_amount, to_amount

_NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8"}
_VERSION = "kueue.x-k8s.io/v1beta2"


def manifests(queues: int, nodes: int, divisions: int) -> list[dict[str, Any]]:
    """Returns the nodes, their flavor, the cohorts and the ClusterQueues."""

    def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}

    template = {"allocatable": _NODE}
    pool = {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "node"}}
    found = [pool | {"spec": {"count": nodes, "template": template}}]
    found += [kueue("ResourceFlavor", "node"), kueue("Cohort", "company")]
    found += [kueue("Cohort", f"division-{number}", parentName="company") for number in range(divisions)]
    share = {name: to_amount(name, amount) * nodes // queues for name, amount in _NODE.items()}
    resources = [{"name": name, "nominalQuota": format_amount(name, share[name])} for name in _NODE]
    for number in range(queues):
        found.append(
            kueue(
                "ClusterQueue",
                f"team-{number:0{len(str(queues - 1))}}",
                cohortName=f"division-{number % divisions}" if divisions else "company",
                namespaceSelector={},
                preemption={"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                resourceGroups=[
                    {"coveredResources": list(_NODE), "flavors": [{"name": "node", "resources": resources}]}
                ],
            )
        )
    return found


@click.command()
@click.option("--queues", type=int, required=True)
@click.option("--nodes", type=int, required=True)
@click.option("--divisions", type=int, default=0, help="cohorts that the queues are spread over")
def main(queues: int, nodes: int, divisions: int) -> None:
    """Prints the manifests."""
    click.echo(yaml.safe_dump_all(manifests(queues, nodes, divisions), sort_keys=False), nl=False)


if __name__ == "__main__":
    main()
