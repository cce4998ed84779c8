"""Which run answers a question: one of the same inputs, made and measured by the same code."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
import yaml
from policies import Greedy, Priority

import harness
from harness.api import read_trace
from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.runs import identity
from harness.runs.identity import code_of_harness, code_of_policy

ROOT = Path(__file__).parents[2]

LAST_FIRST = """
from harness import Admit


class Acme:
    def __init__(self, cluster, view, options):
        self.view, self.waiting = view, []

    def submit(self, job, pods, now):
        self.waiting.append(job)

    def release(self, job, pods, now, why):
        pass

    def cycle(self, now):
        for job in self.waiting[::ORDER]:
            if self.view.fits(job):
                self.waiting.remove(job)
                yield Admit(job)


ORDER = -1
"""
FIRST_FIRST = LAST_FIRST.replace("ORDER = -1", "ORDER = +1")
PLUGIN = """
import harness


@harness.hookimpl
def harness_register_policies(register):
    def make(cluster, view, options):
        from acme.deciding import Acme

        return Acme(cluster, view, options)

    register(harness.PolicySpec("acme", make, help="for tests"))
"""

Replay = Callable[..., harness.Run]


@pytest.fixture
def replay(write_trace: Callable[..., Path], tmp_path: Path) -> Replay:
    """Replays two jobs of which one fits at a time."""
    trace = write_trace(*({"duration": 5 + number} for number in range(2)))
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(POOL)
    return partial(harness.replay, trace, cluster=cluster, output=tmp_path / "results")


POOL = """
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
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1}]}]
"""


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules are imported; they are forgotten at the end."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # its sums are too coarse for such quick edits
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def imported(name: str) -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(name)


def first_to_end(run: harness.Run) -> str:
    return str(run.jobs.sort("finish_time")["job_id"][0])


# --- code that decides ------------------------------------------------------------------------------------


def test_an_edited_policy_is_another_one_in_python(importable: Path, replay: Replay) -> None:
    """Its file is edited between two calls and imported again: the result is new; undone, it is the old."""
    file = importable / "mine.py"
    file.write_text(LAST_FIRST)
    mine: Any = imported("mine")
    first = replay(plugin=mine.Acme)
    assert (first.stored, first_to_end(first)) == (False, "j1")
    assert replay(plugin=mine.Acme).stored
    file.write_text(FIRST_FIRST)
    importlib.reload(mine)
    second = replay(plugin=mine.Acme)
    assert (second.stored, first_to_end(second)) == (False, "j0")
    assert replay(plugin=mine.Acme).stored
    file.write_text(LAST_FIRST)
    importlib.reload(mine)
    assert replay(plugin=mine.Acme).path == first.path
    (_, told) = harness.compare([first, second]).to_json()["runs"]
    assert [(each["kind"], each["name"], each["field"]) for each in told["differences"]] == [
        ("plugin", "Acme", "code")
    ]


def test_a_policy_that_was_edited_but_not_imported_again_is_not_stored(
    importable: Path, replay: Replay
) -> None:
    """What it did is not what its file says: neither is answered by the other, and it is said."""
    file = importable / "mine.py"
    file.write_text(LAST_FIRST)
    mine: Any = imported("mine")
    first = replay(plugin=mine.Acme)
    file.write_text(FIRST_FIRST)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"mine\.py was changed after it had been imported, but"):
            old = replay(plugin=mine.Acme)
        assert (old.stored, first_to_end(old)) == (False, "j1")
        assert "was changed after it had been imported" in old.info["policy"]["code"]["unknown"]
    importlib.reload(mine)
    new = replay(plugin=mine.Acme)
    assert (new.stored, first_to_end(new)) == (False, "j0")
    assert len({first.path, old.path, new.path}) == 3


def test_a_module_that_is_imported_late_counts_as_it_was_imported(importable: Path, replay: Replay) -> None:
    """It was edited after its package had been looked at: nobody knows which of the two was imported."""
    package = importable / "acme"
    package.mkdir()
    (package / "__init__.py").write_text(
        "def make(cluster, view, options):\n"
        "    from acme.deciding import Acme\n    return Acme(cluster, view, options)\n"
    )
    (package / "deciding.py").write_text(LAST_FIRST)
    acme: Any = imported("acme")
    assert not replay(plugin=acme.make).stored
    assert replay(plugin=acme.make).stored
    (package / "deciding.py").write_text(FIRST_FIRST)
    for _ in range(2):
        with pytest.warns(UserWarning, match="was changed"):
            assert not replay(plugin=acme.make).stored
    importlib.reload(sys.modules["acme.deciding"])
    assert first_to_end(replay(plugin=acme.make)) == "j0"
    assert replay(plugin=acme.make).stored


def test_an_edit_while_the_trace_is_read_is_noticed(
    importable: Path, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading may take minutes, and what was imported before it is what is replayed."""
    file = importable / "mine.py"
    file.write_text(LAST_FIRST)
    mine: Any = imported("mine")

    def slowly(*args: Any) -> Any:
        file.write_text(FIRST_FIRST)
        return read_trace(*args)

    monkeypatch.setattr("harness.runs.request.read_trace", slowly)
    with pytest.warns(UserWarning, match="was changed"):
        run = replay(plugin=mine.Acme)
    assert first_to_end(run) == "j1"
    assert run.info["policy"]["code"]["unknown"]


def test_code_without_a_file_is_never_stored(importable: Path, replay: Replay) -> None:
    """A cell of a notebook, a class of a function, a function with what it closes over."""
    exec(LAST_FIRST, cell := {"__name__": "__main__"})
    exec(FIRST_FIRST, other := {"__name__": "__main__"})
    (importable / "mine.py").write_text(LAST_FIRST)
    mine: Any = imported("mine")
    exec(FIRST_FIRST.replace("class Acme", "class Later"), vars(mine))

    class Local(Greedy):
        pass

    class OfLocal(Local):
        pass

    def make(*args: Any) -> Greedy:
        return Greedy(*args)

    for policy in (cell["Acme"], other["Acme"], mine.Later, Local, OfLocal, make, partial(Greedy)):
        for _ in range(2):
            run = replay(plugin=policy, label="it")
            assert not run.stored
            assert run.info["policy"]["code"]["unknown"]
    assert not replay(plugin=Greedy).stored
    assert replay(plugin=Greedy).stored


def test_runs_of_different_cells_are_kept_side_by_side(replay: Replay) -> None:
    """What is in memory tells them apart, also what a function closes over; the same twice is one folder."""

    def make(late: bool) -> Any:
        class Sometimes(Greedy):
            def cycle(self, now: int) -> Any:
                return super().cycle(now) if now or not late else iter([harness.Wake(1)])

        return Sometimes

    early, late, again = (replay(plugin=make(choice), label="it") for choice in (False, True, True))
    assert early.path != late.path == again.path
    early.check()
    harness.compare([early, replay(plugin=make(True), label="other")])


def test_what_is_set_on_a_class_in_python_counts(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attribute, and a method that comes from elsewhere."""
    paths = {replay(plugin=Greedy).path}
    monkeypatch.setattr(Greedy, "weights", {"a": 1}, raising=False)
    paths.add(replay(plugin=Greedy).path)
    monkeypatch.setitem(Greedy.weights, "a", 2)  # type: ignore[attr-defined]
    paths.add(replay(plugin=Greedy).path)
    assert len(paths) == 3
    monkeypatch.setattr(Greedy, "preempt", lambda self, now: iter(()))
    assert not replay(plugin=Greedy).stored
    assert not replay(plugin=Greedy).stored


def test_what_a_class_inherits_counts(importable: Path, replay: Replay) -> None:
    """The files of all classes that it is made of."""
    (importable / "base.py").write_text(LAST_FIRST)
    (importable / "mine.py").write_text("from base import Acme\n\nclass Mine(Acme):\n    pass\n")
    mine: Any = imported("mine")
    first = replay(plugin=mine.Mine)
    assert replay(plugin=mine.Mine).stored
    (importable / "base.py").write_text(FIRST_FIRST)
    importlib.reload(sys.modules["base"])
    importlib.reload(mine)
    second = replay(plugin=mine.Mine)
    assert (second.stored, first_to_end(first), first_to_end(second)) == (False, "j1", "j0")


def test_an_installed_policy_of_the_same_version_is_another_one_when_its_files_are(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Installed again, or edited where an editable install leads; wherever it lies, it is the same one."""
    trace = write_trace(*({"duration": 5 + number} for number in range(2)))
    (tmp_path / "cluster.yaml").write_text(POOL)
    sources = tmp_path / "sources"
    site = tmp_path / "site"

    def install(deciding: str, *, editable: bool = False) -> None:
        for folder in (site, sources):
            shutil.rmtree(folder, ignore_errors=True)
        about = site / "acme-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[harness]\nacme = acme\n")
        package = (sources if editable else site) / "acme"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(PLUGIN)
        (package / "deciding.py").write_text(deciding)

    def called(*options: str) -> tuple[bool, str, int]:
        """Whether a stored run was the answer, which job ended first, and how many runs there are."""
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "harness", "replay", str(trace), "-p", "acme", *options),
                *("--cluster", str(tmp_path / "cluster.yaml"), "-o", str(tmp_path / "results")),
            ],
            env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{sources}"},
            capture_output=True,
            text=True,
            check=True,
        )
        runs = sorted((tmp_path / "results" / "trace").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return "stored" in ran.stderr, first_to_end(harness.Run.open(runs[-1])), len(runs)

    install(LAST_FIRST)
    assert called() == (False, "j1", 1)
    install(FIRST_FIRST)
    assert called() == (False, "j0", 2)
    install(FIRST_FIRST, editable=True)
    assert called() == (True, "j0", 2)
    (sources / "acme" / "deciding.py").write_text(LAST_FIRST.replace("ORDER = -1", "ORDER = -1 "))
    assert called() == (False, "j1", 3)


def test_every_room_that_decides_or_records_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The engine, the models, traces, the recording, and any room that is new; not what only shows."""
    home = tmp_path / "harness"
    shutil.copytree(ROOT / "harness", home, ignore=shutil.ignore_patterns("__pycache__", "bundled"))
    monkeypatch.setattr(identity, "_HOME", home)
    before = code_of_harness()
    assert not before.unknown
    for name in (
        *(
            "cli/replay.py",
            "analysis/report/page.py",
            "analysis/metrics/waiting.py",
            "analysis/difference.py",
        ),
        *(
            "trace/bundled.py",
            "trace/generate/spec.py",
            "studies/tuning/search.py",
            "studies/forecasting/scores.py",
            "engine/.engine.py.swp",
        ),
        *("readers/live/http.py", "plugins/scaffold/package.py", "analysis/export/perfetto.py"),
    ):
        (home / name).write_text("# another one\n")
        assert code_of_harness() == before, name
    seen = {before.sha256}
    for name in (
        *(
            "engine/engine.py",
            "cluster/kinds/pods.py",
            "trace/jobs.py",
            "runs/recording/recorder.py",
            "runs/plan.py",
            "runs/estimates/draws.py",
        ),
        *("policy.py", "job.py", "quota.py", "units.py", "engine/new.py"),
    ):
        (home / name).write_text("# another one\n")
        seen.add(code_of_harness().sha256)
    assert len(seen) == 12


def test_what_comes_and_goes_in_a_folder_that_was_looked_at_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file that is new, edited or gone, and a room that is new, where nothing was written for a while."""
    home = tmp_path / "harness"
    (home / "engine").mkdir(parents=True)
    clock = iter(range(1, 100))

    def changed(file: Path, text: str | None) -> str:
        """Write or remove a file, which the clock of the disk notices; answers what the code is then."""
        file.parent.mkdir(exist_ok=True)
        file.unlink() if text is None else file.write_text(text)
        for each in (file, file.parent, home):
            if each.exists():
                os.utime(each, ns=(0, next(clock)))
        return code_of_harness().sha256

    monkeypatch.setattr(identity, "_HOME", home)
    monkeypatch.setattr(identity, "_SETTLED", -(2**80))
    engine, new, room = (home / name for name in ("engine/engine.py", "engine/new.py", "later/one.py"))
    one, with_new = changed(engine, "# one\n"), changed(new, "# new\n")
    with_room, edited = changed(room, "# one\n"), changed(room, "# two\n")
    assert len({one, with_new, with_room, edited}) == 4
    assert (changed(room, "# one\n"), changed(room, None), changed(new, None)) == (with_room, with_new, one)


def test_of_a_compiled_module_what_is_loaded_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where an extension module lies beside its source, an edit of the source changes nothing that runs."""
    home = tmp_path / "harness"
    (home / "engine").mkdir(parents=True)
    source, compiled = home / "engine" / "engine.py", home / "engine" / f"engine{EXTENSION_SUFFIXES[0]}"
    source.write_text("# one\n")
    (home / "engine" / "new.py").write_text("# one\n")
    monkeypatch.setattr(identity, "_HOME", home)
    monkeypatch.setattr(identity, "compiled_sources", dict)
    plain = code_of_harness()
    compiled.write_text("one")
    both = code_of_harness()
    source.write_text("# another one\n")
    assert code_of_harness() == both
    compiled.write_text("another one")
    other = code_of_harness()
    (home / "engine" / "new.py").write_text("# another one\n")
    assert len({plain, both, other, code_of_harness()}) == 4


def test_what_our_build_compiles_counts_as_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs of the plain build and of the compiled one are of the same code, unless the source is another."""
    home = tmp_path / "harness"
    (home / "models").mkdir(parents=True)
    source = home / "models" / "quota.py"
    source.write_text("# one\n")
    (home / "units.py").write_text("# one\n")
    monkeypatch.setattr(identity, "_HOME", home)
    monkeypatch.setattr(identity, "compiled_sources", dict)
    plain = code_of_harness()
    (home / "models" / f"quota{EXTENSION_SUFFIXES[0]}").write_text("what the compiler made of it")
    (home / "compiled.json").write_text("what the build says of it")
    sources = {"harness": {"models/quota.py": blake2b(b"# one\n").hexdigest()}}
    monkeypatch.setattr(identity, "compiled_sources", lambda: sources)
    assert code_of_harness() == plain
    (home / "units.py").write_text("# another one\n")
    other = code_of_harness()
    assert (other.unknown, other == plain) == ("", False)
    source.write_text("# another one\n")
    unknown = code_of_harness()
    assert unknown.changed
    assert unknown.unknown == f"{source} was changed after it had been compiled"


def test_the_built_in_plugins_count_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of others may build on them."""
    spec = harness.PolicySpec("greedy", Greedy, "", (), False)
    with_ours = code_of_policy(spec)
    monkeypatch.setattr(identity, "own_modules", lambda: ())
    assert code_of_policy(spec) != with_ours
    assert not with_ours.unknown
    assert code_of_policy(replace(spec, factory=Priority)) != code_of_policy(spec)


def test_all_built_in_policies_and_metrics_are_known() -> None:
    """Their runs are answered from the store."""
    plugins = load()
    assert [spec.name for spec in plugins.policies if code_of_policy(spec).unknown] == []
    assert [spec.name for spec in plugins.metrics if identity.code_of_metric(spec).unknown] == []


# --- code that measures -----------------------------------------------------------------------------------

METRIC = """
import harness


def rows(run, window):
    yield harness.Measurement("rows", run.jobs.height * 1, "count")


class Plugin:
    @harness.hookimpl
    def harness_register_metrics(self, register):
        register(harness.MetricSpec("rows", rows, help="how many"))
"""


def test_an_edited_metric_is_measured_again_without_a_replay(
    importable: Path, replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of what happened stay as they are, and so does what it took to make them."""
    file = importable / "counting.py"
    file.write_text(METRIC)
    counting: Any = imported("counting")

    def again() -> harness.Run:
        return replay(plugins=load(extra={"counting": counting.Plugin()}))

    first = again()
    assert first.metrics.filter(metric="rows")["value"].to_list() == [2]
    assert (again().stored, again().measured_again) == (True, False)
    file.write_text(METRIC.replace("* 1", "* 2"))
    importlib.reload(counting)
    with monkeypatch.context() as patch:
        patch.setattr("harness.engine.Engine.run", None)
        second = again()
    assert (second.path, second.stored, second.measured_again) == (first.path, True, True)
    assert second.metrics.filter(metric="rows")["value"].to_list() == [4]
    assert next(row for row in second.info["metrics"] if row["metric"] == "rows")["value"] == 4
    for key in ("command", "wall_seconds", "cpu_seconds", "machine"):
        assert second.info["provenance"][key] == first.info["provenance"][key]
    harness.Run.open(second.path).check()
    assert second.decisions.height
    assert not again().measured_again
    assert [path.name for path in second.path.parent.iterdir()] == [second.path.name]


def test_a_metric_without_a_file_is_always_measured(replay: Replay) -> None:
    """Nobody knows whether it is still the same."""
    factor = 1

    class Counting:
        @harness.hookimpl
        def harness_register_metrics(self, register: harness.Register[harness.MetricSpec]) -> None:
            register(
                harness.MetricSpec(
                    "rows", lambda run, window: [harness.Measurement("rows", factor, "count")], help=""
                )
            )

    for factor in (2, 3):
        run = replay(plugins=load(extra={"counting": Counting()}))
        assert run.metrics.filter(metric="rows")["value"].to_list() == [factor]
        assert run.stored == (factor == 3)


# --- inputs -----------------------------------------------------------------------------------------------


def test_what_is_not_modelled_of_manifests_is_the_same_cluster(replay: Replay, tmp_path: Path) -> None:
    """Status, versions, managed fields and annotations that nothing reads, the form, and the file's name."""
    flavor, queue = yaml.safe_load_all(POOL)
    first = replay()
    queue["metadata"] |= {
        "resourceVersion": "77",
        "uid": "x",
        "generation": 4,
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
    }
    queue["status"] = {"admittedWorkloads": 3, "conditions": [{"type": "Active", "status": "True"}]}
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": [flavor, queue]}))
    again = replay(cluster=other)
    assert (again.stored, again.path) == (True, first.path)
    flavor["spec"] = {"nodeLabels": {"pool": "a"}}
    other.write_text(yaml.safe_dump_all([flavor, queue]))
    assert replay(cluster=other).path != first.path


def test_status_and_labels_that_are_modelled_count(tmp_path: Path) -> None:
    """What a node can hold is in its status; its labels and taints choose pods."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "labels": {"zone": "a"}, "annotations": {"x": "1"}},
        "status": {"allocatable": {"cpu": "4"}, "nodeInfo": {"kubeletVersion": "1"}},
    }

    def digest(**changes: Any) -> str:
        path = tmp_path / "node.yaml"
        path.write_text(yaml.safe_dump({**node, **changes}))
        return load_cluster(path).digest

    status = {"allocatable": {"cpu": "4"}, "nodeInfo": {"kubeletVersion": "2"}, "images": []}
    assert digest() == digest(status=status, metadata={"name": "one", "labels": {"zone": "a"}})
    larger, unlabelled = digest(status={"allocatable": {"cpu": "5"}}), digest(metadata={"name": "one"})
    assert len({digest(), larger, unlabelled}) == 3


def test_a_trace_in_memory_counts_by_its_values(replay: Replay, tmp_path: Path) -> None:
    """Unchanged it is the same as its file; changed in Python it is another one, whatever it came from."""
    path = replay.args[0]  # type: ignore[attr-defined]
    trace = read_trace(path, load())
    run = partial(harness.replay, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results")
    first = run(trace)
    assert run(path).stored
    longer = replace(trace, frame=trace.frame.with_columns(pl.col("duration") * 2))
    assert not run(longer).stored
    assert run(longer).stored
    assert run(longer).path != first.path
    assert run(longer).window.end == 2 * first.window.end
