"""Run times that are drawn: given how long a job has run, and from wider groups where a group is small."""

from __future__ import annotations

import pytest

from harness.base.units import HOUR, MINUTE
from harness.runs.estimates.distributions import ALL, LEAST, LIMIT, TAIL, Draws, Ended, Ran, RunTimes
from harness.runs.estimates.traits import Traits, stem_of
from harness.trace.generate.uniform import uniform

_LONG = Traits("", "q", "cpu 1", "train")
_SHORT = Traits("", "q", "cpu 8", "eval")


def _mixed(count: int) -> RunTimes:
    """So many jobs of `_LONG` run 1, 2, 3... hours, as many of `_SHORT` run 1, 2, 3... minutes."""
    hours = [(_LONG, number * HOUR) for number in range(1, count + 1)]
    minutes = [(_SHORT, number * MINUTE) for number in range(1, count + 1)]
    return _ran([each for pair in zip(hours, minutes, strict=True) for each in pair])


def _ran(jobs: list[tuple[Traits, int]], by: int | None = None) -> RunTimes:
    """Jobs that ended at 1, 2, 3... in this order."""
    return RunTimes(Ended(Ran(*job, end) for end, job in enumerate(jobs, 1)), by)


def test_a_run_time_is_drawn_from_jobs_of_the_same_queue_size_and_name() -> None:
    """Users are not known here, so the narrowest group is that of queue, size and stem."""
    draws = _mixed(40).draws(_LONG, 0, None)
    assert draws is not None
    assert draws.source == "jobs of the same queue and size and stem"
    assert list(draws.values) == [number * HOUR for number in range(1, 41)]


def test_who_has_run_for_some_time_is_drawn_among_those_that_ran_longer() -> None:
    """After 10 hours only the 30 that ran longer count, and each of them is as likely."""
    draws = _mixed(40).draws(_LONG, 10 * HOUR, None)
    assert draws is not None
    found = [draws.run_time(uniform(number, "number"), uniform(number, "part")) for number in range(6000)]
    shares = {hours: found.count(hours * HOUR) / len(found) for hours in range(1, 41)}
    assert all(shares[hours] == 0 for hours in range(1, 11))
    assert all(shares[hours] == pytest.approx(1 / 30, abs=0.015) for hours in range(11, 41))


def test_too_few_of_a_group_that_ran_longer_widen_it() -> None:
    """One of fewer than LEAST is left for the group that all jobs of its queue make."""
    run_times = _ran([(_LONG, HOUR)] * (LEAST - 1) + [(Traits("", "q", "cpu 2", "other"), 2 * HOUR)] * LEAST)
    draws = run_times.draws(_LONG, 0, None)
    assert draws is not None
    assert draws.source == "jobs of the same queue"
    assert len(draws.values) == 2 * LEAST - 1


def test_what_has_not_ended_by_a_time_is_not_known_then() -> None:
    """Of 40 jobs that end one after the other the first 25 count at 25; each time has its own answer."""
    jobs = [(_LONG, number * HOUR) for number in range(1, 41)]
    for by in (25, 40, 30):
        known = _ran(jobs, by)
        draws = known.draws(_LONG, 0, None)
        assert draws is not None
        assert (known.count, list(draws.values)) == (by, [number * HOUR for number in range(1, by + 1)])


def test_what_is_not_known_of_a_job_makes_no_group() -> None:
    """A job of an unknown queue is drawn among all jobs of its size, one of unknown size among all."""
    run_times = _mixed(40)
    sized, plain = (run_times.draws(Traits("", "", size, ""), 0, None) for size in ("cpu 8", ""))
    assert sized is not None
    assert plain is not None
    assert (sized.source, plain.source) == ("jobs of the same size", ALL)


def test_one_future_draws_a_group_from_one_part_of_it() -> None:
    """Jobs that ended one after the other run alike: for one part all draws lie in a quarter of the group."""
    draws = _mixed(100).draws(_LONG, 0, None)
    assert draws is not None
    found = {draws.run_time(number / 100, 0.3) // HOUR for number in range(100)}
    assert found == set(range(31, 56))


def test_a_limit_is_the_longest_and_counts_where_nobody_ran_so_long() -> None:
    """With no job of the history that ran longer the job runs to its limit."""
    draws = _mixed(40).draws(_LONG, 0, 5 * HOUR)
    assert draws is not None
    assert max(draws.run_time(number / 50, number / 50) for number in range(50)) == 5 * HOUR
    beyond = _mixed(40).draws(_LONG, 100 * HOUR, 120 * HOUR)
    assert beyond is not None
    assert (beyond.source, beyond.run_time(0.1, 0.1)) == (LIMIT, 120 * HOUR)


def test_without_a_limit_half_of_those_that_ran_longest_run_as_long_again() -> None:
    """Of what has run 100 hours half still runs at 200; what has not started is not known."""
    draws = _mixed(40).draws(_LONG, 100 * HOUR, None)
    assert draws is not None
    assert (draws.source, draws.run_time(0.5, 0)) == (TAIL, 200 * HOUR)
    assert _ran([]).draws(_LONG, 0, None) is None


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("team/job-train-bert-17-x7k2p", "job-train-bert"),
        ("default/eval", "eval"),
        ("serving.0", "serving"),
        ("sweep12", "sweep"),
        ("000123", ""),
        ("a-5f6d7c8b9", "a"),
    ],
)
def test_a_stem_is_what_stays_of_a_name(name: str, stem: str) -> None:
    """Numbers and what Kubernetes generates go."""
    assert stem_of(name) == stem


def test_one_that_waits_runs_like_those_of_its_group_that_run_now() -> None:
    """Of series of 1 h and of 9 h jobs the second is likelier where three have run 3 h, else as likely."""
    jobs = [(_LONG, HOUR)] * 100 + [(_LONG, 9 * HOUR)] * 100
    alone = _ran(jobs).draws(_LONG, 0, None)
    assert alone is not None
    assert alone.beside(()) == alone
    beside = alone.beside([3 * HOUR] * 3)

    def share(draws: Draws) -> float:
        found = [draws.run_time(uniform(number, "n"), uniform(number, "p")) for number in range(2000)]
        return found.count(9 * HOUR) / len(found)

    assert share(alone) == pytest.approx(0.5, abs=0.05)
    assert share(beside) > 0.85
    assert share(alone.beside([MINUTE] * 3)) == pytest.approx(0.5, abs=0.05)
    assert share(alone.beside([100 * HOUR])) == pytest.approx(0.5, abs=0.05)  # nobody ran so long


def test_who_may_run_equally_long_runs_alike() -> None:
    """Jobs of one user, queue and size that ask for 10 h run 8 h, those that ask for 1 h run minutes."""
    asked = [Traits("u", "q", "cpu 1", "", limit) for limit in ("36000000000", "3600000000")]
    jobs = [(asked[0], 8 * HOUR), (asked[1], MINUTE)] * LEAST
    for traits, time in ((asked[0], 8 * HOUR), (asked[1], MINUTE)):
        draws = _ran(jobs).draws(traits, 0, None)
        assert draws is not None
        assert set(draws.values) == {time}
        assert draws.source == "jobs of the same user and queue and size and limit"
