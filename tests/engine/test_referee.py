"""Wrong decisions are refused with a sentence that names policy, job, time and rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from policies import Greedy

import harness
from harness import (
    Admit,
    Bind,
    Decision,
    Job,
    Nominate,
    Note,
    PodSet,
    Preempt,
    QueueShare,
    Refuse,
    Reject,
    Unnominate,
    Wake,
)
from harness.base.errors import DecisionError, PolicyError
from harness.policy import MARK
from harness.testing import Script, nodes, pool, replayed

POOL = pool(cpu=4)
NODES = nodes(n1={"cpu": 4}, n2={"cpu": 2, "pods": 1})
CIRCLE: dict[str, Any] = {}
CIRCLE["itself"] = CIRCLE


class Word(StrEnum):
    """Reasons of a policy."""

    HERE = "zu groß"


JOBS = {"small": {"cpu": 1}, "gang": {"cpu": 1, "pods": 3}, "large": {"cpu": 5}}


def script() -> Script:
    jobs = Script()
    for name, asks in JOBS.items():
        jobs.job(name, seconds=10, **asks)
    return jobs.job("late", at=99, cpu=1)


def told(decide: Any) -> type[Greedy]:
    """A policy that yields what `decide` makes of the jobs by name, once."""

    class Told(Greedy):
        done = False

        def cycle(self, now: int) -> Iterator[Decision]:
            if not self.done:
                self.done = True
                jobs = {job.id: job for job in self.waiting}
                yield from decide(jobs)

    return Told


@pytest.mark.parametrize(
    ("cluster", "decide", "rule"),
    [
        (POOL, lambda j: [Admit(j["small"]), Admit(j["small"])], "already admitted or running"),
        (POOL, lambda j: [Admit(j["large"])], "the cluster has 4m cpu free, but the decision needs 5m"),
        (POOL, lambda j: [Bind(j["small"], range(1), "n1")], "there is no node 'n1'"),
        (POOL, lambda j: [Preempt(j["small"], None, "why")], "holds nothing that could be preempted"),
        (POOL, lambda j: [Admit(j["gang"]), Preempt(j["gang"], None, "why", range(1))], "as a whole"),
        (NODES, lambda j: [Admit(j["gang"]), Preempt(j["gang"], None, "why", range(1))], "hold nothing"),
        (
            NODES,
            lambda j: [Note(j["gang"], MARK, "n1")],
            ("the job was not admitted, so its pods have no nodes"),
        ),
        (NODES, lambda j: [Admit(j["gang"]), Note(j["gang"], "hope", "n1")], "replace, not 'hope'"),
        (
            POOL,
            lambda j: [Admit(j["small"]), Preempt(j["small"], j["small"], "why")],
            "cannot be the preemptor",
        ),
        (POOL, lambda j: [Admit(j["small"]), Reject(j["small"], "why")], "cannot be rejected"),
        (POOL, lambda j: [Reject(j["small"], "why"), Admit(j["small"])], "has not arrived or is over"),
        (POOL, lambda j: [Admit(j["gang"], counts={"main": 2})], "allows 3 to 3 pods, not 2"),
        (POOL, lambda j: [Admit(j["gang"], counts={"other": 2})], "has no pod set 'other'"),
        (
            POOL,
            lambda j: [Admit(j["gang"], counts={"main": 3.0})],  # type: ignore[dict-item]
            "the count of pod set main is 3.0, which is not a whole number",
        ),
        (
            POOL,
            lambda j: [Admit(j["small"], delay=0.5e6)],  # type: ignore[arg-type]
            "the delay is 500000.0, which is not a whole number",
        ),
        (
            POOL,
            lambda j: [Admit(j["gang"]), Preempt(j["gang"], None, "", range(1))],
            "only be preempted as a whole",
        ),
        (
            POOL,
            lambda j: [Admit(j["small"]), Preempt(j["small"], None, "", grace=-1)],
            "the job would be gone 1 microseconds before it is preempted",
        ),
        (
            NODES,
            lambda j: [Bind(j["small"], range(1), "n1"), Preempt(j["small"], None, "", grace=0.5)],  # type: ignore[arg-type]
            "the grace period is 0.5, which is not a whole number",
        ),
        (POOL, lambda j: [Admit(j["small"]), Refuse(j["small"], "no")], "none of its pods is waiting"),
        (POOL, lambda j: [Wake(0)], "which is not later"),
        (POOL, lambda j: [Wake(1.5)], ("a wake at 1.5 microseconds, which is not a whole number")),  # type: ignore[arg-type]
        (POOL, lambda j: ["start it"], "which is not a decision"),
        (POOL, lambda j: [Admit(None)], "the decision is about None, which is not a job"),  # type: ignore[arg-type]
        (POOL, lambda j: [Reject("small", "why")], "the decision is about 'small', which is not a job"),  # type: ignore[arg-type]
        (POOL, lambda j: [Preempt(None, None, "why")], "the decision is about None, which is not a job"),  # type: ignore[arg-type]
        (
            POOL,
            lambda j: [Admit(j["small"]), Preempt(j["small"], "gang", "why")],  # type: ignore[arg-type]
            "the decision names 'gang' as the preemptor, which is not a job",
        ),
        (POOL, lambda j: [QueueShare("other", 0.5, 1)], "a share of 'other', which is not a ClusterQueue"),
        (POOL, lambda j: [QueueShare([], 0.5, 1)], "a share of [], which is no"),  # type: ignore[arg-type]
        (
            POOL,
            lambda j: [QueueShare("default", math.nan, 1)],
            "a finite number, and its weighted share an integer, not nan and 1",
        ),
        (
            POOL,
            lambda j: [QueueShare("default", 1, 2**70)],
            f"a finite number, and its weighted share an integer, not 1 and {2**70}",
        ),
        (POOL, lambda j: [QueueShare("default", "x", None)], "not 'x' and None"),  # type: ignore[arg-type]
        (
            NODES,
            lambda j: [Bind(j["small"], range(2), "n1")],
            "pod 1 should not run: only 1 pod of the job should",
        ),
        (
            NODES,
            lambda j: [Bind(j["small"], range(0), "n1")],
            "Bind names no pod, because its pods are range(0, 0)",
        ),
        (
            NODES,
            lambda j: [Bind(j["gang"], range(3), "n2")],
            "pod gang-1: node n2 has 0 pods free, but the decision needs 1",
        ),
        (
            NODES,
            lambda j: [Bind(j["large"], range(1), "n1")],
            "node n1 has 4m cpu free, but the decision needs 5m",
        ),
        (NODES, lambda j: [Bind(j["small"], range(1), "n1")] * 2, "pod small is not waiting"),
        (NODES, lambda j: [Nominate(j["small"], 0, "n9")], "there is no node 'n9'"),
        (
            NODES,
            lambda j: [Nominate(j["small"], 7, "n1")],
            "pod 7 should not run: only 1 pod of the job should",
        ),
        (NODES, lambda j: [Bind(j["small"], range(1), "n1"), Unnominate(j["small"], 0)], "is not waiting"),
        (
            NODES,
            lambda j: [Bind(j["gang"], range(1), "n1"), Preempt(j["gang"], None, "", range(2))],
            "some of the named pods hold nothing, or are already terminating",
        ),
        (
            NODES,
            lambda j: [Bind(j["gang"], range(1), "n1"), *[Preempt(j["gang"], None, "", grace=9)] * 2],
            "all of its pods hold nothing, or are already terminating",
        ),
    ],
)
def test_a_wrong_decision_is_refused(cluster: Any, decide: Any, rule: str) -> None:
    """Each rule of the referee, broken once."""
    with pytest.raises(DecisionError) as refused:
        replayed(told(decide), script(), cluster)
    message = refused.value.message
    assert rule in message
    assert message.startswith("policy Told made a wrong decision")
    assert "at 0 microseconds (0s after the origin)" in message


@pytest.mark.parametrize(
    ("decide", "rule"),
    [
        (lambda job: [Refuse(job, 5)], "the reason must be text, not 5"),  # type: ignore[arg-type]
        (lambda job: [Reject(job, None)], "the reason must be text, not None"),  # type: ignore[arg-type]
        (lambda job: [Admit(job), Preempt(job, None, b"")], "the reason must be text, not b''"),  # type: ignore[arg-type]
        (lambda job: [Refuse(job, "x\ud800")], r"the reason 'x\ud800' cannot be written as UTF-8"),
        (lambda job: [Admit(job, 5)], "the flavors must have the form {pod set: {resource: flavor}}, not 5"),  # type: ignore[arg-type]
        (lambda job: [Admit(job, {"main": {"cpu": None}})], "not {'main': {'cpu': None}}"),  # type: ignore[dict-item]
        (lambda job: [Refuse(job, "x", {"a": {1}})], "cannot be written as JSON: {1} is of type set"),
        (
            lambda job: [Refuse(job, "x", {"a": math.nan})],
            "the detail cannot be written as JSON: a number is NaN or infinite",
        ),
        (lambda job: [Refuse(job, "x", {"a": 1, 2: 3})], "the detail cannot be written as JSON: '<'"),
        (lambda job: [Refuse(job, "x", CIRCLE)], "the detail cannot be written as JSON: maximum recursion"),
        (lambda job: [Refuse(job, "x", ["a"])], "the detail must be a mapping, not ['a']"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_recorded_is_refused(
    decide: Any, rule: str, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """At once and by name, in tests of a policy as in a run, and not when a chunk of rows is written."""
    policy = told(lambda jobs: decide(jobs["small"]))
    with pytest.raises(DecisionError) as refused:
        replayed(policy, script(), POOL)
    assert rule in refused.value.message
    assert "made a wrong decision about job small at 0 microseconds" in refused.value.message

    trace = write_trace({"job_id": "small", "queue": "default", "request.cpu": 1})
    with pytest.raises(DecisionError) as again:
        harness.replay(trace, plugin=policy, cluster=POOL, output=tmp_path / "runs")
    assert again.value.message == refused.value.message


def test_any_text_and_all_that_json_can_write_is_recorded() -> None:
    """Also text that is no plain `str`, and mappings of other types."""
    reason, detail = Word.HERE, {"a": [MappingProxyType({"b": 1.5}), None, (True, "ä")]}
    happened = replayed(told(lambda jobs: [Refuse(jobs["small"], reason, detail)]), script(), POOL)
    (row,) = happened.of("refuse")
    assert (row.reason, row.detail) == ("zu groß", detail)


def test_shares_are_numbers_of_any_type(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """The recorder of the compiled build takes only floats and ints."""
    share = QueueShare("default", Fraction(1, 2), np.int64(7))  # type: ignore[arg-type]
    trace = write_trace({"job_id": "a", "queue": "default", "request.cpu": 1})
    run = harness.replay(trace, plugin=told(lambda jobs: [share]), cluster=POOL, output=tmp_path / "runs")
    row = run.timeline.drop_nulls("dominant_share").row(0, named=True)
    assert (row["dominant_share"], row["weighted_share"]) == (0.5, 7)


@pytest.mark.parametrize("endless", ["wakes", "preempts"])
def test_deciding_for_ever_at_one_instant_is_refused(endless: str) -> None:
    """A policy that goes in circles stops with a message instead of hanging."""

    class Endless(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            while True:
                if endless == "wakes":
                    yield Wake(now + 1)
                else:
                    yield Admit(self.waiting[0])
                    yield Preempt(self.waiting.pop(0), None, "again")

    with pytest.raises(DecisionError, match=r"decisions (at this time )?never end"):
        replayed(Endless, Script().job("a", cpu=1), POOL)


def test_an_error_of_the_policy_names_policy_and_time() -> None:
    """A policy that raises is reported as such, with its own error behind it."""

    class Broken(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield from {}["nothing"]

    with pytest.raises(PolicyError, match=r"policy Broken failed at 0 microseconds .*KeyError: 'nothing'"):
        replayed(Broken, Script().job("a", cpu=1), POOL)


def test_a_policy_without_a_method_does_not_start() -> None:
    """Without `release`, it would fail only when the first job ends, perhaps after hours of work."""

    class Silent:
        def __init__(self, cluster: object, view: object, options: object) -> None:
            pass

        def submit(self, job: Job, pods: range, now: int) -> None:
            pass

    with pytest.raises(PolicyError, match="policy Silent has no method release and no ") as raised:
        replayed(Silent, Script().job("a", cpu=1), POOL)  # type: ignore[arg-type]
    assert raised.value.hint is not None
    assert "release(job, pods, now, why) and cycle(now)" in raised.value.hint


@pytest.mark.parametrize("method", ["standing", "skip"])
def test_a_policy_has_both_methods_for_idle_wakes_or_neither(method: str) -> None:
    """The engine would use neither of them, and simulate every idle wake. An attribute is no method."""
    half = type("Half", (Greedy,), {method: lambda *given: None})
    with pytest.raises(PolicyError, match="Half has only one of the methods 'standing' and 'skip'"):
        replayed(half, Script().job("a", cpu=1), POOL)
    replayed(type("Named", (Greedy,), {method: {}}), Script().job("a", cpu=1), POOL)


@pytest.mark.parametrize("method", ["submit", "release"])
def test_only_a_cycle_can_yield_decisions(method: str) -> None:
    """The engine ignores what other methods return, so their decisions would be lost."""

    def deciding(self: Greedy, job: Job, *given: object) -> Iterator[Decision]:
        yield Admit(job)

    hasty = type("Hasty", (Greedy,), {method: deciding})
    with pytest.raises(
        PolicyError, match=f"^policy Hasty yields in its method {method!r}, but only 'cycle' can decide"
    ):
        replayed(hasty, Script().job("a", cpu=1), POOL)


@pytest.mark.parametrize("method", ["submit", "release", "cycle"])
def test_a_policy_has_no_asynchronous_methods(method: str) -> None:
    """Nobody would await them."""

    async def later(self: Greedy, *given: object) -> None:
        pass

    patient = type("Patient", (Greedy,), {method: later})
    with pytest.raises(PolicyError, match=f"^policy Patient has an asynchronous method '{method}'"):
        replayed(patient, Script().job("a", cpu=1), POOL)


def test_a_cycle_without_a_yield_is_named() -> None:
    """It returns None, and Python says only that None is not iterable."""

    class Idle(Greedy):
        def cycle(self, now: int) -> Any:
            pass

    with pytest.raises(PolicyError, match="policy Idle failed at 0 microseconds") as raised:
        replayed(Idle, Script().job("a", cpu=1), POOL)
    assert raised.value.hint == (
        "'cycle' must return decisions: write them with 'yield', or return an empty tuple"
    )


@pytest.mark.parametrize("method", ["submit", "release", "cycle"])
def test_a_method_with_other_parameters_is_answered_with_the_right_ones(method: str) -> None:
    """Python says only how many arguments were given. A wrong call inside the policy needs another hint."""
    short = type("Short", (Greedy,), {method: lambda self: ()})
    inside = type("Inside", (Greedy,), {method: lambda self, *given: (lambda: ())(1)})  # type: ignore[call-arg]
    for policy, begins in (
        (short, "a policy has submit(job, pods, now), release("),
        (inside, "--debug shows"),
    ):
        with pytest.raises(PolicyError, match=r"failed at .*positional argument") as raised:
            replayed(policy, Script().job("a", cpu=1), POOL)
        assert (raised.value.hint or "").startswith(begins)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda view, job: Bind(job, 1, "n1"),  # type: ignore[arg-type]
        lambda view, job: view.free_on("n9"),
        lambda view, job: view.fits("small"),
    ],
)
def test_a_wrong_value_is_not_taken_for_a_cycle_without_decisions(wrong: Any) -> None:
    """A number of pods is no range, there is no such node, and a name is no job."""

    class Wrong(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield wrong(self.view, self.waiting[0])

    with pytest.raises(PolicyError, match="policy Wrong failed at 0 microseconds") as raised:
        replayed(Wrong, Script().job("small", cpu=1), NODES)
    assert (
        raised.value.hint == "a decision, or an argument for the view, has a wrong value; --debug shows where"
    )


def test_a_view_is_read_only() -> None:
    """As jobs and the cluster are."""

    class Changing(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            self.view.free_on("n1")["cpu"] = 1  # type: ignore[index]
            yield from ()

    with pytest.raises(PolicyError, match="policy Changing failed at 0 microseconds") as raised:
        replayed(Changing, Script().job("small", cpu=1), NODES)
    assert "keep your own data elsewhere" in (raised.value.hint or "")


def test_a_loop_of_the_policy_over_none_is_its_own() -> None:
    """The hint on `cycle` would mislead, because the error is elsewhere."""

    class Loops(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            yield from iter(None)  # type: ignore[call-overload]

    with pytest.raises(PolicyError, match="policy Loops failed at 0 microseconds") as raised:
        replayed(Loops, Script().job("a", cpu=1), POOL)
    assert raised.value.hint == "--debug shows where"


class Odd(BaseException):
    """No `Exception`, and none that ends a program."""


class PanicException(BaseException):
    """What libraries that are written in Rust raise where they have a defect, or no memory."""


def raising(error: BaseException) -> type[Greedy]:
    class Raises(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            raise error

    return Raises


@pytest.mark.parametrize("error", [SystemExit(), SystemExit("enough"), Odd("odd")])
def test_a_policy_that_ends_the_program_has_failed(error: BaseException) -> None:
    """Whatever it raises is its own error; nothing that it calls ends a replay without a word."""
    with pytest.raises(PolicyError, match=f"policy Raises failed at 0 .*: {type(error).__name__}: "):
        replayed(raising(error), Script().job("a", cpu=1), POOL)


def test_an_interrupt_notes_where_the_replay_was() -> None:
    """A policy that decides forever is found that way."""
    with pytest.raises(KeyboardInterrupt) as raised:
        replayed(raising(KeyboardInterrupt()), Script().job("a", cpu=1), POOL)
    assert raised.value.__notes__ == ["policy Raises was at 0 microseconds (0s after the origin)"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), MemoryError(), PanicException()])
def test_what_is_no_error_of_the_policy_passes_through(error: BaseException) -> None:
    """An interrupt, a want of memory, and what breaks beneath Python."""
    with pytest.raises(type(error)):
        replayed(raising(error), Script().job("a", cpu=1), POOL)


def test_a_policy_that_cannot_be_asked_for_a_method_is_named() -> None:
    """What it raises for every name that it does not have is its own error, and no defect of harness."""

    class Evasive(Greedy):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(f"no {name} here")

    with pytest.raises(PolicyError, match=r"policy Evasive failed .* method 'ready': RuntimeError: no ready"):
        replayed(Evasive, Script().job("a", cpu=1), POOL)


@pytest.mark.parametrize("name", ["pods", "pod_sets", "gang", "grace_period", "index", "mine"])
def test_a_policy_cannot_change_a_job(name: str) -> None:
    """What the engine counts with is what the trace says; the error names the job, and says what to do."""

    class Changing(Greedy):
        def submit(self, job: Job, pods: range, now: int) -> None:
            setattr(job, name, 1)

    with pytest.raises(
        PolicyError, match=f"policy Changing failed at 0 microseconds .* job small .* {name!r}"
    ) as failed:
        replayed(Changing, script(), POOL)
    assert failed.value.hint is not None
    assert "keep your own data elsewhere" in failed.value.hint


def test_a_job_of_another_replay_is_refused() -> None:
    """Jobs are told apart by identity, not by their index."""
    other = Script().job("small", cpu=1)["small"]
    with pytest.raises(DecisionError, match="has not arrived or is over"):
        replayed(told(lambda j: [Admit(other)]), script(), POOL)


def test_a_refusal_is_recorded_and_changes_nothing() -> None:
    """The job waits on; the row says how many of its pods do, and why."""

    def decide(jobs: Script) -> list[Decision]:
        gang = jobs["gang"]
        return [Bind(gang, range(1), "n1"), Refuse(gang, "no room", {"node": "n2"})]

    happened = replayed(told(decide), script(), NODES)
    (row,) = happened.of("refuse")
    assert (row.job, row.pods, row.reason, row.detail) == ("gang", 2, "no room", {"node": "n2"})
    assert happened.jobs["gang"].state == "running"


def test_partial_admission_within_bounds_is_accepted() -> None:
    """A pod set may get fewer pods, down to its least; the quota charged is that of the pods it got."""
    sets = (PodSet("workers", 4, 2, {"cpu": 2}), PodSet("driver", 1, 1, {"cpu": 1}))
    jobs = Script().job("elastic", pod_sets=sets, seconds=10)
    happened = replayed(told(lambda j: [Admit(j["elastic"], counts={"workers": 2})]), jobs, pool(cpu=5))
    assert happened.jobs["elastic"].state == "finished"
    (stint,) = happened.stints
    assert (stint.pods, stint.amounts) == (3, {"cpu": 5})


def test_evicted_pods_wait_again_and_their_admitted_job_keeps_its_quota() -> None:
    """The other two stay bound and idle; what was noted is recorded with its node."""

    class EvictsOne(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            for job in [job for job in self.waiting if job.id == "gang"][: now == 0]:
                yield Admit(job)
                yield Bind(job, range(3), "n1")
                yield Note(job, MARK, "n1", {"why": "it failed"})
                yield Preempt(job, None, "why", range(1, 2))
                yield Bind(job, range(1, 2), "n2")

    happened = replayed(EvictsOne, Script().job("gang", cpu=1, pods=3, seconds=10), NODES)
    (mark,) = happened.of("mark")
    assert (mark.node, mark.detail) == ("n1", {"why": "it failed"})
    (evicted,) = happened.of("evict")
    assert (evicted.pod, evicted.reason) == ("gang-1", "why")
    assert [(row.pod, row.node) for row in happened.of("bind")][-1] == ("gang-1-r1", "n2")
    assert len(happened.of("admit")) == 1
    assert happened.jobs["gang"].preemptions == 1
