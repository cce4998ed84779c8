"""A Slurm cluster as manifests: real answers of its tools, rules by hand, and damaged files."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

import harness
from harness.base.errors import ClusterError
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.manifests import dump_yaml
from harness.cluster.model import Cluster
from harness.cluster.slurm import FromSlurm, from_slurm
from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.validate import unknown_names

DUMPS = Path(__file__).parents[1] / "plugins" / "readers" / "slurm"
NODE = (
    "NodeName=n1 Arch=x86_64\n   CPUEfctv=8 CPUTot=8\n   RealMemory=1000 Weight=1\n"
    "   State=IDLE ThreadsPerCore=1\n   CfgTRES=cpu=8,mem=1000M,billing=8\n"
)
QOS = "Name|Priority|Preempt|PreemptMode|MaxWall\n"
TREE = "Account|User|Share|GrpTRES\nroot||1|\n"


def converted(folder: Path, nodes: str = NODE, qos: str = "", assoc: str = "") -> FromSlurm:
    """What becomes of these answers."""
    paths = {}
    for name, text in (("nodes", nodes), ("qos", qos), ("assoc", assoc)):
        if text:
            paths[name] = folder / name
            paths[name].write_text(text, encoding="utf-8", newline="")
    return from_slurm(paths["nodes"], qos=paths.get("qos"), associations=paths.get("assoc"))


def test_without_accounts_the_command_says_that_there_are_no_queues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kueue's plugins would reject every job."""
    (tmp_path / "nodes").write_text(NODE, encoding="utf-8")
    (tmp_path / "assoc").write_text(f"{TREE}a||1|\n", encoding="utf-8")
    assert called(["cluster", "from-slurm", str(tmp_path / "nodes")]) == 0
    assert "without --assoc there are no queues" in capsys.readouterr().err
    words = ["cluster", "from-slurm", str(tmp_path / "nodes"), "--assoc", str(tmp_path / "assoc")]
    assert called(words) == 0
    assert "without --assoc" not in capsys.readouterr().err


def loaded(found: FromSlurm) -> Cluster:
    """The cluster, which manifests give without a warning."""
    cluster = cluster_from(found.manifests, "slurm")
    assert not cluster.warnings
    return cluster


@pytest.fixture
def real() -> FromSlurm:
    """A cluster of five nodes."""
    return from_slurm(DUMPS / "nodes.txt", qos=DUMPS / "qos.txt", associations=DUMPS / "assoc.txt")


def test_nodes_have_what_slurm_can_grant(real: FromSlurm) -> None:
    """CPUs, memory and GPUs with their type; a node that is down takes no pod."""
    nodes = loaded(real).nodes
    assert sorted(nodes) == ["node1", "node2", "node3", "node4", "node5"]
    assert nodes["node1"].allocatable == {
        "cpu": 16_000, "memory": 65536 * 2**20, "nvidia.com/gpu": 4, "pods": 110,
    }  # fmt: skip
    assert nodes["node3"].labels["nvidia.com/gpu.product"] == "v100"
    assert [name for name, node in nodes.items() if node.unschedulable] == ["node4"]


def test_priority_classes_are_called_like_the_qos(real: FromSlurm) -> None:
    """One that preempts nobody never preempts."""
    classes = loaded(real).priority_classes
    found = {name: (classes[name].value, classes[name].preempts) for name in ("normal", "cheap", "high")}
    assert found == {"normal": (100, False), "cheap": (5, False), "high": (1000, True)}


def test_quotas_are_the_accounts_shares_of_what_can_be_used(real: FromSlurm) -> None:
    """40 to 60; together they are all of the nodes that are not down."""
    cluster = loaded(real)
    nominal = {
        name: {
            resource: quota.nominal
            for resource, quota in queue.resource_groups[0].flavors[0].resources.items()
        }
        for name, queue in cluster.cluster_queues.items()
    }
    assert nominal["bio"] == {"cpu": 22_000, "memory": 117_964 * 2**20, "nvidia.com/gpu": 4}
    total = {name: sum(quota[name] for quota in nominal.values()) for name in nominal["bio"]}
    assert total == {"cpu": 56_000, "memory": 294_912 * 2**20, "nvidia.com/gpu": 12}


@pytest.mark.parametrize(
    "note",
    [
        "Node node1, node2, node3: features, which jobs can request",
        "Node node4, node5: 2 threads per core",
        "Node node4: is down or drained now",
        "QOS cheap: PreemptMode cancel: in Kubernetes, a preempted job returns to its queue",
        "QOS high: also preempts normal in Kubernetes, because its priority is higher",
        "QOS high: MaxTRESPU gres/gpu=6",
        "QOS scavenge: UsageFactor 0.500000",
        "users' own shares",
    ],
)
def test_what_manifests_cannot_say_is_named(real: FromSlurm, note: str) -> None:
    """Object by object."""
    assert any(note in said for said in real.notes), real.notes


def test_a_dump_replays_on_its_own_cluster(real: FromSlurm, tmp_path: Path) -> None:
    """Queues, classes and types of GPUs of the trace are those of the manifests, and no job is too large."""
    path = tmp_path / "slurm.cluster.yaml"
    path.write_text(dump_yaml(real.manifests), encoding="utf-8")
    options = {"tenant": "account", "priority": "class"}
    plugins = load(only=["readers"])
    trace = open_trace(DUMPS / "noconvert.txt.gz", plugins, options=options)
    assert unknown_names(trace.frame, load_cluster(path)) == []
    run = harness.replay(trace, plugin="kueue-classic", cluster=path, output=tmp_path / "out")
    assert set(run.jobs["state"].to_list()) == {"finished"}


# --- rules ------------------------------------------------------------------------------------------------


def amounts(found: FromSlurm) -> dict[str, Any]:
    """What the first node has."""
    return dict(loaded(found).nodes["n1"].allocatable)


def test_gpus_of_gres_count_where_tres_do_not_say_them(tmp_path: Path) -> None:
    """`Gres=gpu:a100:2(S:0-1)`, of a cluster that does not track them."""
    found = converted(tmp_path, NODE + "   Gres=gpu:a100:2(S:0-1)\n")
    assert amounts(found)["nvidia.com/gpu"] == 2
    assert loaded(found).nodes["n1"].labels["nvidia.com/gpu.product"] == "a100"


def test_memory_that_slurm_keeps_for_the_system_cannot_be_granted(tmp_path: Path) -> None:
    """`MemSpecLimit`."""
    assert amounts(converted(tmp_path, NODE + "   MemSpecLimit=100\n"))["memory"] == 900 * 2**20


def test_one_line_a_node_is_read_too(tmp_path: Path) -> None:
    """As `scontrol -o` prints it."""
    one = " ".join(NODE.split()) + "\n"
    assert len(loaded(converted(tmp_path, one + one.replace("n1", "n2"))).nodes) == 2


@pytest.mark.parametrize(
    "state",
    ["DOWN*", "IDLE*", "IDLE+DRAIN", "MIXED+DRAIN+NOT_RESPONDING", "FAIL", "DOWN+POWERED_DOWN", "FUTURE"],
)
def test_a_node_that_takes_no_job_is_unschedulable(tmp_path: Path, state: str) -> None:
    """Whatever else it is."""
    assert loaded(converted(tmp_path, NODE.replace("IDLE", state))).nodes["n1"].unschedulable


@pytest.mark.parametrize("state", ["IDLE+CLOUD+POWERED_DOWN", "IDLE+POWERING_DOWN", "IDLE+POWER", "IDLE~"])
def test_a_node_that_is_powered_down_takes_jobs(tmp_path: Path, state: str) -> None:
    """Slurm powers it up for a job; a cluster in a cloud may have no other nodes while it is idle."""
    found = converted(tmp_path, NODE.replace("IDLE", state))
    assert not loaded(found).nodes["n1"].unschedulable
    assert any("is powered down now" in note for note in found.notes)


def test_accounts_below_accounts_are_queues_in_cohorts(tmp_path: Path) -> None:
    """Their users share with the accounts beside them; a limit is what they may hold in all."""
    tree = TREE + " lab||3|\n  lab|ann|1|\n  a||1|cpu=1\n  b||2|\n other||1|\n"
    found = converted(tmp_path, NODE, assoc=tree)
    cluster = loaded(found)
    assert {name: queue.cohort for name, queue in cluster.cluster_queues.items()} == {
        "lab": "lab-cohort", "a": "lab-cohort", "b": "lab-cohort", "other": "all",
    }  # fmt: skip
    quotas = {
        name: queue.resource_groups[0].flavors[0].resources["cpu"]
        for name, queue in cluster.cluster_queues.items()
    }
    assert {name: quota.nominal for name, quota in quotas.items()} == {
        "lab": 1000, "a": 1000, "b": 3000, "other": 2000,
    }  # fmt: skip
    assert {name: quota.borrowing_limit for name, quota in quotas.items()} == {
        "lab": None, "a": 0, "b": None, "other": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        ({"nodes": "State=UP\n"}, "does not begin with NodeName="),
        ({"nodes": "NodeName=n1 State=IDLE\n"}, "does not state its CPUs"),
        ({"nodes": "NodeName=n[01-10,12] CPUs=64\n"}, "scontrol show nodes, not slurm.conf"),
        ({"nodes": NODE + NODE}, "node n1 is given twice"),
        ({"nodes": NODE.replace("=1000 ", "=x ")}, "RealMemory: 'x' is not a whole number"),
        ({"qos": "Name|Value\na|1\n"}, "has no column Priority"),
        ({"qos": QOS + "a|1|\n"}, "has 3 columns instead of 5"),
        ({"qos": QOS + "a|x|||\n"}, "Priority: 'x' is not a whole number"),
        ({"qos": QOS + "a|1|||\na|1|||\n"}, "QOS 'a' is given twice"),
        ({"assoc": TREE + " a|ann|1|\n"}, "no row above defines the user's account"),
        ({"assoc": TREE + " a||1|\n a||1|\n"}, "account 'a' occurs twice"),
        ({"assoc": TREE + " a||1|mem=1X\n"}, "GrpTRES: 'mem=1X' is not a resource with its amount"),
        ({"assoc": TREE + " a||1|cpu\n"}, "GrpTRES: 'cpu' is not a resource with its amount"),
    ],
)
def test_what_is_malformed_is_named(tmp_path: Path, texts: dict[str, str], fault: str) -> None:
    """By file and line."""
    with pytest.raises(ClusterError, match=str(tmp_path)) as caught:
        converted(tmp_path, **texts)
    assert fault in f"{caught.value} {caught.value.hint}"


FILES = {name: (DUMPS / name).read_text(encoding="utf-8") for name in ("nodes.txt", "qos.txt", "assoc.txt")}
pieces = st.sampled_from(
    ["", "\n", "|", "=", ",", " ", "-1", "9" * 30, "NodeName=", "gres/gpu:", "\0", "é", "root", "1.5G"]
)
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 12), pieces), min_size=1, max_size=4
)


@pytest.mark.parametrize("damaged", FILES)
@examples(40, fixtures=True)
@given(changes=edits)
def test_a_mutated_file_is_converted_or_refused(
    tmp_path: Path, damaged: str, changes: list[tuple[float, int, str]]
) -> None:
    """Whatever is replaced: only a named error may come of it."""
    texts = dict(FILES)
    for place, length, piece in changes:
        at = int(place * len(texts[damaged]))
        texts[damaged] = texts[damaged][:at] + piece + texts[damaged][at + length :]
    with suppress(ClusterError):
        found = converted(tmp_path, texts["nodes.txt"], texts["qos.txt"], texts["assoc.txt"] or "\n")
        cluster_from(found.manifests, "slurm")


def test_files_can_be_compressed_or_written_by_windows(tmp_path: Path) -> None:
    """As the output of `sacct` can."""
    plain = converted(tmp_path, NODE, assoc=f"{TREE}a||1|\n").manifests
    nodes, accounts = tmp_path / "nodes.gz", tmp_path / "assoc.txt"
    nodes.write_bytes(gzip.compress(NODE.encode()))
    accounts.write_bytes(f"{TREE}a||1|\n".encode("utf-16"))
    assert from_slurm(nodes, associations=accounts).manifests == plain


def test_a_file_in_another_encoding_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """The message names the line, and the hint has the command that converts the file."""
    (tmp_path / "nodes").write_bytes(f"{NODE}   Comment=größer\n".encode("latin-1"))
    with pytest.raises(ClusterError, match=r"is not UTF-8 text: byte \d+ \(line \d+\)") as refused:
        from_slurm(tmp_path / "nodes")
    assert "iconv -f WINDOWS-1252" in (refused.value.hint or "")


def test_a_missing_file_names_the_command_that_writes_it(tmp_path: Path) -> None:
    """It is not a file with manifests."""
    with pytest.raises(ClusterError, match="cannot be read") as refused:
        from_slurm(tmp_path / "none")
    assert refused.value.hint == "give a file with the output of scontrol show nodes"


def test_the_command_writes_what_loads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And names on stderr what it could not say."""
    made = tmp_path / "made.yaml"
    arguments = [
        str(DUMPS / "nodes.txt"),
        "--qos",
        str(DUMPS / "qos.txt"),
        "--assoc",
        str(DUMPS / "assoc.txt"),
    ]
    assert called(["cluster", "from-slurm", *arguments, "-o", str(made)]) == 0
    assert "not in the manifests: QOS high: MaxTRESPU gres/gpu=6" in capfd.readouterr().err
    assert len(load_cluster(made).nodes) == 5
    assert called(["cluster", "from-slurm", str(DUMPS / "nodes.txt"), "-o", str(DUMPS / "nodes.txt")]) == 2
    assert called(["cluster", "from-slurm", str(tmp_path / "none")]) == 2
