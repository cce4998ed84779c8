"""What lets the scheduler say, without looking again, that a workload still cannot be admitted.

When quota becomes free anywhere in a tree, Kueue tries every parked workload of the tree again, and nearly
all of them in vain. Where the reasons lie in a queue's own state and in what is available to it, they can be
checked without a search; the answer is the one that the search would have given.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_plugins.kueue.assignment import FIT, Assigner, Assignment, Check, Questions
from harness_plugins.kueue.cache import Queue
from harness_plugins.kueue.search import Incoming, Search, WhyNone


class Hopeless(NamedTuple):
    """An assignment that failed, and what it rests on.

    Attributes:
        assignment: the assignment; it is good for the whole kin of a workload.
        generation: of the queue, when its own state was looked at last.
        checks: how its flavor-resources stood.
        searches: the searches for targets, and why they failed.
    """

    assignment: Assignment
    generation: int
    checks: tuple[Check, ...]
    searches: tuple[tuple[Incoming, WhyNone], ...]

    def still(self, assigner: Assigner, queue: Queue, search: Search) -> Hopeless | None:
        """The same as of now; None if anything that it rests on is not so any more.

        While nothing changes in the queue itself, only what others do counts.
        """
        changed = queue.generation != self.generation
        for check in self.checks:
            if not assigner.stands(queue, check, changed=changed):
                return None
        if not changed:
            for _, why in self.searches:
                if not search.still_none(queue, why):
                    return None
            return self
        searches = _in_vain([incoming for incoming, _ in self.searches], search)
        return None if searches is None else self._replace(generation=queue.generation, searches=searches)


def why_hopeless(
    assignment: Assignment, questions: Questions, queue: Queue, search: Search
) -> Hopeless | None:
    """What a failed assignment rests on; None where it may change in other ways.

    Args:
        assignment: the assignment, of all pods and from the first flavor on.
        questions: all that was asked to find it.
        queue: the queue.
        search: the way of choosing whom to preempt.
    """
    if assignment.mode == FIT or assignment.untried or questions.found_targets or len(queue.path) > 1:
        return None
    searches = _in_vain(questions.in_vain, search)
    if searches is None:
        return None
    return Hopeless(assignment, queue.generation, tuple(questions.checks), searches)


def _in_vain(asked: list[Incoming], search: Search) -> tuple[tuple[Incoming, WhyNone], ...] | None:
    """Why each of some searches fails; None if one may succeed."""
    found = []
    for incoming in asked:
        why = search.why_none(incoming)
        if why is None:
            return None
        found.append((incoming, why))
    return tuple(found)
