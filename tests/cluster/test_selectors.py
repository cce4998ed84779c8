"""Rules of label selectors, taints and tolerations."""

from __future__ import annotations

import pytest

from harness.base.errors import Fault
from harness.cluster.kinds.selectors import (
    LabelSelector,
    Requirement,
    Taint,
    Toleration,
    read_requirement,
    read_selector,
    read_toleration,
)
from harness.cluster.yaml.fields import Fields


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        ("In", ("a", "b"), {"a"}),
        ("NotIn", ("a",), {None, "5", "x"}),
        ("Exists", (), {"a", "5", "x"}),
        ("DoesNotExist", (), {None}),
        ("Gt", ("4",), {"5"}),
        ("Gt", ("5",), set()),
        ("Lt", ("6",), {"5"}),
        ("Lt", ("-1",), set()),
    ],
)
def test_requirement_matches(operator: str, values: tuple[str, ...], matching: set[str | None]) -> None:
    """An absent label satisfies only `NotIn` and `DoesNotExist`; text is never larger or smaller."""
    requirement = Requirement("key", operator, values)
    labels = {value: {} if value is None else {"key": value} for value in (None, "a", "5", "x")}
    assert {value for value, found in labels.items() if requirement.matches(found)} == matching


@pytest.mark.parametrize("label", ["1_0", " 9", "٩", "0x9", "9.0", ""])
def test_only_plain_integers_compare(label: str) -> None:
    """As Go parses them, not as Python does."""
    assert not Requirement("key", "Gt", ("1",)).matches({"key": label})


def test_selector_needs_all_of_its_parts() -> None:
    """Labels and expressions together; an empty selector matches everything."""
    selector = LabelSelector({"a": "1"}, (Requirement("b", "Exists"),))
    assert selector.matches({"a": "1", "b": ""})
    assert not selector.matches({"a": "1"})
    assert not selector.matches({"a": "2", "b": ""})
    assert LabelSelector().matches({})
    assert not LabelSelector()
    assert selector


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Equal", "v"), True),
        (Toleration("k", "Equal", "w"), False),
        (Toleration("k", "Exists"), True),
        (Toleration("j", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoSchedule"), True),
        (Toleration("k", "Equal", "v", "NoExecute"), False),
        (Toleration("", "Equal", ""), False),
    ],
)
def test_toleration_covers_taint(toleration: Toleration, tolerated: bool) -> None:
    """An empty key needs `Exists`; an empty effect covers every effect."""
    assert toleration.tolerates(Taint("k", "v", "NoSchedule")) is tolerated


@pytest.mark.parametrize(
    ("operator", "value", "taint", "tolerated"),
    [
        ("Gt", "750", "800", True),
        ("Gt", "800", "800", False),
        ("Lt", "-1", "-2", True),
        ("Lt", "9", "10", False),
        ("Gt", "1", "0800", False),
        ("Gt", "1", "95.5", False),
        ("Lt", "1", "", False),
    ],
)
def test_a_toleration_may_compare_the_value_of_a_taint(
    operator: str, value: str, taint: str, tolerated: bool
) -> None:
    """As `compareNumericValues` in k8s.io/api since Kubernetes 1.35: decimal numbers in canonical form."""
    assert Toleration("k", operator, value).tolerates(Taint("k", taint, "NoSchedule")) is tolerated


def test_faulty_selector_parts_are_faults() -> None:
    """What Kubernetes refuses, each with its field."""
    faults: list[Fault] = []
    read_selector(
        Fields(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}, {"key": "b"}]}, "o", faults
        )
    )
    read_requirement(Fields({"key": "a", "operator": "Lt", "values": ["x"]}, "o", faults))
    read_requirement(Fields({"operator": "Exists", "values": ["x"]}, "o", faults))
    read_toleration(Fields({"value": "x"}, "o", faults))
    read_toleration(Fields({"key": "a", "operator": "Exists", "value": "x", "effect": "Never"}, "o", faults))
    read_toleration(Fields({"key": "a", "operator": "Gt", "value": "09"}, "o", faults))
    assert [str(fault) for fault in faults] == [
        "o: matchExpressions[0].operator: 'Gt' is not one of In, NotIn, Exists, DoesNotExist",
        "o: matchExpressions[0].values: must be empty with operator Exists",
        "o: matchExpressions[1].operator: is missing",
        "o: values: must be one whole number with operator Lt",
        "o: values: must be empty with operator Exists",
        "o: key: is missing",
        "o: operator: must be Exists when the key is empty",
        "o: effect: 'Never' is not one of , NoSchedule, PreferNoSchedule, NoExecute",
        "o: value: must be empty with operator Exists",
        "o: value: must be a whole number without leading zeros with operator Gt",
    ]
