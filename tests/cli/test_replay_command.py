"""`harness replay`: which options reach which plugin, which cluster is taken, what goes where."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path

import polars as pl
import pytest

from harness.base.errors import OptionError
from harness.runs.run import Run

QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: default}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: CPUS}]}]
"""
TWO_OPTIONS = """
    import harness

    class Idle:
        def __init__(self, cluster, view, options): pass
        def submit(self, job, pods, now): pass
        def release(self, job, pods, now, why): pass
        def cycle(self, now): return iter(())

    @harness.hookimpl
    def harness_register_policies(register):
        options = [
            harness.Option("order", "a", "shared with none", choices=("a", "fifo")),
            harness.Option("patience", 1, "its own", type=int),
        ]
        register(harness.PolicySpec("idle", Idle, help="starts nothing", options=options))
"""


PRINTS = """
    import harness

    class Prints:
        def __init__(self, cluster, view, options): self.waiting = []
        def submit(self, job, pods, now):
            print("told of", job.id)
            self.waiting.append(job)
        def release(self, job, pods, now, why): pass
        def cycle(self, now):
            yield from map(harness.Admit, self.waiting)
            self.waiting = []

    @harness.hookimpl
    def harness_register_policies(register):
        register(harness.PolicySpec("prints", Prints, help="starts all"))
"""


@pytest.fixture
def trace(folder: Path, write_trace: Callable[..., Path]) -> Path:
    """Four jobs that do not fit at once."""
    rows = ({"submit_time": number, "priority": number % 2} for number in range(4))
    return Path(shutil.move(write_trace(*rows), folder / "trace.parquet")).relative_to(folder)


def options_of(document: str) -> dict[str, dict[str, object]]:
    """Label -> the options that a run of a JSON document had."""
    return {run["label"]: run["policy"]["options"] for run in json.loads(document)["runs"]}


def test_stdout_is_the_table_and_stderr_the_talk(harness: Callable, trace: Path) -> None:
    """Nothing but the table is on stdout; what was read, assumed and kept is said on stderr."""
    ended = harness("replay", trace)
    assert ended.code == 0
    first, line, *rows = ended.out.rstrip("\n").split("\n")
    assert first.split() == ["metric", "none"]
    assert set(line) == {"─", " "}
    assert rows[0].startswith("goodput.of_demand cpu")
    assert rows[-1].startswith("--all shows ")
    every = harness("replay", trace, "--all").out.split("\n")
    assert every[2].startswith("utilization.useful cpu")
    said = ended.err.split("\n")
    assert said[0] == "trace: trace.parquet, 4 rows"
    assert any(each.startswith("assumed: cpu") for each in said)
    assert any(each.startswith("none: 4 jobs in") and "kept in results/trace/none-" in each for each in said)


WAITING = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{resources: {requests: {cpu: 1}}}]}
"""


def test_which_world_a_replay_begins_in_is_told(harness: Callable, trace: Path, folder: Path) -> None:
    """And why, where nobody said; of several clusters with the names of those of which it is so."""
    (folder / "pods.yaml").write_text(WAITING)
    (folder / "free.yaml").write_text(WAITING.partition("---")[0])
    ended = harness("replay", trace, "--cluster", "pods.yaml")
    assert "\nnote: --at-start dump, because the trace has no dates: 1 Pod from the manifests\n" in ended.err
    ended = harness(
        "replay", trace, "--cluster", "pods.yaml", "--cluster", "free.yaml", "--at-start", "empty"
    )
    assert "\nnote: pods: --at-start empty: no work from the manifests\n" in ended.err
    left = "left out: 1 Pod of the manifests: the replay begins with an empty cluster"
    assert f"\nwarning: pods: {left} (--at-start dump includes them)\n" in ended.err
    assert "--at-start empty -> none" in ended.out


def test_an_answer_of_a_cluster_is_trace_and_cluster_at_once(
    harness: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From standard input, with queues from a file; without their ClusterQueue they are told of."""
    times = {
        "QuotaReserved": "00:00:05",
        "Admitted": "00:00:05",
        "PodsReady": "00:00:10",
        "Finished": "00:01:10",
    }

    def workload(name: str, second: int, *known: str) -> dict[str, object]:
        kinds = [
            {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T{times[kind]}Z"}
            for kind in known
        ]
        created = f"2026-01-01T00:00:{second:02}Z"
        template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "team", "uid": name, "creationTimestamp": created},
            "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 2, "template": template}]},
            "status": {"conditions": kinds},
        }

    answer = {"apiVersion": "v1", "kind": "List", "items": [workload("done", 0, *times), workload("new", 30)]}
    (folder / "queues.yaml").write_text(
        """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 3}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: team}
spec: {clusterQueue: q}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: old, namespace: team}
spec: {clusterQueue: gone}
"""
    )
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(answer).encode())))
    ended = harness("replay", "-", "--cluster", "-,queues.yaml", "-p", "kueue-classic", "--json")
    assert ended.code == 0, ended.err
    assert "warning: LocalQueue team/old: there is no ClusterQueue gone" in ended.err
    assert "1 Workload arrives later, at the time of creation" in ended.err
    (run,) = Path("results/stdin").iterdir()
    jobs = pl.read_parquet(run / "jobs.parquet")
    assert jobs["job_id"].to_list() == ["team/done", "team/new"]
    assert jobs["finish_time"][0] - jobs["start_time"][0] == timedelta(minutes=1)
    assert jobs["start_time"][1] == jobs["finish_time"][0]  # three cores are too few for both


def test_json_is_one_document_whatever_is_said(harness: Callable, trace: Path) -> None:
    """`--json` gives a versioned document with every metric of every scope; talk stays on stderr."""
    ended = harness("replay", trace, "--json", "-p", "none", "-p", "none@strict")
    document = json.loads(ended.out)
    assert document["schema"] == "1"
    assert [run["name"] for run in document["runs"]] == ["none", "strict"]
    assert document["baseline"] == "none"
    assert {"all", "queue=default"} <= {row["scope"] for row in document["metrics"]}
    assert all(set(row["values"]) == {"none", "strict"} for row in document["metrics"])
    assert ended.err


def test_quiet_leaves_stderr_empty(harness: Callable, trace: Path) -> None:
    """`-q` silences all talk, but no error."""
    assert harness("replay", trace, "-q").err == ""
    assert harness("replay", trace, "-q").out == harness("replay", trace).out
    assert harness("replay", "absent.parquet", "-q").err.startswith("Error: absent.parquet")


def test_several_plugins_are_one_comparison(harness: Callable, trace: Path) -> None:
    """The first is the baseline; each run is kept under its plugin and label."""
    ended = harness("replay", trace, "-p", "none@one", "-p", "none@two", "--set", "two.order=fifo")
    lines = ended.out.split("\n")
    assert any(line.startswith("baseline one") for line in lines)
    assert ["metric", "one", "two"] in [line.split() for line in lines]
    assert "changes are against one" in ended.out
    assert "option order priority -> fifo" in ended.out
    kept = sorted(path.name.rsplit("-", 1)[0] for path in Path("results/trace").iterdir())
    assert kept == ["none@one", "none@two"]


def test_options_reach_those_that_are_meant(harness: Callable, trace: Path, install: Callable) -> None:
    """A label counts more than a plugin's name, that more than a bare key; the last of equals counts."""
    install("two_options", TWO_OPTIONS)
    ended = harness(
        *("replay", trace, "--json", "-p", "none@a", "-p", "none@b.c", "-p", "idle"),
        *("--set", "b.c.order=priority", "--set", "order=fifo", "--set", "none.borrow=false"),
        *("--set", "blocking=skip", "--set", "blocking=strict", "--set", "patience=7"),
    )
    options = options_of(ended.out)
    assert options["a"] | {"blocking": "strict", "borrow": False, "order": "fifo"} == options["a"]
    assert options["b.c"] | {"blocking": "strict", "borrow": False, "order": "priority"} == options["b.c"]
    assert options["idle"] == {"order": "fifo", "patience": 7}


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["-p", "nnoe"], "there is no policy 'nnoe'", "did you mean 'none'?"),
        (["--set", "ordr=fifo"], "no plugin of this replay (none) has an option 'ordr'", "'order'"),
        (["--set", "nnone.order=fifo"], "nothing is replayed as 'nnone'", "did you mean 'none'?"),
        (["--set", "none.ordr=fifo"], "policy none has no option 'ordr'", "did you mean 'order'?"),
        (["--set", "order=fif"], "policy none, option order: 'fif' is not one of", None),
        (["-p", "none@x", "--set", "order=fif"], "policy none@x, option order: 'fif'", None),
        (["--set", "order"], "--set 'order' is not understood", "--set KEY=VALUE"),
        (["--set", "=fifo"], "--set '=fifo' is not understood", "--set KEY=VALUE"),
        (["--set", "tenant=user"], "has an option 'tenant'", "harness trace convert TRACE OUT.parquet --set"),
        (["-p", "none", "-p", "none"], "two runs would have the label 'none'", "--plugin none@first"),
        (["-p", "none@"], "'none@' is not understood", "NAME@LABEL"),
        (["-p", "@x"], "'@x' is not understood", "NAME@LABEL"),
        (["-p", "none@../../x"], "'../../x' cannot be a label", "letters"),
        (["-p", "none@.x"], "'.x' cannot be a label", "letters"),
        (["-p", f"none@{'x' * 41}"], "cannot be a label", "up to 40"),
        (["--until", "soon"], "until: 'soon' is not a duration", None),
        (["--startup", "never"], "startup: 'never' is not a duration", None),
        (["--grace-period", "-1s"], "grace period: '-1s' is not a duration", None),
        (["--on-preemption", "forget"], "loss model 'forget' is not understood", "restart, resume"),
        (["--scale-arrivals", "0"], "arrivals cannot be scaled by '0'", "twice as fast"),
        (["--cluster", "absent.yaml"], "absent.yaml: ", "give files or folders of Kubernetes"),
    ],
)
def test_wrong_options_are_one_clear_message(
    args: list[str], message: str, hint: str | None, harness: Callable, trace: Path
) -> None:
    """What is wrong, and what was probably meant; exit code 2, and no run."""
    ended = harness("replay", trace, *args)
    assert (ended.code, ended.out) == (2, "")
    error, *hints = [line for line in ended.err.rstrip("\n").split("\n") if not line.startswith("trace:")]
    assert error.startswith("Error: ")
    assert message in error
    assert len(hints) == (hint is not None)
    assert hint is None or (hints[0].startswith("Hint: ") and hint in hints[0])
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["repaly", "x"], "did you mean 'replay'?"),
        (["trace", "chekc", "x"], "did you mean 'check'?"),
        (["replay", "x", "--plugn", "none"], "Did you mean --plugin?"),
        (["replay", "x", "--no-plugin", "none"], "--no-plugin goes before the command"),
        (["--no-plugin", "nnone", "plugins"], "did you mean 'none'?"),
    ],
)
def test_a_slip_of_the_finger_is_answered_by_what_was_meant(
    args: list[str], meant: str, harness: Callable
) -> None:
    """Commands, options and plugins."""
    ended = harness(*args)
    assert ended.code == 2
    assert meant in ended.err.replace("'--plugin'", "--plugin")  # click's own, quoted by newer versions


def test_a_left_out_policy_is_said_to_be_left_out(harness: Callable, trace: Path) -> None:
    """`--no-plugin` explains why a policy is not there."""
    ended = harness("--no-plugin", "none", "replay", trace)
    assert ended.code == 2
    assert "there is no policy 'none'; left out: none" in ended.err


def test_manifests_beside_the_trace_are_taken_unless_others_are_given(harness: Callable, trace: Path) -> None:
    """`--cluster`, else `<trace>.cluster.yaml`, else one made from the trace, which stderr explains."""
    derived = harness("replay", trace)
    assert "assumed: one ClusterQueue, default" in derived.err
    assert "replay with --cluster FILE" in derived.err
    noted = harness("replay", trace, "--notes").out
    assert "a capacity of 5 cpu (nominal quotas), which harness assumed, because no cluster" in noted
    Path("trace.cluster.yaml").write_text(QUEUE.replace("CPUS", "1"))
    beside = harness("replay", trace)
    assert "cluster: trace.cluster.yaml" in beside.err
    assert "assumed" not in beside.err
    assert "no cluster was given" not in beside.err
    Path("other.yaml").write_text(QUEUE.replace("CPUS", "3"))
    given = harness("replay", trace, "--cluster", "other.yaml", "--json")
    assert "cluster: other.yaml" in given.err
    assert json.loads(given.out)["cluster"]["capacity"] == {"cpu": 3000}


def test_a_stored_result_is_said_to_be_one(harness: Callable, trace: Path) -> None:
    """The second replay shows the stored run; `--force` replays it."""
    first, second = harness("replay", trace), harness("replay", trace)
    assert "kept in results/trace/none-" in first.err
    assert "none: stored result results/trace/none-" in second.err
    assert "--force" in second.err
    assert first.out == second.out
    again = harness("replay", trace, "--force")
    assert "stored" not in again.err
    assert again.out == first.out


def test_a_stored_result_with_other_metrics_is_measured_again(
    harness: Callable, trace: Path, install: Callable
) -> None:
    """A metric that is installed later appears; a run without metrics is not taken for the answer."""
    assert harness("--no-plugin", "metrics", "replay", trace).out == "no metric was measured\n"
    assert "stored" not in harness("replay", trace).err
    install(
        "counts_rows",
        """
        import harness

        def rows(run, window):
            yield harness.Measurement("rows", run.jobs.height, "count")
            yield harness.Measurement("nothing", None, "count")

        @harness.hookimpl
        def harness_register_metrics(register):
            register(harness.MetricSpec("rows", rows, help="how many rows there are"))
        """,
    )
    ended = harness("replay", trace)
    assert "stored" not in ended.err
    assert "none: measured again, kept in results/trace/none-" in ended.err
    assert "none: stored result" in harness("replay", trace).err
    run = next(Path("results/trace").iterdir())
    shown = harness("compare", run, "--metric", "rows", "--metric", "nothing").out.split("\n")
    assert [line.split() for line in shown[2:4]] == [["rows", "4"], ["nothing", "-"]]
    values = json.loads(harness("compare", run, "--metric", "nothing", "--json").out)["metrics"][0]["values"]
    assert values == {"none": None}


def test_a_run_says_the_command_that_makes_it(harness: Callable, trace: Path) -> None:
    """The provenance holds the arguments as they were given, quoted for a shell."""
    harness("--debug", "replay", trace, "-p", "none@with space".replace(" ", "_"), "-o", "my results")
    (path,) = Path("my results/trace").iterdir()
    command = Run.open(path).info["provenance"]["command"]
    assert command == "harness replay trace.parquet -p none@with_space -o 'my results'"


@pytest.mark.parametrize(
    ("name", "filed"),
    [
        ("..parquet", "trace"),
        (".hidden.parquet", "hidden"),
        ("two.dots.parquet", "two.dots"),
        ("-rf.parquet", "-rf"),
        ("\x1b[31mred.parquet", "\N{REPLACEMENT CHARACTER}[31mred"),
        ("日本 語.parquet", "日本 語"),
    ],
)
def test_a_traces_name_never_leads_out_of_the_results(
    name: str, filed: str, harness: Callable, trace: Path
) -> None:
    """Whatever a trace is called, its runs are in one folder below the results."""
    trace.rename(name)
    ended = harness("replay", "--", name) if name.startswith("-") else harness("replay", name)
    assert ended.code == 0, ended.err
    assert [path.name for path in Path("results").iterdir()] == [filed]
    (run,) = (Path("results") / filed).iterdir()
    assert Run.open(run).info["provenance"]["trace"] == name
    assert "\x1b" not in ended.out + ended.err
    assert json.loads(harness("replay", "--json", "--", name).out)["trace"]["name"] == filed


def test_a_label_must_be_fit_for_a_folder() -> None:
    """From Python too."""
    from harness.api import labels

    with pytest.raises(OptionError, match="cannot be a label"):
        labels(["none@a/b"])


NODES = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec: {root: {name: default, min: {cpu: 4, memory: 8Gi}, max: {cpu: 4, memory: 8Gi}, namespaces: [default]}}
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""


@pytest.mark.parametrize(
    ("algorithm", "plugin"),
    [
        ("Auto", "auto"),
        ("ElasticQuota", "elasticquota"),
        ("Default", "default-preemption"),
        ("None", "none"),
        (None, "auto"),
    ],
)
def test_the_scheduler_configuration_selects_the_plugin(
    harness: Callable, folder: Path, trace: Path, algorithm: str | None, plugin: str
) -> None:
    """Where none is named; it is said, and its options can be set."""
    said = f"preemptionAlgorithm: {algorithm}\n" if algorithm else ""
    (folder / "c.yaml").write_text(NODES + said)
    ended = harness("replay", trace, "--cluster", "c.yaml", "--set", f"{plugin}.percentageOfNodesToScore=50")
    assert ended.code == 0
    assert ended.out.split("\n")[0].split() == ["metric", plugin]
    shown = algorithm or "Auto, the default,"
    line = f"plugin: {plugin}, as preemptionAlgorithm {shown} of the KubeSchedulerConfiguration says"
    assert line in ended.err.split("\n")
    assert "ignores this setting" not in ended.err


def test_a_named_plugin_counts_more_than_the_scheduler_configuration(
    harness: Callable, folder: Path, trace: Path
) -> None:
    """Those that do not follow it are named; `auto` does what it says."""
    (folder / "c.yaml").write_text(f"{NODES}preemptionAlgorithm: Default\n")
    names = ("none", "default-preemption", "auto", "elasticquota")
    ended = harness("replay", trace, "--cluster", "c.yaml", *(f"--plugin={name}" for name in names))
    assert [line for line in ended.err.split("\n") if "preemptionAlgorithm" in line] == [
        "warning: KubeSchedulerConfiguration: preemptionAlgorithm Default selects the plugin "
        f"default-preemption, but {name} ignores this setting"
        for name in ("none", "elasticquota")
    ]


def test_a_configuration_that_says_nothing_of_preemption_is_followed_by_all(
    harness: Callable, folder: Path, trace: Path
) -> None:
    """Nobody was asked for anything."""
    (folder / "c.yaml").write_text(NODES)
    ended = harness("replay", trace, "--cluster", "c.yaml", "-p", "none")
    assert "preemptionAlgorithm" not in ended.err


def test_an_option_of_no_selected_plugin_is_refused(harness: Callable, folder: Path, trace: Path) -> None:
    """As for plugins that were named."""
    (folder / "c.yaml").write_text(NODES)
    ended = harness("replay", trace, "--cluster", "c.yaml", "--set", "nothing=1")
    assert ended.code == 2
    assert "no plugin of this replay (auto) has an option 'nothing'" in ended.err


def test_what_a_plugin_assumes_is_said_once_and_kept(harness: Callable, trace: Path, folder: Path) -> None:
    """Also where several plugins, or several clusters, assume the same; what is off is not assumed."""
    ended = harness("replay", trace, "-p", "kueue-classic", "-p", "fairsharing", "-p", "none")
    (line,) = (each for each in ended.err.split("\n") if "waitForPodsReady" in each)
    assert line.split("; ") == [
        (
            "assumed: kueue-classic, fairsharing: waitForPodsReady is on, which is Kueue's default since "
            "0.19: a workload is evicted if its pods are not all ready 30m00s after its admission"
        ),
        "--set featureGates=DisableWaitForPodsReady=true turns it off",
    ]
    runs = (folder / "results" / "trace").iterdir()
    policies = [json.loads((run / "run.json").read_text())["policy"] for run in runs]
    assert {each["name"] for each in policies if each.get("assumed")} == {"kueue-classic", "fairsharing"}
    off = ("--set", "featureGates=DisableWaitForPodsReady=true")
    assert "waitForPodsReady" not in harness("replay", trace, "-p", "kueue-classic", *off).err


def test_a_preview_is_named_where_the_run_begins_in_run_json_and_in_the_report(
    harness: Callable, trace: Path, folder: Path
) -> None:
    """Off, the run is the very same to the byte, but for the option's text and the provenance."""
    told = "preview previewMinRunTime=1h: Kueue has no such rule, so results cannot be verified"
    ended = harness("replay", trace, "-p", "kueue-classic@on", "--set", "previewMinRunTime=1h")
    assert f"assumed: on: {told}" in ended.err or f"assumed: {told}" in ended.err
    (run,) = (folder / "results" / "trace").iterdir()
    policy = json.loads((run / "run.json").read_text())["policy"]
    assert told in policy["assumed"]
    assert policy["options"]["previewMinRunTime"] == "1h"
    assert told in harness("report", run, "--format", "markdown").out
    plain, off = folder / "plain", folder / "off"
    assert "preview previewMin" not in harness("replay", trace, "-p", "kueue-classic", "-o", plain).err
    ended = harness("replay", trace, "-p", "kueue-classic", "--set", "previewMinRunTime=0s", "-o", off)
    assert "preview previewMin" not in ended.err
    one, two = (sorted(each.rglob("*.parquet")) for each in (plain, off))
    assert [each.name for each in one] == [each.name for each in two]
    assert [each.read_bytes() for each in one] == [each.read_bytes() for each in two]


def test_a_crash_of_the_real_controller_is_said_at_the_end(harness: Callable, folder: Path) -> None:
    """When it was first, at which job, and why; the replay goes on as later releases do."""
    rows = ["job_id,submit_time,duration,queue,priority,request.cpu"]
    rows += ["low,0,1000,a,0,1", "high,0,1000,a,2,1", "head,60,100,a,1,2"]
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "c.yaml").write_text(
        """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 2}]}]
"""
    )
    asked = ("replay", "jobs.csv", "--cluster", "c.yaml", "-p", "fairsharing", "--set")
    ended = harness(*asked, "kueueVersion=v0.17")
    assert ended.code == 0
    assert (
        "warning: fairsharing: the real controller would have crashed, first 1m00s after the beginning at "
        "head (jobs: 1), and again after each restart: "
        "Kueue v0.17.8 crashes here: ClusterQueue a has no cohort"
    ) in ended.err
    assert "crashed" not in harness(*asked, "kueueVersion=v0.18").err


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_policy_prints_goes_to_stderr(
    shell: Callable, install: Callable, trace: Path, workers: int
) -> None:
    """Stdout is one JSON document, also if the policy runs in a process of its own."""
    site = install("prints", PRINTS)
    said = shell(f"harness replay {trace} -p prints -p none --json --workers {workers}", PYTHONPATH=str(site))
    assert said.code == 0
    assert set(options_of(said.out)) == {"prints", "none"}
    assert "told of" in said.err
