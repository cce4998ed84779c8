"""Which run to take: verdicts that twins carry say so, with a condition; else what would tell is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.analysis.comparison.changes import Verdict
from harness.analysis.comparison.coarse import why_coarse
from harness.analysis.comparison.recommendation import Recommendation, _together, recommendation
from harness.base.errors import RunError
from harness.trace.shake import Shake

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: COUNT, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Runs of a small trace on so many nodes."""
    rows = ({"submit_time": 600 * n, "duration": 2000, "priority": n % 3} for n in range(1, 31))
    trace = write_trace(*rows)

    def run(label: str, count: int, plugin: str = "none") -> harness.Run:
        cluster = tmp_path / f"{count}.yaml"
        cluster.write_text(POOL.replace("COUNT", str(count)))
        out = tmp_path / "results"
        return harness.replay(trace=trace, cluster=cluster, plugin=plugin, label=label, output=out)

    return run


def told(*runs: harness.Run, shake: int | None = 3) -> Recommendation:
    found = recommendation(harness.compare(runs, shake=shake, workers=1))
    assert found is not None
    return found


def test_one_replay_carries_nothing_that_differs(replayed: Callable[..., harness.Run]) -> None:
    """It is said what would."""
    found = told(replayed("few", 1), replayed("many", 4), shake=None)
    assert not found.prices
    assert found.sentence == (
        "No recommendation: one replay of each run cannot separate differences from luck. Add `--shake 10`."
    )


def test_what_is_better_and_in_nothing_worse_is_to_be_taken(replayed: Callable[..., harness.Run]) -> None:
    """From either side; that more nodes cost more is said."""
    few, many = replayed("few", 1), replayed("many", 4)
    found = told(few, many)
    assert found.prices
    start = "If preempted jobs lose all their progress and the cost of the capacity itself does not matter, "
    assert found.sentence == (
        f"{start}take “many”: it is better than “few” by at least one judged metric, and worse by none."
    )
    assert found.weighed == ["many"]
    price = found.prices["many"]
    groups = [each.partition(": ")[0] for each in price]
    assert groups == ["served", "waited", "shared", "disrupted"], "every group of headlines has its price"
    assert price[0].startswith("served: ")
    assert " of the requested cpu served instead of " in price[0]
    assert price[1].startswith("waited: better, 95 of 100 jobs start within ")
    assert price[3] == "disrupted: equal"
    assert found.lines == [found.sentence, "Gains and losses of “many”:", *(f"  {each}" for each in price)]
    found = told(many, few)
    assert found.sentence == f"{start}keep “many”: no other run is better by any judged metric."
    assert found.lines == [found.sentence]
    assert found.prices["few"][1].startswith("waited: worse, 95 of 100 jobs start within ")


def test_prices_within_a_group_are_told_by_name_where_they_differ() -> None:
    """Else two percentages stand side by side, and nobody knows what of."""
    work, jobs = ("work done", "unclear, -16 to +8 % relative"), ("unfinished jobs", "worse, +2 to +4")
    assert _together([work, jobs]) == (
        "work done unclear, -16 to +8 % relative; unfinished jobs worse, +2 to +4"
    )
    assert _together([("work done", "equal"), ("unfinished jobs", "equal")]) == "equal"
    assert _together([]) == "not measured"


def test_of_several_that_are_clearly_better_it_says_how_to_tell(replayed: Callable[..., harness.Run]) -> None:
    """They are compared with the baseline alone."""
    found = told(replayed("few", 1), replayed("more", 2), replayed("many", 4))
    assert "take “more” or “many”: each is better than “few” by at least one judged metric" in found.sentence
    assert "--baseline more compares them with each other" in found.sentence


def test_runs_that_are_alike_need_no_twins(replayed: Callable[..., harness.Run]) -> None:
    """Nothing differs, so that there is nothing that luck could have done."""
    found = told(replayed("one", 2), replayed("two", 2), shake=None)
    assert found.prices
    assert found.sentence.endswith("no difference is significant: “one” does as well as the others.")


def test_a_difference_that_the_table_marks_is_never_denied(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """One of forty jobs is preempted and loses nothing, so all that is judged is equal."""
    rows = [{"submit_time": 1000 * n, "duration": 500, "request.cpu": 2000} for n in range(1, 40)]
    trace = write_trace(*rows, {"submit_time": 39_250, "duration": 500, "request.cpu": 2000, "priority": 9})
    (tmp_path / "1.yaml").write_text(POOL.replace("COUNT", "1"))
    runs = [
        harness.replay(
            trace, cluster=tmp_path / "1.yaml", plugin=plugin, on_preemption="resume", output=tmp_path
        )
        for plugin in ("none", "default-preemption")
    ]
    found = told(*runs, shake=3)
    assert "keep “none”, unless delay.mean matters to you: no judged metric differs" in found.sentence
    found = told(*runs, shake=None)
    assert not found.prices, "one replay of each cannot tell a difference from luck"


def test_what_is_better_and_what_is_worse_stand_against_each_other(
    replayed: Callable[..., harness.Run],
) -> None:
    """Every verdict that is carried is in the price, and decides the sentence."""
    runs = [replayed("calm", 1), replayed("rough", 1, "default-preemption")]
    comparison = harness.compare(runs, shake=4, workers=1)
    found = recommendation(comparison)
    assert found is not None
    price = found.prices["rough"]
    verdicts = {row.measured.metric: row.changes[0].verdict for row in comparison.rows("disruption.lost")}
    assert verdicts["disruption.lost"] is Verdict.WORSE
    assert price[3].startswith("disrupted: worse, ")
    assert "of cpu lost to evictions instead of 0 core·h" in price[3]
    assert found.sentence.startswith("If preempted jobs lose all their progress, keep “calm”")
    gains = any("better, " in each for each in price)
    assert ("unless the gains with “rough” are worth their costs" in found.sentence) is gains
    assert found.weighed == ["rough"] * gains


def test_nothing_is_recommended_of_one_run(replayed: Callable[..., harness.Run]) -> None:
    """There is no choice."""
    assert recommendation(harness.compare([replayed("few", 1)])) is None


def test_different_arrivals_are_no_choice(replayed: Callable[..., harness.Run], tmp_path: Path) -> None:
    """Nobody chooses what is submitted when."""
    run = replayed("few", 1)
    trace = run.info["provenance"]["trace"]
    later = harness.replay(
        trace, cluster=tmp_path / "1.yaml", plugin="none", label="load", output=tmp_path / "results",
        scale_arrivals="2",
    )  # fmt: skip
    found = told(run, later, shake=None)
    assert "jobs arrive at different times" in found.sentence
    assert not found.prices


def test_twins_are_not_advised_where_they_would_be_refused(
    replayed: Callable[..., harness.Run], tmp_path: Path
) -> None:
    """Of two runs of which one ends earlier, before all jobs have arrived."""
    run = replayed("whole", 4)
    replayed("few", 1)
    cut = harness.replay(
        run.info["provenance"]["trace"], cluster=tmp_path / "1.yaml", plugin="none", label="cut",
        until="2h", output=tmp_path / "results",
    )  # fmt: skip
    comparison = harness.compare([run, cut])
    assert not comparison.pairs.whole
    found = recommendation(comparison)
    assert found is not None
    assert found.sentence.endswith(
        "from luck, and twins can be compared only if all runs have the same jobs."
    )
    assert "--shake" not in comparison.table()
    with pytest.raises(RunError, match="twins can be compared only if all runs have the same jobs"):
        harness.compare([run, cut], shake=2)


@pytest.mark.parametrize(
    ("gap", "shake", "clause"),
    [
        (90, "3", "arrivals are moved by up to 30s, and all arrivals are within 43m30s"),
        (90, "3,arrivals=20s", ""),
        pytest.param(120, "3", "", marks=pytest.mark.nightly),
    ],
)
def test_nothing_is_recommended_where_the_jitter_is_not_small(
    gap: int, shake: str, clause: str, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Arrivals that span fewer than a hundred jitters make other traces, and the table warns of it."""
    trace = write_trace(*({"submit_time": gap * n, "duration": 400} for n in range(30)))
    runs = []
    for label, count in (("few", 1), ("many", 4)):
        cluster = tmp_path / f"{label}.yaml"
        cluster.write_text(POOL.replace("COUNT", str(count)))
        runs.append(harness.replay(trace, cluster=cluster, plugin="none", label=label, output=tmp_path))
    comparison = harness.compare(runs, shake=shake, workers=1)
    found = recommendation(comparison)
    assert found is not None
    assert bool(found.prices) is not bool(clause)
    warned = f"{clause}: the twins are different traces" in comparison.table()
    assert warned is bool(clause)
    assert clause in found.sentence


def test_jobs_that_come_close_together_change_places_in_twins(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A median gap under a tenth of the jitter is too small with fewer than 1,000 jobs."""
    for count, coarse in ((700, True), (1_000, False)):
        times = ({"submit_time": 2 * n + 3_600 * (n // 500), "duration": 1} for n in range(count))
        run = harness.replay(write_trace(*times), label=f"of{count}", output=tmp_path)
        told = why_coarse(run, Shake.parse(3))
        assert bool(told) is coarse
        assert told.endswith("at most 2s after the previous one") is coarse
