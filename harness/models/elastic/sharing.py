"""Divides a resource among quotas, so that each gets its guarantee and a weighted part of the rest.

The rules are based on Koordinator's `RuntimeQuotaCalculator` as of July 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """The input of one quota for sharing one resource.

    Attributes:
        name: the name of the quota. It decides which quota gets a remaining unit if remainders are equal.
        request: the requests of running and pending pods, up to the `max`.
        least: the guarantee.
        weight: the weight for sharing the rest. With a weight of 0, the quota gets no more than its
            guarantee.
        lends: whether other quotas can use the part of the guarantee that this quota does not request.
    """

    name: str
    request: int
    least: int
    weight: int
    lends: bool = True


def fair_shares(total: int, parts: Sequence[Part]) -> list[int]:
    """Returns the runtime of each quota, which is how much of the resource the quota may use.

    First, each quota gets its guarantee. If a quota lends, it gets only the part that it requests. The rest
    of the total is then divided by weight in rounds, with the largest remainder method. A quota that gets
    its whole request takes part in no further round, and the other quotas share its surplus. Guarantees are
    kept even if their sum exceeds the total.

    Args:
        total: the amount to share.
        parts: the quotas.
    """
    shares = [part.least if part.request > part.least or not part.lends else part.request for part in parts]
    open_ = [index for index, part in enumerate(parts) if part.request > part.least and part.weight > 0]
    left = total - sum(shares)
    while left > 0 and open_:
        whole = sum(parts[index].weight for index in open_)
        given = {index: divmod(parts[index].weight * left, whole) for index in open_}
        units = left - sum(base for base, _ in given.values())
        first = sorted(open_, key=lambda index: (-given[index][1], parts[index].name))[:units]
        left = 0
        for index in open_:
            shares[index] += given[index][0] + (index in first)
            surplus = max(shares[index] - parts[index].request, 0)
            shares[index] -= surplus
            left += surplus
        open_ = [index for index in open_ if shares[index] < parts[index].request]
    return shares
