"""What lets the scheduler say, without looking again, that a workload still cannot be admitted.

When quota becomes free anywhere in a tree, Kueue tries every parked workload of the tree again, and nearly
all of them in vain. Where the reasons lie in a queue's own state and in what is available to it, they can be
checked without a search; the answer is the one that the search would have given.
"""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.assignment import FIT, Assigner, Assignment, Check, Questions
from harness_plugins.kueue.cache import Queue
from harness_plugins.kueue.search import Incoming, Search
from harness_plugins.kueue.shares import Share


@final
class Hopeless:
    """An assignment that failed, and what it rests on.

    Args:
        assignment: the assignment; it is good for the whole kin of a workload.
        generation: of the queue, when its own state was looked at last.
        checks: how its flavor-resources stood.
        searches: the searches for targets.
        shares: below which all others have to have theirs, as long as the queue's own state is the same.
    """

    __slots__ = ("_checks", "_generation", "_outdated", "_searches", "_shares", "assignment")

    def __init__(
        self,
        assignment: Assignment,
        generation: int,
        checks: list[Check],
        searches: list[Incoming],
        shares: list[Share],
    ) -> None:
        self.assignment = assignment
        self._generation = generation
        self._checks = checks
        self._searches = searches
        self._shares = shares
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
        rooms = assigner.rooms(queue, version)
        for cell, amount, available, height in self._checks:
            if (amount <= rooms[cell]) is not available:
                return False
            if changed and assigner.height(queue, cell, amount) != height:
                return False
        if changed:
            shares = _in_vain(self._searches, search)
            if shares is None:
                return False
            self._generation, self._shares = queue.generation, shares
        else:
            for share in self._shares:
                if not search.still_none(queue, share):
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
    shares = _in_vain(questions.in_vain, search)
    if shares is None:
        return None
    return Hopeless(assignment, queue.generation, questions.checks, questions.in_vain, shares)


def _in_vain(searches: list[Incoming], search: Search) -> list[Share] | None:
    """Below which shares all others are, where that is why searches fail; None if one may succeed."""
    shares = []
    for incoming in searches:
        why = search.why_none(incoming)
        if why is None:
            return None
        if why.share is not None:
            shares.append(why.share)
    return shares
