"""What lets the scheduler say, without looking again, that a workload still cannot be admitted.

When quota becomes free anywhere in a tree, Kueue tries every parked workload of the tree again, and nearly
all of them in vain. Where the reasons lie in a queue's own state and in what is available to it, they can be
checked without a search; the answer is the one that the search would have given.
"""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.assignment import FIT, Assigner, Assignment, Check, Questions
from harness_plugins.kueue.cache import Queue
from harness_plugins.kueue.search import Incoming, Search, WhyNone


@final
class Hopeless:
    """An assignment that failed, and what it rests on.

    Args:
        assignment: the assignment; it is good for the whole kin of a workload.
        generation: of the queue, when its own state was looked at last.
        checks: how its flavor-resources stood.
        searches: the searches for targets.
        why: for each search that others' doing has a part in, why it failed.
    """

    __slots__ = ("_checks", "_generation", "_outdated", "_searches", "_why", "assignment")

    def __init__(
        self,
        assignment: Assignment,
        generation: int,
        checks: list[Check],
        searches: list[Incoming],
        why: list[WhyNone],
    ) -> None:
        self.assignment = assignment
        self._generation = generation
        self._checks = checks
        self._searches = searches
        self._why = why
        self._outdated = -1

    def still(self, assigner: Assigner, queue: Queue, search: Search, version: int) -> bool:
        """Whether all that it rests on is so now.

        While nothing changes in the queue itself, only what others do counts.

        Args:
            assigner: tells how flavor-resources stand.
            queue: the queue.
            search: the way of choosing whom to preempt.
            version: of the queue's tree.
        """
        if version == self._outdated:
            return False
        self._outdated = version
        changed = queue.generation != self._generation
        for cell, amount, available, height in self._checks:
            if assigner.available(queue, cell, amount) is not available:
                return False
            if changed and assigner.height(queue, cell, amount) != height:
                return False
        if changed:
            found = _in_vain(self._searches, search)
            if found is None:
                return False
            self._generation, self._why = queue.generation, found
        else:
            for why in self._why:
                if not search.still_none(why):
                    return False
        self._outdated = -1
        return True


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
    why = _in_vain(questions.in_vain, search)
    if why is None:
        return None
    return Hopeless(assignment, queue.generation, questions.checks, questions.in_vain, why)


def _in_vain(searches: list[Incoming], search: Search) -> list[WhyNone] | None:
    """Why searches fail, where it is not for the queue's own state alone; None if one may succeed."""
    found = []
    for incoming in searches:
        why = search.why_none(incoming)
        if why is None:
            return None
        if why.incoming is not None:
            found.append(why)
    return found
