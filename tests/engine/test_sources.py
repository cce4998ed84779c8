"""Sources of instants: each says when something is due, and delivers it."""

from __future__ import annotations

from harness.engine.life import Life
from harness.engine.sources import FAR, Agenda, Arrivals, Wakes
from harness.engine.starts import Starts
from harness.testing import Script


def test_an_agenda_delivers_what_is_due_by_name() -> None:
    """Names as plain text; equal ones in the order in which they were added."""
    told: list[object] = []
    agenda: Agenda[object] = Agenda(told.append)
    things = [object(), object()]
    for at, name, thing in ((5, "b", 1), (5, "a-10", 2), (5, "a-9", 3), (7, "a", 4)):
        agenda.add(at, name, thing)
    for thing in things:
        agenda.add(5, "c", thing)
    assert agenda.due == 5
    agenda.deliver(5)
    assert told == [2, 3, 1, *things]
    assert agenda.due == 7
    agenda.deliver(7)
    assert (told[-1], agenda.due) == (4, FAR)


def test_what_is_called_off_makes_no_instant_happen() -> None:
    """Neither where it is next, nor later, nor where it was delivered already."""
    told: list[str] = []
    agenda: Agenda[str] = Agenda(told.append)
    first, second, third = (agenda.add(at, "x", f"at {at}") for at in (1, 2, 3))
    agenda.call_off(second)
    assert agenda.due == 1
    agenda.call_off(first)
    assert agenda.due == 3
    agenda.deliver(3)
    agenda.call_off(third)
    assert (told, agenda.due) == (["at 3"], FAR)


def test_arrivals_take_a_chunk_when_the_one_before_is_used_up() -> None:
    """All jobs of an instant, also where they are in different chunks."""
    script = Script().job("a", at=1, cpu=1).job("b", at=1, cpu=1).job("c", at=2, cpu=1)
    (jobs,) = script.chunks()
    told: list[str] = []
    source = Arrivals(iter([jobs[:1], jobs[1:2], jobs[2:]]), lambda job, *_: told.append(job.id))
    assert source.due == 1_000_000
    source.deliver(1_000_000)
    assert (told, source.arrived, source.due) == (["a", "b"], 2, 2_000_000)
    source.deliver(2_000_000)
    assert (told, source.due) == (["a", "b", "c"], FAR)


def test_a_time_is_woken_at_once_however_often_it_was_asked_for() -> None:
    """The next instant is the earliest of those asked for."""
    wakes = Wakes(lambda _: 1)
    for at in (7, 3, 3):
        wakes.add(at)
    wakes.deliver(3)
    assert wakes.due == 7
    wakes.deliver(7)
    assert wakes.due == FAR


def test_wakes_look_for_effects_as_seldom_as_they_are_told() -> None:
    """At the first time, and then after as many times as the last look said."""
    looked: list[int] = []

    def look(now: int) -> int:
        looked.append(now)
        return 2

    wakes = Wakes(look)
    for at in range(1, 6):
        wakes.add(at)
        wakes.deliver(at)
    assert looked == [1, 3, 5]


def test_jobs_that_wait_for_their_start_are_due_when_something_was_given_back() -> None:
    """They start in the order in which they joined, until the next one's resources are not free."""
    script = Script()
    for name in "abc":
        script.job(name, cpu=1)
    lives = {name: Life(script[name], 1, None, None) for name in "abc"}
    free = ["a", "b"]
    starts = Starts(lambda life: life.job.id in free)
    starts.freed(5)
    assert starts.due == FAR
    for life in lives.values():
        starts.join(life)
    starts.leave(lives["a"])
    starts.freed(5)
    assert starts.due == 5
    starts.deliver(5)
    assert ([life.job.id for life in starts.waiting.values()], starts.due) == (["c"], FAR)
