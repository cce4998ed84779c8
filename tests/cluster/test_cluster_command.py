"""Rules of `harness cluster check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.base.errors import InputError
from harness.cli.cluster import cluster

TEXT = """\
apiVersion: harness/v1
kind: NodePool
metadata: {name: gpu}
spec: {count: 80, template: {allocatable: {cpu: 48, memory: 512Gi, nvidia.com/gpu: 8}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: all
  admissionChecks: [x]
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 9}, {name: memory, nominalQuota: 36Gi}]}]
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 100E}]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
globalDefault: true
"""


def check(path: Path, *options: str) -> Result:
    """What the command answers."""
    return CliRunner().invoke(cluster, ["check", *options, str(path)])


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A file of manifests."""
    path = tmp_path / "cluster.yaml"
    path.write_text(TEXT)
    return path


def test_several_files_form_one_cluster(manifests: Path, tmp_path: Path) -> None:
    """As a shell lists them; commas between them mean the same."""
    more = tmp_path / "more.yaml"
    more.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: n}}")
    apart = check(manifests, str(more))
    assert apart.exit_code == 0
    assert apart.stdout.startswith(
        f"{more},{manifests}: 80 nodes, 1 flavor, 1 cluster queue, 1 cohort, 1 nam"
    )
    assert check(Path(f"{more},{manifests}")).stdout == apart.stdout


def test_tables_show_what_a_replay_would_take(manifests: Path) -> None:
    """Counts, the nodes' total, nominal quotas by flavor, and classes; warnings are talk."""
    result = check(manifests)
    assert result.exit_code == 0
    assert result.stdout == (
        f"{manifests}: 80 nodes, 1 flavor, 1 cluster queue, 1 cohort\n\nresource        total of 80 "
        "nodes\n──────────────  ─────────────────\ncpu             3840\nmemory          "
        "40Ti\nnvidia.com/gpu  640\n\n        name    cohort  flavor   cpu  memory  nvidia.com/gpu\n──────  "
        "──────  ──────  ───────  ───  ──────  ──────────────\nqueue   team-a  all     default  9    "
        "36Gi\nqueue   team-a  all     spot                  unlimited\ncohort  all\n\nno quota exceeds the "
        "capacity of its flavors' nodes\n\nclass          name  value\n─────────────  ────  "
        "──────────────────────\nPriorityClass  high  1,000 (global default)\n"
    )
    assert result.stderr.splitlines() == [
        (
            "warning: ClusterQueue team-a: spec.admissionChecks is not modelled: "
            "harness treats every admission check as ready at once; the option "
            "admissionCheckDelay makes checks ready later"
        ),
        "warning: ClusterQueue team-a: there is no ResourceFlavor spot, so Kueue keeps the queue inactive",
    ]


def test_json_holds_the_same(manifests: Path) -> None:
    """Amounts are integers, and the warnings are in it too."""
    content = json.loads(check(manifests, "--json").stdout)
    assert content["nodes"] == {
        "count": 80,
        "total": {"cpu": 3_840_000, "memory": 40 * 2**40, "nvidia.com/gpu": 640},
    }
    assert content["cluster_queues"][0]["nominal"]["default"] == {"cpu": 9000, "memory": 36 * 2**30}
    assert content["priority_classes"] == {"high": 1000}
    assert content["default_priority"] == 1000
    assert len(content["digest"]) == 64
    assert len(content["warnings"]) == 2


def test_pod_groups_are_counted_and_the_selected_plugin_is_named(tmp_path: Path) -> None:
    """What a KubeSchedulerConfiguration selects where no plugin is named."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\n"
        "spec: {minMember: 2}\n"
        "---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "preemptionAlgorithm: ElasticQuota\n"
    )
    assert check(path).stdout == (
        f"{path}: 1 pod group\nthe KubeSchedulerConfiguration selects the plugin elasticquota\n"
    )
    content = json.loads(check(path, "--json").stdout)
    assert content["pod_groups"] == [{"namespace": "default", "name": "g", "min_member": 2}]
    assert content["plugin"] == "elasticquota"


WORK = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep, namespace: web}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: web}
spec: {clusterQueue: team-a}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: web, labels: {app: web}}
spec: {NODEcontainers: [{resources: {requests: {cpu: 500m}}}]}
"""
WORKLOAD = """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: NAME, namespace: web}
spec:
  queueName: lq
  priority: 3
  ACTIVEpodSets: [{count: 2, template: {spec: {containers: [{resources: {requests: {cpu: 2}}}]}}}]
"""
HOLDS = """\
status:
  admission: {clusterQueue: team-a}
  conditions: [{type: QuotaReserved, status: "True"}]
"""


def test_workloads_pods_and_budgets_are_listed(manifests: Path) -> None:
    """Counted by queue and namespace for people, each by itself in JSON."""
    pods = [
        POD.replace("NAME", name).replace("NODE", f"nodeName: {node}, " if node else "")
        for name, node in (("a", "n1"), ("b", "n1"), ("c", ""), ("d", "m1"))
    ]
    workloads = [WORKLOAD.replace("NAME", name).replace("ACTIVE", "") for name in ("w1", "w2")]
    workloads[0] += HOLDS
    workloads.append(WORKLOAD.replace("NAME", "w3").replace("ACTIVE", "active: false\n  "))
    manifests.write_text("\n".join([TEXT + "---", WORK, *pods, *workloads]))
    result = check(manifests)
    assert result.exception is None, result.exception
    lines = result.stdout.splitlines()
    assert lines[0].endswith("3 Workloads, 4 Pods, 1 disruption budget")
    rows = [line.split("  ") for line in lines if line.startswith(("team-a", "web"))]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["team-a", "1", "1", "1", "0"],
        ["web", "2", "1", "0", "1"],
        ["web/keep", "50%", "4"],
    ]
    content = json.loads(check(manifests, "--json").stdout)
    assert content["workloads"][0] == {
        "namespace": "web",
        "name": "w1",
        "queue": "lq",
        "cluster_queue": "team-a",
        "state": "holds quota",
        "priority": 3,
        "pods": 2,
        "requests": {"cpu": 4000},
    }
    assert [each["state"] for each in content["workloads"]] == ["holds quota", "waits", "deactivated"]
    assert [each["state"] for each in content["pods"]] == ["runs", "runs", "waits", "on an unknown node"]
    assert content["pods"][0]["requests"] == {"cpu": 500}
    assert content["disruption_budgets"][0]["min_available"] == "50%"


def test_all_faults_are_listed(tmp_path: Path) -> None:
    """Also where there are more than an error message usually shows."""
    path = tmp_path / "bad.yaml"
    path.write_text(
        "---\n".join(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{n}}}\n" for n in range(50))
    )
    result = check(path)
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 2
    lines = str(result.exception).splitlines()
    assert len(lines) == 50
    assert lines[7] == (
        f"{path}: document 8 (line 28), Node n7: status.allocatable: "
        "is missing, so nothing can run on this node"
    )


def test_help_begins_with_a_sentence_and_ends_with_examples() -> None:
    """For the group and for the command."""
    for arguments in (["--help"], ["check", "--help"]):
        lines = CliRunner().invoke(cluster, arguments).stdout.splitlines()
        assert lines[2].endswith(".")
        assert lines[-1].strip().startswith("harness cluster check ")
