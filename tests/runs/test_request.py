"""Requests: values that go anywhere, and are carried out the same everywhere."""

from __future__ import annotations

import gc
import json
import pickle
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from glob import glob
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import polars as pl
import pytest
from cli_environment import LONG
from hypothesis import given
from hypothesis import strategies as st
from policies import Greedy

import harness
from harness import Request
from harness.api import read_trace
from harness.base.errors import OptionError, RunError
from harness.base.frozen import Frozen
from harness.base.options import Option, resolve
from harness.base.units import LONGEST, parse_duration
from harness.cluster.load import load_cluster
from harness.engine.losses import Losses
from harness.plugins import load
from harness.runs.run import TABLES
from harness.trace.calibration import Calibration

PLUGINS = load()
LABEL = st.text("abcXYZ019_.+-", min_size=1, max_size=20).filter(lambda text: text[0] not in ".-")
CALIBRATIONS: dict[str, list[str | None]] = {
    "window": [None, "1h..2d", "..90m"],
    "sample": [None, "0.1@7", "0.25"],
    "priority_from": [None, "queue=prod:100,*:0"],
    "priority_share": [None, "0.2:1000@7", "0.1:5,0.125:-3"],
    "tenants": [None, "column:user,top:20", "names"],
    "scale_cluster": [None, "1/8", "3"],
}


@st.composite
def options_of(draw: st.DrawFn, declared: tuple[Option, ...]) -> dict[str, Any]:
    """Some options of a policy, each as it is, as a text, or another of its choices."""
    chosen = {}
    for option in declared:
        values = [option.default, *option.choices]
        if option.type is int:
            values.append(str(option.default or 7))
        if type(option.default) is bool:
            values += [not option.default, "yes"]
        if draw(st.booleans()) and option.default is not None:
            chosen[option.name] = draw(st.sampled_from(values))
    return chosen


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """With paths and registered plugins."""
    plugin = draw(st.sampled_from([None, *PLUGINS.policies.names()]))
    declared = () if plugin is None else PLUGINS.policy(plugin).options
    losses = st.builds(Losses, st.just("checkpoint"), st.integers(1, LONGEST), st.integers(0, LONGEST))
    steps = {name: draw(st.sampled_from(texts)) for name, texts in CALIBRATIONS.items()}
    return Request(
        draw(st.sampled_from(["t.parquet", Path("/a b/日本.swf.gz")])),
        plugin=plugin,
        cluster=draw(st.sampled_from([None, "c.yaml", Path("folder")])),
        options=draw(options_of(declared)),
        label=draw(st.none() | LABEL | st.builds("{}@{}".format, LABEL, LABEL)),
        on_preemption=draw(st.sampled_from(["restart", "resume"]) | losses),
        grace_period=draw(st.sampled_from(["0s", "90s"]) | st.integers(0, LONGEST)),
        until=draw(st.none() | st.sampled_from(["7d"]) | st.integers(0, LONGEST)),
        scale_arrivals=draw(st.fractions(Fraction(1, 1000), 1000, max_denominator=1000) | st.just("0.5")),
        calibration=draw(st.sampled_from([None, Calibration.parse(**steps)])),
        output=draw(st.sampled_from(["results", "elsewhere/runs"])),
        force=draw(st.booleans()),
        keep=draw(st.sampled_from(["all", "metrics", "nothing"])),
        twin=draw(st.sampled_from([None, "1", "12@7,arrivals=5m,ties,durations=1%"])),
    )


@given(requests())
def test_requests_survive_pickle_and_json(request: Request) -> None:
    """Over all built-in plugins, their options and all settings; texts and what they stand for are equal."""
    assert pickle.loads(pickle.dumps(request)) == request
    written = json.dumps(request.to_json(), allow_nan=False)
    again = Request.from_json(json.loads(written))
    assert json.dumps(again.to_json()) == written
    for item in fields(Request):
        assert getattr(again, item.name) == getattr(request, item.name), item.name
    if request.plugin is not None:
        assert isinstance(request.plugin, str)
        declared = PLUGINS.policy(request.plugin).options
        assert resolve(declared, again.options, owner="") == resolve(declared, request.options, owner="")


def test_a_request_is_the_same_however_it_is_written() -> None:
    """Texts, numbers and values of our own; a misspelt one is an error before any file is read."""
    written = Request("t", on_preemption="checkpoint=1h", grace_period="1m", scale_arrivals="0.5", until="2d")
    typed = Request(
        Path("t"),
        on_preemption=Losses("checkpoint", parse_duration("1h")),
        grace_period=60_000_000,
        scale_arrivals=Fraction(1, 2),
        until=2 * 86_400_000_000,
    )
    assert written == typed
    for wrong in ({"keep": "some"}, {"label": "a/b"}, {"until": "soon"}, {"scale_arrivals": 0}):
        with pytest.raises(OptionError):
            Request("t", **wrong)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        written.trace = Path("x")  # type: ignore[misc]
    with pytest.raises(TypeError, match="this mapping is read-only"):
        written.options["x"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "not a request of schema '1'"),
        ({"schema": "1"}, "must name a trace"),
        ({"schema": "1", "trace": "t", "pluginn": "none"}, "has no 'pluginn'"),
        ({"schema": "1", "trace": ["t"]}, "trace cannot be"),
        ({"schema": "1", "trace": "t", "force": "yes"}, "force cannot be 'yes'"),
        ({"schema": "1", "trace": "t", "keep": "x"}, "keep: 'x' is not one of all, metrics, nothing"),
        ({"schema": "1", "trace": "t", "twin": "0"}, "twin '0': 0 is not a number from 1 to 10,000"),
        ({"schema": "1", "trace": "t", "calibration": {"windo": "1h.."}}, "calibration has no 'windo'"),
        ({"schema": "1", "trace": "t", "calibration": {"window": 1}}, "calibration: window cannot be 1"),
    ],
)
def test_a_document_that_is_no_request_is_refused(document: Mapping[str, Any], message: str) -> None:
    """What is wrong is named."""
    with pytest.raises(OptionError, match=message):
        Request.from_json(document)


# --- in memory --------------------------------------------------------------------------------------------

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


@pytest.fixture
def world(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., Request]:
    """Requests for a small trace on two nodes."""
    trace = write_trace(*({"submit_time": number, "priority": number % 2} for number in range(9)))
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(POOL)
    return partial(Request, trace, cluster=cluster, output=tmp_path / "results")


def test_json_refuses_what_is_in_memory_by_name(world: Callable[..., Request]) -> None:
    """Trace, cluster, class and option, all at once; pickle takes them."""
    paths = world()
    assert isinstance(paths.trace, Path)
    assert isinstance(paths.cluster, Path)
    request = replace(
        paths,
        trace=read_trace(paths.trace, PLUGINS),
        cluster=load_cluster(paths.cluster),
        plugin=Greedy,
        options={"seed": Fraction(1, 3)},
        label="mine",
    )
    with pytest.raises(OptionError) as refused:
        request.to_json()
    assert str(refused.value) == (
        "request mine cannot be written as JSON: trace is a Trace, cluster is a Cluster, plugin is type "
        "Greedy, option seed is a Fraction"
    )
    again: Request = pickle.loads(pickle.dumps(request))
    assert again.cluster == request.cluster
    assert (again.plugin, again.options) == (Greedy, request.options)


def test_values_in_memory_give_the_run_of_their_files(world: Callable[..., Request]) -> None:
    """Also after a journey: the second one is stored."""
    paths = world(plugin="default-preemption")
    first = paths.run()
    assert isinstance(paths.trace, Path)
    assert isinstance(paths.cluster, Path)
    values = replace(paths, trace=read_trace(paths.trace, PLUGINS), cluster=load_cluster(paths.cluster))
    for request in (values, pickle.loads(pickle.dumps(values)), Request.from_json(paths.to_json())):
        run = request.run()
        assert (run.stored, run.path) == (True, first.path)
    assert harness.replay(
        paths.trace, plugin="default-preemption", cluster=paths.cluster, output=paths.output
    ).stored


def test_traces_in_memory_are_values(write_trace: Callable[..., Path]) -> None:
    """They are equal where all that they say is, read or unpickled, and so are requests that hold them."""
    path = write_trace({}, {"queue": "b"})
    trace, again = read_trace(path, PLUGINS), read_trace(path, PLUGINS)
    asked = Request(trace, plugin="none")
    assert trace == again
    assert hash(trace) == hash(again)
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert asked == Request(again, plugin="none")
    other = replace(trace, frame=trace.frame.head(1))
    assert trace != other
    assert trace != "a trace"
    assert Request(other, plugin="none") != asked


def test_a_request_is_read_from_a_mapping() -> None:
    """A text is told what makes one of it."""
    with pytest.raises(OptionError, match="from a mapping, but this is a str") as caught:
        Request.from_json("{}")  # type: ignore[arg-type]
    assert caught.value.hint == "json.loads makes a mapping from a string"


def test_every_cluster_can_be_pickled(tmp_path: Path) -> None:
    """With all that is modelled, and what was found out about it already."""
    examples = sorted((Path(__file__).parents[2] / "traces").glob("*.cluster.yaml"))
    assert examples
    for path in examples:
        cluster = load_cluster(path)
        assert cluster.digest
        again = pickle.loads(pickle.dumps(cluster))
        assert again == cluster
        assert replace(again).digest == cluster.digest


def test_plugins_are_loaded_again_where_they_are_unpickled() -> None:
    """The same ones, and no others."""
    some = load(only=["none", "kube", "readers"], block=["readers"])
    again = pickle.loads(pickle.dumps(some))
    assert [info.name for info in again.found] == ["kube", "none"]
    assert again.left_out == some.left_out
    assert again.policies.names() == some.policies.names()


def test_a_frozen_mapping_is_a_mapping_that_stays() -> None:
    """Equal to a dictionary, copied and pickled as one, and never changed."""
    made = Frozen({"a": 1})
    assert pickle.loads(pickle.dumps(made)) == made == {"a": 1}
    for change in (
        lambda: made.__setitem__("b", 2),
        lambda: made.update(b=2),
        lambda: made.pop("a"),
        lambda: made.__ior__({"b": 2}),
        lambda: made.setdefault("b", 2),
        made.clear,
    ):
        with pytest.raises(TypeError, match="this mapping is read-only"):
            change()
    assert made | {"b": 2} == {"a": 1, "b": 2}


# --- what is kept -----------------------------------------------------------------------------------------


def test_only_metrics_are_kept_when_that_is_asked_for(world: Callable[..., Request]) -> None:
    """They are those of the whole run; what is not there is said, with what to do about it."""
    whole = world(label="whole").run()
    request = world(keep="metrics")
    run = request.run()
    assert sorted(path.name for path in run.path.iterdir()) == ["metrics.parquet", "run.json"]
    assert run.metrics.equals(whole.metrics)
    opened = harness.Run.open(run.path)
    opened.check()
    assert (opened.kept, whole.kept) == ("metrics", "all")
    assert opened.metrics.equals(run.metrics)
    assert opened.window == whole.window
    assert "goodput.of_allocated" in opened._repr_html_()
    hint = "replay it with keep='all'"
    for read in (
        lambda: opened.jobs,
        lambda: opened.micros("decisions"),
        lambda: list(opened.batches("stints", ["start"])),
        lambda: harness.compare([whole, opened]),
        lambda: harness.make_report([opened]),
        lambda: harness.explain(opened, at=0),
    ):
        with pytest.raises(
            RunError, match=r"^run none-\w+ has no table of \w+: only its metrics were kept\n"
        ) as no:
            read()
        assert no.value.hint == hint
    assert request.run().stored
    again = replace(request, keep="all").run()
    assert (again.stored, again.path, again.kept) == (False, run.path, "all")
    assert request.run().kept == "all"
    assert replace(request, keep="nothing").run().stored


def test_nothing_is_written_when_nothing_is_to_be_kept(
    world: Callable[..., Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where runs are kept nor where temporary files lie; the metrics are in memory."""
    aside = tmp_path / "tmp"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    request = world(keep="nothing")
    run = request.run()
    assert list(aside.iterdir()) == []
    assert not Path(request.output).exists()
    assert run.kept == "nothing"
    whole = replace(request, keep="all", force=True).run()
    for each in (run, pickle.loads(pickle.dumps(run))):
        assert each.metrics.equals(whole.metrics)
        assert each.info["metrics"] == whole.info["metrics"]
        each.check()
        for read in (lambda each=each: each.path, lambda each=each: each.jobs):
            with pytest.raises(RunError, match="its tables were not kept"):
                read()
    assert repr(run).startswith("<Run none-")
    assert "<table" in run._repr_html_()
    with pytest.raises(RunError, match=r"^run none-\w+ has no folder: its tables were not kept\n"):
        harness.compare([run, whole])


def test_a_run_of_which_only_metrics_were_kept_is_replayed_for_others(world: Callable[..., Request]) -> None:
    """There is nothing to measure again."""
    request = world(keep="metrics")
    request.run(plugins=load(block=["metrics"]))
    run = request.run()
    assert not run.stored
    assert run.metrics.height


# --- twins ------------------------------------------------------------------------------------------------


def test_a_twin_is_another_run_beside_those_of_its_trace(world: Callable[..., Request]) -> None:
    """It says which it is, a pattern for runs does not find it, and asked for again it is stored."""
    run = world().run()
    request = world(twin="2@5", keep="metrics")
    twin = request.run()
    assert twin.info["settings"]["twin"] == "2@5,arrivals=30s"
    assert "twin" not in run.info["settings"]
    assert twin.path.parent == run.path.parent / ".twins" / run.path.name
    assert glob(str(run.path.parent / "*")) == [str(run.path)]  # noqa: PTH207 - as a shell does, without hidden ones
    assert request.run().stored
    assert world(twin="2@6", keep="metrics").run().path not in (run.path, twin.path)


def test_a_twin_is_the_same_for_every_policy(world: Callable[..., Request]) -> None:
    """Jobs arrive at the same times, which are not those of the trace."""
    found = [
        world(plugin=plugin, twin=twin).run().jobs["submit_time"].to_list()
        for twin in (None, "1")
        for plugin in ("none", "default-preemption")
    ]
    assert found[0] == found[1] != found[2] == found[3]


def test_a_twin_with_other_priorities_is_beside_the_same_run(world: Callable[..., Request]) -> None:
    """Other jobs have them than in the run; without a share of them there is nothing to shake."""
    share = Calibration.parse(priority_share="0.5:9@3")
    run = world(calibration=share).run()
    twin = world(calibration=share, twin="1,arrivals=0s,priorities").run()
    assert twin.path.parent.name == run.path.name
    assert twin.jobs["submit_time"].equals(run.jobs["submit_time"])
    assert twin.jobs["priority"].to_list() != run.jobs["priority"].to_list()
    with pytest.raises(OptionError, match="priorities cannot vary"):
        world(twin="1,priorities").run()


# --- nothing of a process is changed ----------------------------------------------------------------------


def test_a_replay_leaves_the_process_as_it_was(world: Callable[..., Request]) -> None:
    """The collector's thresholds, also of replays in threads that overlap; no run is held on to."""
    before = gc.get_threshold()
    both = Barrier(2, timeout=LONG)
    at: list[tuple[int, int, int]] = []

    def replayed(label: str) -> None:
        def watch(now: int, jobs: int) -> None:
            if not at:
                both.wait()
                at.append(gc.get_threshold())

        world(label=label, keep="nothing").run(watch=watch)

    threads = [Thread(target=replayed, args=(label,)) for label in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == before
    gone = weakref.ref(world().run())
    gc.collect()
    assert gone() is None


def test_a_failed_replay_gives_the_collector_back(world: Callable[..., Request]) -> None:
    """Whatever ends it."""

    class Failing(Greedy):
        def cycle(self, now: int) -> Any:
            raise KeyboardInterrupt

    before = gc.get_threshold()
    with pytest.raises(KeyboardInterrupt):
        world(plugin=Failing).run()
    assert gc.get_threshold() == before


def test_all_tables_are_known_by_what_is_kept() -> None:
    """What is not kept of a run are all its tables but one."""
    assert set(TABLES) == {"jobs", "decisions", "stints", "timeline", "metrics"}


def test_a_run_that_is_asked_much_answers_the_same_from_memory(world: Callable[..., Request]) -> None:
    """Columns are read once while the block runs, in any order and together with others; then forgotten."""
    run = world().run()
    with run.asked_much():
        first = run.columns("jobs", "submit_time", "queue")
        again = run.columns("jobs", "queue", "duration")
        assert run.memory
        kept = run.file("jobs").rename(run.path / "elsewhere")
        assert run.columns("jobs", "duration", "submit_time").equals(
            pl.concat([again["duration"].to_frame(), first["submit_time"].to_frame()], how="horizontal")
        )
        kept.rename(run.path / "jobs.parquet")
    assert run.memory is None
    assert run.columns("jobs", "submit_time", "queue").equals(first)
    assert run.columns("jobs", "queue", "duration").equals(again)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"trace": pl.DataFrame()},
            "trace must be the path of a trace, or a Trace, not a value of type DataFrame",
        ),
        ({"trace": None}, "trace must be the path of a trace, or a Trace, not None"),
        (
            {"cluster": ["a.yaml", "b.yaml"]},
            "cluster must be the path of manifests, or a Cluster, not .* list",
        ),
        ({"plugin": ["none"]}, "plugin must be a plugin's name, .* not a value of type list"),
        ({"options": "order=fifo"}, "options must be a mapping of names to values, not a value of type str"),
        ({"label": 5}, "label must be a string, not a value of type int"),
        ({"on_preemption": None}, "on_preemption must be a string such as 'restart' .* not None"),
        ({"on_preemption": 5}, "on_preemption must be a string such as 'restart' .* type int"),
        (
            {"calibration": {"window": "1d..2d"}},
            r"calibration must be a Calibration, such as Calibration.parse\(",
        ),
        ({"output": None}, "output must be the path of a folder, not None"),
        ({"twin": 3}, "twin must be a string such as '3@7', or a Twin, not a value of type int"),
        ({"alone": 3}, "alone must be the name of a quota, not a value of type int"),
    ],
)
def test_arguments_of_another_type_are_refused_in_words(wrong: dict[str, Any], message: str) -> None:
    """Before anything is read; a loss model that was none would be kept as the run's."""
    with pytest.raises(OptionError, match=f"^{message}"):
        Request(**{"trace": "t.parquet", **wrong})
