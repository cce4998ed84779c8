"""Twins of a trace: what is moved, how far, and that a job's draw is its own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import OptionError
from harness.base.units import HOUR, SECOND
from harness.plugins import load
from harness.trace.calibration import Calibration
from harness.trace.shake import JITTER, Shake, Shaking, Twin
from harness.trace.trace import Trace, open_trace

PLUGINS = load(only=["readers"])


@pytest.fixture
def opened(write_trace: Callable[..., Path]) -> Callable[..., Trace]:
    """A trace of these rows."""
    return lambda *rows: open_trace(write_trace(*rows), PLUGINS)


def submits(trace: Trace) -> list[int]:
    """When jobs arrive, in the order of their rows; microseconds since the origin."""
    return (trace.frame["submit_time"].to_physical() - trace.origin).to_list()


def test_arrivals_are_moved_by_at_most_the_jitter_and_nothing_else_is(opened: Callable[..., Trace]) -> None:
    """Evenly to both sides; rows, durations and all else are as they were."""
    trace = opened(*({"submit_time": 100 + 7 * number} for number in range(2000)))
    twin = Twin(1).of(trace)
    moved = [ours - theirs for ours, theirs in zip(submits(twin), submits(trace), strict=True)]
    assert all(abs(each) <= JITTER for each in moved)
    assert abs(sum(moved) / len(moved)) < 3 * JITTER / (3 * len(moved)) ** 0.5
    assert sum(abs(each) for each in moved) / len(moved) == pytest.approx(JITTER / 2, rel=0.05)
    assert twin.frame.drop("submit_time").equals(trace.frame.drop("submit_time"))
    assert twin.frame.schema == trace.frame.schema


def test_the_draw_of_a_job_never_changes(opened: Callable[..., Trace]) -> None:
    """These numbers are the same under any Python, on any machine, for any seed of hashing."""
    trace = opened(*({"submit_time": 1000} for _ in range(4)))
    assert submits(Twin(1).of(trace)) == DRAWN


DRAWN = [990745247, 1014814496, 1020431070, 981501007]


def test_a_job_draws_the_same_whatever_jobs_are_beside_it(opened: Callable[..., Trace]) -> None:
    """So a sample or a window of a trace has the twins of the whole; all rows of a job move as one."""
    rows = [
        {"job_id": f"j{number}", "submit_time": 60 * number, "pod_set": name}
        for number in range(50)
        for name in ("a", "b")
    ]
    trace = opened(*rows)
    twin = Twin(3).of(trace)
    few = Calibration.parse(sample="0.3@1").of_trace(trace)
    whole = dict(zip(twin.frame["job_id"], submits(twin), strict=True))
    assert 0 < few.frame.height < trace.frame.height
    for job, submit in zip(few.frame["job_id"], submits(Twin(3).of(few)), strict=True):
        assert submit == whole[job]
    assert twin.frame.group_by("job_id").agg(pl.col("submit_time").n_unique())["submit_time"].max() == 1


def test_what_is_kept_of_one_trace_is_not_taken_for_another(opened: Callable[..., Trace]) -> None:
    """Two jobs that change places draw what they drew, also right after the trace in which they stood."""
    rows = [{"job_id": name, "submit_time": 100} for name in ("x", "y")]
    ours, theirs = opened(*rows), opened(*reversed(rows))
    assert submits(Twin(1).of(ours)) == submits(Twin(1).of(theirs))[::-1]
    assert submits(Twin(2).of(ours)) != submits(Twin(1).of(ours))


def test_twins_differ_by_number_and_seed_and_begin_alike(opened: Callable[..., Trace]) -> None:
    """Ten twins are the first ten of twenty; another seed has others."""
    trace = opened(*({"submit_time": 100 + number} for number in range(20)))
    found = [tuple(submits(twin.of(trace))) for twin in Shake.parse("4").twins]
    assert len(set(found)) == 4
    assert [tuple(submits(twin.of(trace))) for twin in Shake.parse("9").twins][:4] == found
    assert tuple(submits(Twin(1, Shaking(seed=1)).of(trace))) not in found


def test_no_job_arrives_before_the_origin(opened: Callable[..., Trace]) -> None:
    """There is no time before it; the origin itself stays, so that `--until` means the same instant."""
    trace = opened(*({"submit_time": 5} for _ in range(200)))
    twin = Twin(1).of(trace)
    assert min(submits(twin)) == 0
    assert twin.origin == trace.origin


def test_jobs_of_one_instant_change_places_only_where_that_is_shaken(opened: Callable[..., Trace]) -> None:
    """Without a jitter a twin differs by the order of equal times alone."""
    trace = opened(*({"submit_time": number // 10, "pods": 1 + number % 3} for number in range(30)))
    twin = Twin.parse("1,arrivals=0s,ties").of(trace)
    assert submits(twin) == submits(trace)
    names = [frame["job_id"].to_list() for frame in (trace.frame, twin.frame)]
    assert names[0] != names[1]
    for first in (0, 10, 20):
        assert sorted(names[0][first : first + 10]) == sorted(names[1][first : first + 10])
    assert twin.frame.sort("job_id").equals(trace.frame.sort("job_id"))


def test_durations_are_moved_by_a_part_of_themselves(opened: Callable[..., Trace]) -> None:
    """One per cent at most, to either side; by nothing unless that is asked for."""
    trace = opened(*({"submit_time": 100, "duration": 1000} for _ in range(500)))
    noisy = Twin.parse("2,durations=1%").of(trace)
    factors = (noisy.frame["duration"].to_physical() / (1000 * SECOND)).to_list()
    assert all(0.99 <= factor <= 1.01 for factor in factors)
    assert min(factors) < 0.991
    assert max(factors) > 1.009
    assert Twin(2).of(trace).frame["duration"].equals(trace.frame["duration"])


def test_other_jobs_get_the_priorities(opened: Callable[..., Trace]) -> None:
    """The share stays, the seed does not; and where no share is given there is nothing to shake."""
    share = Calibration.parse(priority_share="0.5:10@1")
    twin = Twin.parse("1,priorities")
    changed = twin.calibration(share)
    assert changed is not None
    trace = opened(*({"submit_time": 1} for _ in range(40)))
    chosen = [each.of_trace(trace).frame["priority"].to_list() for each in (share, changed)]
    assert [each.count(10) for each in chosen] == [20, 20]
    assert chosen[0] != chosen[1]
    assert twin.calibration(share) == changed
    assert Twin(1).calibration(share) is share
    with pytest.raises(OptionError, match="priorities cannot vary without --priority-share"):
        twin.calibration(Calibration())


@given(
    st.integers(1, 10_000),
    st.builds(
        Shaking,
        st.integers(0, 10**17),
        st.integers(1, 100 * HOUR),
        st.booleans(),
        st.integers(0, 500_000).map(lambda parts: Fraction(parts, 10**6)),
        st.booleans(),
    ),
)
def test_a_twins_text_says_all_of_it(number: int, shaking: Shaking) -> None:
    """So a run that names its twin can be made again."""
    assert Twin.parse(str(Twin(number, shaking))) == Twin(number, shaking)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not understood"),
        ("ten", "not understood"),
        ("0", "0 is not a number from 1 to 10,000"),
        ("1", "at least 2"),
        ("-3", "not understood"),
        ("10@", "not understood"),
        ("10@x", "not understood"),
        ("99999", "99999 is not a number from 1 to 10,000"),
        ("10,jitter=3s", "'jitter' cannot be varied"),
        ("10,arrivals", "not understood"),
        ("10,arrivals=soon", "not a duration"),
        ("10,ties=1", "not understood"),
        ("10,ties,ties", "not understood"),
        ("10,durations=1", "not a fraction of a duration"),
        ("10,durations=60%", "not a fraction of a duration"),
        ("10,durations=0.00001%", "not a fraction of a duration"),
        ("10,arrivals=0s", "all twins would be equal"),
    ],
)
def test_a_text_that_is_none_is_refused(text: str, said: str) -> None:
    """With what is wrong of it."""
    with pytest.raises(OptionError, match=said):
        Shake.parse(text)


def test_a_shake_is_a_number_or_a_text() -> None:
    """In Python a number will do."""
    for value in (10, "10", " 10 ", "10,arrivals=30s", "10@0"):
        assert Shake.parse(value) == Shake(10)
    assert Shake.parse("5@7,arrivals=1m,ties").shaking == Shaking(7, 60 * SECOND, ties=True)
