"""What lets the scheduler say, without looking again, that a workload still cannot be admitted.

When quota becomes free anywhere in a tree, Kueue tries every parked workload of the tree again, and nearly
all of them in vain. Where the reasons lie in a queue's own state and in what is available to it, they can be
checked without a search; the answer is the one that the search would have given.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_plugins.kueue.assignment import FIT, Assignment, Questions
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.search import Search, WhyNone


class Hopeless(NamedTuple):
    """An assignment that failed, and what it rests on.

    Attributes:
        assignment: the assignment; it is good for the whole kin of a workload.
        generation: of the queue, whose own state it depends on.
        checks: flavor-resources, amounts, and whether these were available.
        reasons: why the searches for targets failed.
    """

    assignment: Assignment
    generation: int
    checks: tuple[tuple[int, int, bool], ...]
    reasons: tuple[WhyNone, ...]

    def holds(self, cache: Cache, queue: Queue, search: Search) -> bool:
        """Whether everything that it rests on is still so."""
        if queue.generation != self.generation:
            return False
        tree, node = cache.tree, queue.node
        for cell, amount, available in self.checks:
            if (amount <= max(0, tree.available(node, cell))) is not available:
                return False
        for reason in self.reasons:  # noqa: SIM110 - much faster than a generator
            if not search.still_none(queue, reason):
                return False
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
    reasons = []
    for incoming in questions.in_vain:
        why = search.why_none(incoming)
        if why is None:
            return None
        reasons.append(why)
    return Hopeless(assignment, queue.generation, tuple(questions.checks), tuple(reasons))
