"""Computes the deserved shares of queues by water filling, as proportion does, for all resources together."""

from collections.abc import Mapping

from volcano_proportion.queue import Queue

Amounts = Mapping[str, int]


def deserved_shares(
    queues: Mapping[str, Queue], total: Amounts, requests: Mapping[str, Amounts]
) -> dict[str, dict[str, int]]:
    """Return for each queue and resource the deserved part of the total, in whole units.

    In each round, the queues with unmet requests share the remaining amount by weight, up to their requests
    and their capability. A queue that gets nothing more in a round does not take part in later rounds.
    """
    deserved = {name: dict.fromkeys(total, 0) for name in queues}
    unmet, left = [name for name in queues if any(requests[name].values())], dict(total)
    while unmet:
        weights, shared, growing = sum(queues[name].weight for name in unmet), dict(left), []
        for name in unmet:
            queue, before = queues[name], deserved[name]
            after = deserved[name] = {
                each: min(
                    before[each] + shared[each] * queue.weight // weights,
                    requests[name].get(each, 0),
                    queue.capability.get(each, total[each]),
                )
                for each in total
            }
            left = {each: left[each] - after[each] + before[each] for each in total}
            if after != before and any(after[each] < requests[name].get(each, 0) for each in total):
                growing.append(name)
        unmet = growing
    return deserved


def exceeds(held: Amounts, deserved: Amounts) -> bool:
    """Return whether a queue holds more of any resource than it deserves."""
    return any(amount > deserved.get(each, 0) for each, amount in held.items())


def share(held: Amounts, deserved: Amounts) -> int:
    """Return the largest fraction of a deserved amount that a queue holds of any resource, in millionths."""
    return max((held.get(each, 0) * 10**6 // most for each, most in deserved.items() if most), default=0)
