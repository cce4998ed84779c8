"""`harness replay` on several clusters: what runs are called, which is the baseline, what is said of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from small_clusters import queues, quota_tree

from harness.base.errors import OptionError
from harness.cli.worlds import named_files


@pytest.fixture
def trace(folder: Path, write_trace: Callable[..., Path]) -> Path:
    """Six jobs of two queues that do not fit at once."""
    return write_trace(*({"submit_time": number, "queue": "ab"[number % 2]} for number in range(6)))


@pytest.fixture
def manifests(folder: Path) -> Callable[[str, int], str]:
    """Writes manifests of two queues with so many cpus each; answers the path as it was given."""

    def write(name: str, cpus: int) -> str:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(queues({each: {"cpu": str(cpus)} for each in "ab"}))
        return name

    return write


def labels(document: str) -> list[str]:
    """What the runs of a JSON document are called."""
    return [run["label"] for run in json.loads(document)["runs"]]


def test_every_plugin_is_replayed_on_every_cluster(
    harness: Callable, trace: Path, manifests: Callable
) -> None:
    """Runs are called `PLUGIN@CLUSTER`, plugin by plugin; the first is the baseline of one comparison.

    Folders begin with the plugin, also where it has a label.
    """
    clusters = ("--cluster", manifests("base.yaml", 1), "--cluster", manifests("pr.yaml", 2))
    ended = harness("replay", trace, *clusters, "-p", "fairsharing", "-p", "none@plain", "--json")
    assert ended.code == 0, ended.err
    assert labels(ended.out) == ["fairsharing@base", "fairsharing@pr", "plain@base", "plain@pr"]
    assert json.loads(ended.out)["baseline"] == "fairsharing@base"
    kept = sorted(path.name.rsplit("-", 1)[0] for path in Path("results/trace").iterdir())
    assert kept == ["fairsharing@base", "fairsharing@pr", "none@plain@base", "none@plain@pr"]
    table = harness("replay", trace, *clusters, "-p", "fairsharing").out
    assert "baseline fairsharing@base" in table
    assert "ClusterQueue a, b: nominalQuota cpu 1 -> 2" in table
    wait = next(line.split() for line in table.split("\n") if line.startswith("delay.mean"))
    assert wait[1:3] == ["8s", "2s"]


def test_with_one_cluster_labels_stay_as_they_are(
    harness: Callable, trace: Path, manifests: Callable
) -> None:
    """Also where it has a name."""
    ended = harness("replay", trace, "--cluster", f"pr={manifests('base.yaml', 1)}", "--json")
    assert labels(ended.out) == ["none"]


def test_a_folder_is_one_cluster(harness: Callable, trace: Path, manifests: Callable, folder: Path) -> None:
    """All manifests in it and below, called like the folder."""
    whole = manifests("whole/queues.yaml", 2)
    parts = (folder / whole).read_text().split("---\n")
    (folder / "parts/deep").mkdir(parents=True)
    for number, part in enumerate(parts):
        place = "parts/deep" if number else "parts"
        (folder / place / f"{number}.yml").write_text(part)
    ended = harness("replay", trace, "--cluster", "whole", "--cluster", "parts/", "--json")
    assert labels(ended.out) == ["none@whole", "none@parts"]
    first, second = json.loads(ended.out)["runs"]
    assert second["differences"] == []
    assert first["cluster"]["sha256"] == second["cluster"]["sha256"]


def test_options_reach_a_plugin_on_every_cluster(harness: Callable, trace: Path, manifests: Callable) -> None:
    """By its name or its label, as with one cluster."""
    clusters = ("--cluster", manifests("base.yaml", 1), "--cluster", manifests("pr.yaml", 2))
    ended = harness(
        *("replay", trace, *clusters, "-p", "none@x", "-p", "none@y", "--json"),
        *("--set", "x.order=fifo", "--set", "none.blocking=skip"),
    )
    options = {run["label"]: run["policy"]["options"] for run in json.loads(ended.out)["runs"]}
    assert {label: (each["order"], each["blocking"]) for label, each in options.items()} == {
        "x@base": ("fifo", "skip"),
        "x@pr": ("fifo", "skip"),
        "y@base": ("priority", "skip"),
        "y@pr": ("priority", "skip"),
    }


SCHEDULER = """
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
preemptionAlgorithm: {}
---
apiVersion: v1
kind: Node
metadata: {{name: n1}}
status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}}}
"""


def test_every_cluster_selects_its_own_plugin(
    harness: Callable, trace: Path, manifests: Callable, folder: Path
) -> None:
    """Where none is named, the one of its KubeSchedulerConfiguration alone is replayed on it, and said."""
    for name, algorithm in (("base", "None"), ("pr", "Default")):
        path = folder / manifests(f"{name}.yaml", 2)
        path.write_text(path.read_text() + SCHEDULER.format(algorithm))
    ended = harness("replay", trace, "--cluster", "base.yaml", "--cluster", "pr.yaml", "--json")
    assert labels(ended.out) == ["none@base", "default-preemption@pr"]
    assert "plugin pr: default-preemption, as preemptionAlgorithm Default of the" in ended.err


def test_what_is_said_of_some_clusters_names_them(
    harness: Callable, trace: Path, manifests: Callable, folder: Path
) -> None:
    """A warning of all clusters stands once and alone; one of a few begins with their names."""
    for name, checks in (("one", "x"), ("two", "x"), ("three", "")):
        path = folder / manifests(f"{name}.yaml", 1)
        spec = "  admissionChecks: [x]\n" if checks else ""
        weights = "  resourceWeights: {cpu: 1}\n"
        text = path.read_text().replace("  namespaceSelector: {}\n", f"  namespaceSelector: {{}}\n{spec}")
        path.write_text(text.replace("  name: f\n", f"  name: f\nspec:\n{weights}", 1))
    clusters = [f"--cluster={name}.yaml" for name in ("one", "two", "three")]
    said = harness("replay", trace, *clusters).err.split("\n")
    assert [line for line in said if line.startswith("cluster ")] == [
        "cluster one: one.yaml",
        "cluster two: two.yaml",
        "cluster three: three.yaml",
    ]
    of_some = "ClusterQueue a, b: spec.admissionChecks is not modelled: harness treats every"
    assert any(line.startswith(f"warning: one, two: {of_some}") for line in said)
    assert sum("resourceWeights" in line for line in said) == 1
    assert any(line.startswith("warning: ResourceFlavor f: spec.resourceWeights") for line in said)


PATCH = """
kind: ClusterQueue
metadata: {name: a}
spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: cpu, nominalQuota: 3}]}]}]}
"""


@pytest.fixture
def patches(folder: Path) -> Path:
    """Two patches of queue a."""
    (folder / "more.yaml").write_text(PATCH)
    (folder / "hold.patch.yaml").write_text(
        "{kind: ClusterQueue, metadata: {name: b}, spec: {cohortName: x}}"
    )
    return folder


def test_each_patch_is_a_cluster_beside_the_base(
    harness: Callable, trace: Path, manifests: Callable, patches: Path
) -> None:
    """Called like the patch; the base comes first and is the baseline, which the head is against."""
    given = ("--cluster", manifests("queues.yaml", 1), "--patch", "more.yaml", "--patch", "x=hold.patch.yaml")
    ended = harness("replay", trace, *given, "-p", "fairsharing", "-p", "none@n", "--json")
    assert ended.code == 0, ended.err
    names = ("base", "more", "x")
    assert labels(ended.out) == [f"{plugin}@{name}" for plugin in ("fairsharing", "n") for name in names]
    assert json.loads(ended.out)["baseline"] == "fairsharing@base"
    assert "cluster more: queues.yaml with more.yaml" in ended.err
    table = harness("replay", trace, *given, "-p", "fairsharing").out.split("\n")
    at = next(number for number, line in enumerate(table) if line.startswith("baseline"))
    assert table[at + 1 : at + 5] == [
        "fairsharing@more",
        "  ClusterQueue a: nominalQuota cpu 1 -> 3",
        "fairsharing@x",
        "  ClusterQueue b: cohort all -> x",
    ]


def test_every_cluster_is_replayed_with_every_patch(
    harness: Callable, trace: Path, manifests: Callable, patches: Path
) -> None:
    """`CLUSTER+PATCH`, after the cluster itself."""
    clusters = ("--cluster", manifests("one.yaml", 1), "--cluster", manifests("two.yaml", 2))
    ended = harness(
        "replay", trace, *clusters, "--patch", "more.yaml", "--patch", "hold.patch.yaml", "--json"
    )
    assert labels(ended.out) == [
        *("none@one", "none@one+more", "none@one+hold"),
        *("none@two", "none@two+more", "none@two+hold"),
    ]


def test_the_cluster_beside_the_trace_and_an_assumed_one_can_be_patched(
    harness: Callable, trace: Path, folder: Path
) -> None:
    """What is assumed is said once, and of which manifests the patch speaks."""
    patch = {"kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": {"fairSharing": {"weight": 2}}}
    (folder / "heavy.yaml").write_text(json.dumps(patch))
    ended = harness("replay", trace, "--patch", "heavy.yaml", "-p", "fairsharing")
    assert "ClusterQueue a: weight 1 -> 2" in ended.out
    assert ended.err.count("assumed: 2 ClusterQueues") == 1
    assert f"cluster heavy: assumed for {trace} with heavy.yaml" in ended.err
    trace.with_name("trace.cluster.yaml").write_text(queues({each: {"cpu": "1"} for each in "ab"}))
    beside = harness("replay", trace, "--patch", "heavy.yaml")
    assert "none@heavy\n  ClusterQueue a: weight 1 -> 2" in beside.out


def test_a_scaled_cluster_is_scaled_with_its_patch(
    harness: Callable, trace: Path, manifests: Callable, patches: Path
) -> None:
    """`--scale-cluster` multiplies what the patch says."""
    ended = harness(
        "replay", trace, "--cluster", manifests("q.yaml", 1), "--patch", "more.yaml", "--scale-cluster=2"
    )
    assert "ClusterQueue a: nominalQuota cpu 2 -> 6" in ended.out


def test_events_change_every_cluster_and_its_patches(
    harness: Callable, trace: Path, manifests: Callable, folder: Path
) -> None:
    """A run is the same under `--events` as under `--patch`, whatever the file is called."""
    Path("cut.csv").write_text("time,kind,name,field,value\n1s,ClusterQueue,a,quota[cpu],x0\n")
    Path("same.csv").write_text(Path("cut.csv").read_text())
    Path("more.yaml").write_text("kind: ClusterQueue\nmetadata: {name: b}\nspec: {stopPolicy: Hold}\n")
    cluster = ("--cluster", manifests("base.yaml", 1), "-p", "fairsharing", "--json")
    ended = harness("replay", trace, *cluster, "--events", "cut.csv", "--patch", "more.yaml")
    assert ended.code == 0, ended.err
    assert labels(ended.out) == ["fairsharing@base", "fairsharing@more"]
    found = [json.loads(path.read_text()) for path in Path("results/trace").glob("*/run.json")]
    assert [len(run["cluster"]["events"]) for run in found] == [1, 1]
    ended = harness("replay", trace, *cluster, "--patch", "same.csv")
    with_and_without = [run.rpartition("-")[2] for run in sorted(map(str, Path("results/trace").iterdir()))]
    assert len(with_and_without) == 4
    assert len(set(with_and_without)) == 3  # the base with the table, and the patch that is the table
    ended = harness("replay", trace, *cluster, "--events", "more.yaml")
    assert ended.code == 2
    assert "--events more.yaml does not have the name of a table" in ended.err


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (
            ["--patch", "base=more.yaml"],
            "a cluster cannot have the name 'base': two clusters",
            "--patch NAME=PATH",
        ),
        (
            ["--patch", "more.yaml", "--patch", "more.yaml"],
            "--patch: two files would have the name 'more'",
            "--patch first",
        ),
        (["--patch", "nothing.yaml"], "nothing.yaml: cannot be read", "files or folders"),
        (["--patch", "q.yaml"], "the object has the apiVersion", None),
        (
            ["--cluster", f"{'x' * 30}=q.yaml", "--patch", f"{'y' * 10}=more.yaml"],
            f"a cluster cannot have the name '{'x' * 30}+{'y' * 10}': it is too long",
            "NAME=PATH",
        ),
    ],
)
def test_a_patch_that_cannot_be_is_one_clear_message(
    args: list[str],
    message: str,
    hint: str | None,
    harness: Callable,
    trace: Path,
    manifests: Callable,
    patches: Path,
) -> None:
    """Exit code 2, and nothing is replayed."""
    path = patches / manifests("q.yaml", 1)
    (patches / "queues.yaml").write_text(
        path.read_text().replace("v1beta2", "v1beta1").replace("cohortName", "cohort")
    )
    ended = harness("replay", trace, "--cluster", "queues.yaml", *args)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert hint is None or hint in ended.err
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a.yaml", "b.json"], ["a", "b"]),
        (["philly.cluster.yaml", "pr.patch.yaml", "v1.2.yaml"], ["philly", "pr", "v1.2"]),
        (["base/q.yaml", "pr/q.yaml", "other.yaml"], ["base-q", "pr-q", "other"]),
        (["x/base/q.yaml", "y/base/q.yaml"], ["x-base-q", "y-base-q"]),
        (["old=q.yaml", "q.yaml"], ["old", "q"]),
        (["q=z.yaml", "x/q.yaml"], ["q", "x-q"]),
        (["./a=b.yaml"], ["a-b"]),
        (["my queues.yaml", ".hidden.yaml", "日本.yaml"], ["my-queues", "hidden", "日本"]),
        ([f"{'x' * 50}.yaml"], ["x" * 40]),
        (["nodes.yaml,q1.yaml.gz", "nodes.yaml,x/q2.json"], ["nodes+q1", "nodes+q2"]),
        (["a/n.yaml,q.yaml", "b/n.yaml,q.yaml", "pr=n.yaml,q.yaml,-"], ["a-n+here-q", "b-n+here-q", "pr"]),
        (["-", "q.yaml,-"], ["stdin", "q+stdin"]),
    ],
)
def test_files_are_called_by_their_stem_or_by_what_tells_them_apart(
    given: list[str], names: list[str], folder: Path
) -> None:
    """A name that is given counts; folders are added only where stems are equal."""
    assert [name for name, _ in named_files(given, "--cluster")] == names


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (
            ["q.yaml", "./q.yaml"],
            "two files would have the name 'q'",
            "--cluster first=PATH --cluster second=q.yaml",
        ),
        (["a=x.yaml", "a=y.yaml"], "two files would have the name 'a'", "second=y.yaml"),
        (["a@b=x.yaml"], "'a@b' cannot be the name of 'x.yaml'", "letters, digits"),
        (["=x.yaml"], "'' cannot be the name of 'x.yaml'", "letters, digits"),
        ([""], "--cluster '' names no file", "NAME=PATH"),
        (["a="], "--cluster 'a=' names no file", "NAME=PATH"),
    ],
)
def test_names_that_cannot_be_are_refused(given: list[str], message: str, hint: str, folder: Path) -> None:
    """With what to write instead."""
    with pytest.raises(OptionError) as error:
        named_files(given, "--cluster")
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_a_fault_in_one_cluster_is_told_before_anything_is_replayed(
    harness: Callable, trace: Path, manifests: Callable, folder: Path
) -> None:
    """Of the second as of the first; nothing is kept."""
    (folder / "pr.yaml").write_text("kind: ClusterQueue\n")
    ended = harness("replay", trace, "--cluster", manifests("base.yaml", 1), "--cluster", "pr.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert "Error: pr.yaml: document 1 (line 1): must have 'kind' and 'apiVersion'" in ended.err
    assert not Path("results").exists()


def test_a_patch_that_deletes_a_queue_of_jobs_is_refused(
    harness: Callable, trace: Path, folder: Path
) -> None:
    """Also where an elastic quota is called so, which Kueue does not know; to another plugin it is enough."""
    halves = {each: {"cpu": "2"} for each in "ab"}
    (folder / "both.yaml").write_text(queues(halves, nodes=1) + quota_tree(halves, {"cpu": "4"}))
    (folder / "del.yaml").write_text(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, $patch: delete}"
    )
    command = ("replay", trace, "--cluster", "both.yaml", "--patch", "del.yaml")
    refused = harness(*command, "-p", "elasticquota", "-p", "fairsharing")
    assert (refused.code, refused.out) == (2, "")
    assert "'a' is neither a LocalQueue of namespace 'default' nor a ClusterQueue (3 rows)" in refused.err
    assert not (folder / "results").exists()
    left = harness(*command, "-p", "elasticquota", "-p", "fairsharing", "--drop-impossible", "--json")
    assert left.code == 0, left.err
    assert "left out: 3 rows: can never start, removed by --drop-impossible" in left.err
    assert json.loads(left.out)["jobs"] == 3
    assert json.loads(harness(*command, "-p", "elasticquota", "--json").out)["jobs"] == 6
