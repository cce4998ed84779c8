"""What a queue lacks: the limits that are in the way, and who holds what is short."""

from __future__ import annotations

from harness.cluster.model import ClusterQueue, Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from harness.models.quota import QuotaTree
from harness.models.shortage import shortage


def group(*flavors: str, nominal: int = 0, borrowing: int | None = None, of: str = "gpu") -> ResourceGroup:
    """A resource group of one resource, with equal quotas of some flavors."""
    quota = ResourceQuota(nominal, borrowing, None)
    return ResourceGroup((of,), tuple(FlavorQuotas(each, {of: quota}) for each in flavors))


def test_a_borrowing_limit_is_told_where_it_is_in_the_way() -> None:
    """The queue may use 2 + 1 and its cohort 3 + 1, while the root has enough. Other limits are not told."""
    queues = {
        "a": ClusterQueue("a", "low", (group("f", nominal=2, borrowing=1),)),
        "b": ClusterQueue("b", "low", (group("f", nominal=1),)),
        "c": ClusterQueue("c", "top", (group("f", nominal=9),)),
    }
    cohorts = {"low": Cohort("low", "top", (group("f", borrowing=1),))}
    tree = QuotaTree(queues, cohorts)
    a, b = tree.queues["a"], tree.queues["b"]
    assert "max" not in shortage(tree, a, [(0, 3)])
    tree.charge(a, [(0, 2)])
    tree.charge(b, [(0, 1)])
    told = shortage(tree, a, [(0, 2)])
    assert told["max"] == {"a": {"f/gpu": 3}, "low": {"f/gpu": 4}}
    assert told["usage"] == {"a": {"f/gpu": 2}, "low": {"f/gpu": 3}}
    assert told["quota"] == {"a": {"f/gpu": 2}, "low": {"f/gpu": 3}}
    assert shortage(tree, b, [(0, 2)])["max"] == {"low": {"f/gpu": 4}}
    assert "max" not in shortage(tree, b, [(0, 1)])
    assert "max" not in shortage(tree, a, [(0, 2)], borrow=False)


def test_holders_cover_all_that_is_short_if_a_resource_has_several_flavors() -> None:
    """Cpu has one flavor and gpu two. The record names who holds them, or is empty if nobody does."""
    groups = (group("f", "g", nominal=4), group("plain", nominal=4, of="cpu"))
    tree = QuotaTree({name: ClusterQueue(name, "all", groups) for name in "ab"}, {})
    cells = {label: cell for cell, label in enumerate(tree.labels)}
    a, b = tree.queues["a"], tree.queues["b"]
    cpu, gpu = cells["plain/cpu"], cells["f/gpu"]
    tree.charge(b, [(cpu, 7), (gpu, 8)])
    told = shortage(tree, a, [(cpu, 2), (gpu, 1)])
    assert told["holders"] == {"b": {"plain/cpu": 7, "f/gpu": 8}}
    assert "holders" not in shortage(tree, a, [(cpu, 2)])
    assert shortage(tree, a, [(cells["g/gpu"], 9)])["holders"] == {}
    assert "holders" not in shortage(tree, a, [(cells["g/gpu"], 1)])
    assert shortage(tree, a, [(cells["g/gpu"], 1)], short={"g/gpu": 1})["holders"] == {}
