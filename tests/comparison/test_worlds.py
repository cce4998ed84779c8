"""The head of a comparison: what differs between the worlds of its runs, whatever that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from older_runs import as_schema_2
from small_clusters import queues

import harness
from harness.analysis.comparison.distinction import Distinction, summarized
from harness.analysis.report import Table
from harness.cluster.load import load_cluster
from harness.trace.calibration import Calibration

GPU = "nvidia.com/gpu"
QUOTAS = {"team-a": {GPU: "24"}, "team-b": {GPU: "8"}}

Documents = list[dict[str, Any]]


def cluster(quotas: Mapping[str, Mapping[str, str]] = QUOTAS, **settings: Any) -> Documents:
    """Two queues of a cohort, and two pools of nodes."""
    return [
        *yaml.safe_load_all(queues(quotas, **settings)),
        *(pool(name, count) for name, count in (("big", 3), ("small", 2))),
    ]


def pool(name: str, count: int) -> dict[str, Any]:
    spec = {"count": count, "template": {"allocatable": {GPU: 8 if name == "big" else 4, "cpu": "32"}}}
    return {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Replays 60 jobs of both teams on manifests, under a label."""
    rows = [
        {"submit_time": 2 * number, "queue": f"team-{'aab'[number % 3]}", "duration": 60, f"request.{GPU}": 4}
        for number in range(60)
    ]
    trace = write_trace(*({**row, "request.cpu": 0} for row in rows))

    def run(label: str, documents: Documents | None = None, **choices: Any) -> harness.Run:
        path = tmp_path / f"{label}.yaml"
        path.write_text(yaml.safe_dump_all(documents if documents is not None else cluster()))
        choices.setdefault("plugin", "kueue-classic")
        choices.setdefault("cluster", path)
        return harness.replay(trace, label=label, output=tmp_path / "results", **choices)

    return run


def told(*runs: harness.Run, reports: bool = False, **choices: Any) -> list[str]:
    """The lines of the head but the first, which table, Markdown, JSON, HTML and (if asked) reports share."""
    comparison = harness.compare(runs, **choices)
    said = comparison.to_json()["runs"][1:]
    assert all(run["differences"] for run in said)
    lines = comparison.table().split("\n\n")[0].split("\n")[1:]
    sentences = [line.removeprefix("  ") for line in lines if line.startswith("  ")]
    texts = [comparison.markdown(), comparison._repr_html_()]
    if reports:
        report = harness.make_report(comparison)
        page = replace(report, chapters=report.chapters[:1]).html()  # which has no charts
        texts += [report.markdown(), page]
    for text in texts:
        plain = unescape(text).replace("\\", "")
        for sentence in sentences:
            assert sentence in plain, sentence
    return sentences


def test_two_quotas_and_two_weights_compare(replayed: Callable[..., harness.Run]) -> None:
    """Each field that changed is told, with both values; a weight that was not given is 1."""
    base = replayed("base")
    other = cluster({**QUOTAS, "team-a": {GPU: "32"}}, weights={"team-b": "2"})
    cohort = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "all"}}
    changed = replayed("changed", [*other, {**cohort, "spec": {"fairSharing": {"weight": "2"}}}])
    assert told(base, changed, reports=True) == [
        f"ClusterQueue team-a: nominalQuota {GPU} 24 -> 32",
        "ClusterQueue team-b: weight 1 -> 2",
        "Cohort all: weight 1 -> 2",
    ]


def with_spot(documents: Documents) -> Documents:
    """The same with a second flavor, which every queue may use after the first."""
    for document in documents:
        if document["kind"] == "ClusterQueue":
            (group,) = document["spec"]["resourceGroups"]
            (first,) = group["flavors"]
            group["flavors"].append({**first, "name": "spot"})
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "spot"}}
    return [*documents, flavor]


def test_a_flavor_that_is_gone_or_new_leaves_the_other(replayed: Callable[..., harness.Run]) -> None:
    """A queue that has one flavor left, or had one before, is told with it, and not without any."""
    one, two = replayed("one"), replayed("two", with_spot(cluster()))
    gone, new = told(two, one, reports=True), told(one, two)
    assert "ClusterQueue team-a, team-b: flavors f, spot -> f" in gone
    assert f"ClusterQueue team-a: nominalQuota spot/{GPU} 24 -> none" in gone
    assert "ClusterQueue team-a, team-b: flavors f -> f, spot" in new


def test_a_queue_without_flavors_has_none(replayed: Callable[..., harness.Run]) -> None:
    """Whoever loses both has lost all."""
    bare = with_spot(cluster())
    for document in bare:
        if document["kind"] == "ClusterQueue" and document["metadata"]["name"] == "team-b":
            document["spec"]["resourceGroups"] = []
    two, lost = replayed("two", with_spot(cluster())), replayed("lost", bare)
    assert "ClusterQueue team-b: flavors f, spot -> none" in told(two, lost)


def test_a_cohort_that_was_split_compares(replayed: Callable[..., harness.Run]) -> None:
    """Queues that moved alike are told in one line."""
    quotas = {f"team-{letter}": {GPU: "8"} for letter in "abcde"}
    other = cluster(quotas)
    for document in other:
        if document["kind"] == "ClusterQueue" and document["metadata"]["name"] != "team-e":
            document["spec"]["cohortName"] = "left"
    assert told(replayed("base", cluster(quotas)), replayed("split", other)) == [
        "ClusterQueue team-a, team-b, team-c and 1 more: cohort all -> left",
        "Cohort left added",
    ]


def test_runs_with_nodes_and_without_name_what_their_shares_are_of(
    replayed: Callable[..., harness.Run],
) -> None:
    """Equal amounts are not one capacity where one is of nodes and the other of quotas."""
    on_nodes = replayed("nodes")
    bare = replayed("bare", [each for each in cluster() if each["kind"] != "NodePool"])
    table = harness.compare([on_nodes, bare]).table()
    assert f"\nshares refer to each run's own capacity: nodes 160 cpu, 32 {GPU} (5 nodes); bare " in table
    assert "\nbare: without nodes, only quotas limit jobs, which start with all their pods\n" in f"{table}\n"
    assert "without nodes" not in harness.compare([on_nodes, replayed("again")]).table()


def test_a_node_pool_that_was_removed_compares(replayed: Callable[..., harness.Run]) -> None:
    """Nodes that are gone, and those of which there are fewer; shares say of what, and hours stand beside."""
    base = replayed("base")
    fewer = [each for each in cluster() if each["metadata"]["name"] not in ("small", "big")]
    changed = replayed("changed", [*fewer, pool("big", 2)])
    assert told(base, changed) == [
        f"nodes big-0 … big-2 (cpu 32, {GPU} 8): count 3 -> 2",
        f"2 nodes removed: small-0 … small-1 (cpu 32, {GPU} 4)",
    ]
    comparison = harness.compare([base, changed])
    own = "shares refer to each run's own capacity: base 160 cpu, 32 nvidia.com/gpu (5 nodes); changed 64 cpu"
    assert own in comparison.table()
    rows = {(row.metric, row.resource): values for row, values in comparison.select("utilization.*")}
    spans = [(run.window.end - run.window.start) / 3.6e9 for run in comparison.runs]
    assert comparison.window is not None
    shared = (comparison.window.end - comparison.window.start) / 3.6e9
    assert shared == min(spans)
    assert rows["utilization.capacity.hours", GPU] == [32 * shared, 16 * shared]
    shares, hours = rows["utilization.allocated", GPU], rows["utilization.allocated.hours", GPU]
    for share, hour, gpus in zip(shares, hours, (32, 16), strict=True):
        assert share is not None
        assert hour == pytest.approx(share * gpus * shared)
    names = [line.split("  ")[0] for line in comparison.table().split("\n")]
    assert f"utilization.useful.hours {GPU}" in names
    assert "utilization.useful.hours" not in harness.compare([base]).table()


def test_runs_in_which_nothing_differs_are_told_so(replayed: Callable[..., harness.Run]) -> None:
    """A patch that sets what is so already looks like a change without effect else."""
    base, same, other = replayed("base"), replayed("same"), replayed("other", scale_arrivals=2)
    comparison = harness.compare([base, same, other])
    assert [run["differences"] == [] for run in comparison.to_json()["runs"]] == [True, True, False]
    assert comparison.table().split("\n\n")[0].split("\n")[1:] == [
        "other",
        "  --scale-arrivals 1 -> 2",
        "same",
        "  the same plugin, options, settings, trace and cluster",
    ]


def test_nodes_that_changed_are_told_field_by_field(replayed: Callable[..., harness.Run]) -> None:
    """Nodes of the same names with other amounts, labels, taints or conditions; new ones, and other names."""
    queues_only = [each for each in cluster() if each["kind"] != "NodePool"]
    of_base = [
        node("a", labels={"zone": "east"}),
        node("b", {GPU: 4, "pods": 110}),
        node("c", {GPU: 2, "pods": 110}),
    ]
    base = replayed("base", [*queues_only, *of_base])
    changed = [
        node(
            "a", {GPU: 6, "pods": 110}, labels={"zone": "west"}, taints=["gpu=only:NoSchedule"], ready=False
        ),
        node("b", {GPU: 4, "pods": 110}, cordoned=True),
        node("e", {GPU: 2, "pods": 110}),
        node("f", {GPU: 1, "pods": 110}),
    ]
    assert told(base, replayed("other", [*queues_only, *changed])) == [
        f"nodes a: allocatable {GPU} 8 -> 6",
        "nodes a: label zone east -> west",
        "nodes a: taints none -> gpu=only:NoSchedule",
        "nodes a: ready true -> false",
        "nodes b: unschedulable false -> true",
        f"nodes c ({GPU} 2): names c -> e",
        f"1 node added: f ({GPU} 1)",
    ]


def test_nodes_that_left_a_kind_of_equal_ones_are_told_by_name(replayed: Callable[..., harness.Run]) -> None:
    """Not as one fewer of the kind and a new one; and likewise where it joins them again."""
    queues_only = [each for each in cluster() if each["kind"] != "NodePool"]
    names = [f"node-{number}" for number in range(12)]
    changed = {
        "node-3": {"cordoned": True},
        "node-7": {"allocatable": {GPU: 6, "pods": 110}},
        "node-11": {"allocatable": {GPU: 6, "pods": 110}},
    }
    base = replayed("base", [*queues_only, *map(node, names)])
    other = replayed("other", [*queues_only, *(node(name, **changed.get(name, {})) for name in names)])
    assert told(base, other) == [
        "nodes node-3: unschedulable false -> true",
        f"nodes node-11 … node-7: allocatable {GPU} 8 -> 6",
    ]
    assert told(other, base) == [
        "nodes node-3: unschedulable true -> false",
        f"nodes node-11 … node-7: allocatable {GPU} 6 -> 8",
    ]


def test_a_node_that_is_new_and_one_that_is_gone_are_no_change_of_one(
    replayed: Callable[..., harness.Run],
) -> None:
    """The counts are those of a changed node; the names say that it was another one."""
    queues_only = [each for each in cluster() if each["kind"] != "NodePool"]
    names = [f"node-{number}" for number in range(12)]
    base = replayed("base", [*queues_only, *map(node, names)])
    others = [node(name) for name in names if name != "node-5"]
    other = replayed("other", [*queues_only, *others, node("node-12", {GPU: 6, "pods": 110})])
    assert told(base, other) == [
        f"nodes node-0 … node-9 ({GPU} 8): count 12 -> 11",
        f"1 node added: node-12 ({GPU} 6)",
    ]


def node(
    name: str,
    allocatable: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    taints: tuple[str, ...] | list[str] = (),
    cordoned: bool = False,
    ready: bool = True,
) -> dict[str, Any]:
    """A node of 8 GPUs, or of what is given; taints are written key=value:effect."""
    said = [
        dict(zip(("key", "value", "effect"), each.replace(":", "=").split("="), strict=True))
        for each in taints
    ]
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"unschedulable": cordoned, "taints": said},
        "status": {"allocatable": dict(allocatable or {GPU: 8, "pods": 110}), "conditions": [condition]},
    }


def test_factors_are_told_as_one_would_write_them(replayed: Callable[..., harness.Run]) -> None:
    """Not in lowest terms, as runs keep them; a third stays one."""
    base, computed = replayed("base", scale_arrivals="1/3"), replayed("computed", scale_arrivals=0.1 + 0.2)
    scaled = replayed("scaled", scale_arrivals=0.57, calibration=Calibration.parse(scale_cluster="2.5"))
    assert told(base, computed) == ["--scale-arrivals 1/3 -> 0.30000000000000004"]
    assert told(base, scaled)[:2] == ["--scale-arrivals 1/3 -> 0.57", "--scale-cluster 1 -> 2.5"]
    (table,) = (
        block
        for chapter in harness.make_report([base, scaled]).chapters
        for block in chapter.blocks
        if isinstance(block, Table) and block.caption == "Settings of the runs"
    )
    assert ["arrivals", "× 1/3", "× 0.57"] in table.rows
    assert ["changes to the trace", "–", "scale cluster 2.5"] in table.rows


def test_two_loads_compare(replayed: Callable[..., harness.Run]) -> None:
    """Each over its own window, and that is said."""
    base, faster = replayed("base"), replayed("faster", scale_arrivals=2)
    assert told(base, faster) == ["--scale-arrivals 1 -> 2"]
    assert "arrivals differ, so each run is measured over its own window: base " in (
        harness.compare([base, faster]).table()
    )


@pytest.mark.parametrize(
    ("choices", "sentences"),
    [
        ({"on_preemption": "resume"}, ["--on-preemption restart -> resume"]),
        (
            {"on_preemption": "checkpoint=30m,restore=1m", "grace_period": "1m30s"},
            ["--on-preemption restart -> checkpoint=1800s,restore=60s", "--grace-period 30s -> 1m30s"],
        ),
        pytest.param({"startup": "2m"}, ["--startup none -> 2m00s"], marks=pytest.mark.nightly),
        pytest.param(
            {"grace_period": 30_000_001}, ["--grace-period 30s -> 30000001us"], marks=pytest.mark.nightly
        ),
        pytest.param({"until": "1h"}, ["--until none -> 1h00m"], marks=pytest.mark.nightly),
        ({"options": {"evictionLatency": "5s"}}, ["option evictionLatency 1s -> 5s"]),
    ],
)
def test_two_loss_models_and_other_settings_compare(
    choices: dict[str, Any], sentences: list[str], replayed: Callable[..., harness.Run]
) -> None:
    """Restart against checkpoint, grace periods that look alike, options of the plugin."""
    assert told(replayed("base"), replayed("other", **choices)) == sentences


def test_two_traces_are_refused_in_every_format(
    replayed: Callable[..., harness.Run], write_trace: Callable[..., Path], tmp_path: Path, capsys: Any
) -> None:
    """Other jobs are no other world: nothing is printed or written, and the message says what differs."""
    from cli_environment import called

    base = replayed("base")
    rows = ({"job_id": f"other {number}", "queue": "team-a", f"request.{GPU}": 1} for number in range(60))
    other = harness.replay(
        write_trace(*({**row, "request.cpu": 0} for row in rows), name="other.parquet"),
        cluster=tmp_path / "base.yaml", output=tmp_path / "results",
    )  # fmt: skip
    runs, page = [str(base.path), str(other.path)], tmp_path / "page.html"
    for call in (
        *(["compare", *runs, "--format", layout] for layout in ("table", "markdown", "json", "csv")),
        *(["report", *runs, "-o", str(page), "--format", form] for form in ("html", "markdown")),
        ["diff", *runs],
    ):
        assert called(call) == 2, call
        out, err = capsys.readouterr()
        assert out == ""
        assert not page.exists()
        assert f"these runs cannot be compared with {base.path} (60 jobs):" in err
        assert "none has the id of a job in the baseline; another trace: other (60 jobs, sha256 " in err


def test_a_report_says_what_is_of_which_cluster(replayed: Callable[..., harness.Run]) -> None:
    """Capacity, quotas and the cluster itself are each run's own, in words and in charts."""
    other = cluster({**QUOTAS, "team-a": {GPU: "32"}})
    fewer = [each for each in other if each["metadata"]["name"] != "small"]
    report = harness.make_report([replayed("base"), replayed("pr", fewer)])
    text = report.markdown().replace("\\", "")
    assert "**Cluster of base**\n\n- 5 nodes; " in text
    assert "**Cluster of pr**\n\n- 3 nodes; " in text
    assert text.count("**Trace**") == 1
    assert "team-a (own quota base 24, pr 32): " in text
    assert "team-b (own quota 8): " in text
    words = next(line for line in text.split("\n") if line.startswith(f"**{GPU} held, by quota.**"))
    assert " of 32 " in words.partition("pr: ")[0]
    assert " of 24 " in words.partition("pr: ")[2]
    same = harness.make_report([replayed("base"), replayed("again")]).markdown()
    assert "**Cluster**" in same
    assert "utilization.useful.hours" in text
    assert "utilization.useful.hours" not in same


def test_a_sampled_trace_of_another_window_is_told(replayed: Callable[..., harness.Run]) -> None:
    """Calibrations are settings, called as on the command line."""
    base = replayed("base", calibration=Calibration.parse(window="0s..100s"))
    other = replayed("other", calibration=Calibration.parse(window="0s..60s", scale_cluster="2"))
    found = told(base, other)
    assert found[:2] == ["--window 0s..100s -> 0s..60s", "--scale-cluster 1 -> 2"]
    assert f"ClusterQueue team-a: nominalQuota {GPU} 24 -> 48" in found


def test_a_plugin_is_told_where_names_do_not_say_it(replayed: Callable[..., harness.Run]) -> None:
    """And options that the baseline's plugin does not have, where runs of one plugin differ in them."""
    base = replayed("none", plugin="none")
    runs = [replayed(f"kueue-{name}", options={"evictionLatency": name}) for name in ("1s", "9s")]
    comparison = harness.compare([base, *runs])
    assert [(list(group.names), list(group.sentences)) for group in comparison.head.groups] == [
        (["kueue-1s", "kueue-9s"], ["plugin none -> kueue-classic"]),
        (["kueue-1s"], ["option evictionLatency 1s"]),
        (["kueue-9s"], ["option evictionLatency 9s"]),
    ]
    named = [replayed("kueue-classic"), replayed("fairsharing", plugin="fairsharing")]
    assert harness.compare(named).head.groups == []


def test_runs_that_differ_alike_are_told_together(replayed: Callable[..., harness.Run]) -> None:
    """Two plugins on two clusters: what the second cluster has otherwise is told once, of both."""
    other = cluster({**QUOTAS, "team-a": {GPU: "32"}})
    runs = [
        replayed(f"{plugin}-{name}", documents, plugin=plugin)
        for name, documents in (("base", None), ("pr", other))
        for plugin in ("kueue-classic", "fairsharing")
    ]
    (group,) = harness.compare(runs).head.groups
    assert group.names == ("kueue-classic-pr", "fairsharing-pr")
    assert group.sentences == [f"ClusterQueue team-a: nominalQuota {GPU} 24 -> 32"]


def test_manifests_that_say_the_same_in_other_words_are_told_to_be_the_same(
    replayed: Callable[..., harness.Run],
) -> None:
    """The order of objects is all that a run does not keep."""
    found = told(replayed("base"), replayed("turned", cluster()[::-1]))
    said = "the manifests differ only in parts that harness does not model, such as the order of objects"
    assert found == [f"cluster: {said}"]


def test_of_a_run_of_the_schema_before_sizes_and_quotas_are_told(
    replayed: Callable[..., harness.Run],
) -> None:
    """And that the rest is not known; resource-hours are computed from its tables."""
    base = replayed("base")
    fewer = [
        each for each in cluster({**QUOTAS, "team-a": {GPU: "32"}}) if each["metadata"]["name"] != "small"
    ]
    old = replayed("old", fewer)
    as_schema_2(old.path)
    found = told(base, harness.compare([old.path]).runs[0])
    assert found == [
        "cluster: a run of schema 2 records only the size and the quotas of its cluster",
        "nodes: count 5 -> 3",
        "cluster: capacity cpu 160 -> 96",
        f"cluster: capacity {GPU} 32 -> 24",
        f"queue team-a: nominal {GPU} 24 -> 32",
    ]
    shown = harness.compare([base.path, old.path]).select("utilization.*.hours")
    assert all(None not in hours for _, hours in shown)


def test_json_has_every_difference_by_its_parts(replayed: Callable[..., harness.Run]) -> None:
    """Kind, name, field and both values, and the sentence; the size of each cluster without its content."""
    base, changed = replayed("base"), replayed("changed", cluster({**QUOTAS, "team-a": {GPU: "32"}}))
    document = json.loads(json.dumps(harness.compare([base, changed]).to_json()))
    assert [run["differences"] for run in document["runs"]] == [
        [],
        [
            {
                "kind": "ClusterQueue",
                "name": "team-a",
                "field": f"nominalQuota {GPU}",
                "before": "24",
                "after": "32",
                "text": f"ClusterQueue team-a: nominalQuota {GPU} 24 -> 32",
            }
        ],
    ]
    assert document["jobs"] == 60
    assert all("content" not in run["cluster"] and run["cluster"]["capacity"] for run in document["runs"])


def test_the_baseline_is_told_and_how_it_was_chosen(
    replayed: Callable[..., harness.Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first as given; where it is the first by name a pattern may have chosen it, and that is said."""
    monkeypatch.chdir(tmp_path)
    first, second = (replayed(name, options={"evictionLatency": name}) for name in ("1s", "2s"))

    def head(*runs: harness.Run, **choices: str) -> str:
        return harness.compare(runs, **choices).table().split("\n")[0]

    assert (
        head(second, first) == "baseline 2s (plugin kueue-classic): the first of 2 runs, in the given order"
    )
    third = replayed("3s", options={"evictionLatency": "3s"})
    assert head(first, third, second).endswith(": the first of 3 runs, in the given order")
    by_name = f"sorted by name as in {first.path.parent / '*'}; --baseline chooses another"
    assert head(first, second) == f"baseline 1s (plugin kueue-classic): the first of 2 runs, {by_name}"
    assert head(first, second, baseline="2s") == "baseline 2s (plugin kueue-classic): as requested"
    alone = harness.compare([first]).table()
    assert alone.startswith("metric")
    assert "\n1s: plugin kueue-classic\n" in alone
    assert "\nshares refer to a capacity of 160 cpu, 32 nvidia.com/gpu (5 nodes)\n" in alone


def test_long_lists_of_differences_are_cut_in_tables() -> None:
    """Nodes of many kinds are counted together; of other changes the first twelve are told."""
    removed = [Distinction("nodes", f"n{number} (cpu {number})", "", "2", None) for number in range(10)]
    assert summarized(removed) == ["20 nodes removed: n0 (cpu 0), n1 (cpu 1), n2 (cpu 2) and 7 more"]


def test_a_capacity_that_changes_is_given_as_its_least_and_its_most(
    replayed: Callable[..., harness.Run], tmp_path: Path
) -> None:
    """Of five nodes one with 8 GPUs is gone from the second minute on; changes after the run do not count."""
    when = {"big-0": "60s", "big-1": "30d"}
    gone = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {"harness/from": at}},
            "$patch": "delete",
        }
        for name, at in when.items()
    ]
    patch = tmp_path / "gone.yaml"
    patch.write_text(yaml.safe_dump_all(gone))
    manifests = tmp_path / "manifests.yaml"
    manifests.write_text(yaml.safe_dump_all(cluster()))
    constant = replayed("constant")
    changing = replayed("changing", cluster=load_cluster(manifests).patched(patch))
    foot = "128 to 160 cpu, 24 to 32 nvidia.com/gpu (4 to 5 nodes)"
    assert f"\nshares refer to a capacity of {foot}\n" in harness.compare([changing]).table()
    both = harness.compare([constant, changing])
    whole = "160 cpu, 32 nvidia.com/gpu (5 nodes)"
    assert f"\nshares refer to each run's own capacity: constant {whole}; changing {foot}\n" in both.table()
    assert both.differing_capacities == {GPU, "cpu"}
