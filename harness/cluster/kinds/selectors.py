"""Models label selectors, taints and tolerations, with the rules by which Kubernetes matches them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from harness.base.frozen import Frozen
from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from harness.cluster.yaml.fields import Fields

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


@fixed()
class Requirement(Value):
    """A single expression of a selector. As in Kubernetes, an absent label satisfies `NotIn`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Returns True if the labels satisfy the expression."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if (
            value is None
            or (number := _integer(value)) is None
            or (bound := _integer(self.values[0])) is None
        ):
            return False
        return number > bound if self.operator == "Gt" else number < bound


@fixed()
class LabelSelector(Value):
    """A label selector. Its `matchLabels` and its `matchExpressions` must all match.

    An empty selector matches everything.
    """

    match_labels: Mapping[str, str] = field(default_factory=Frozen)
    match_expressions: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.match_labels or self.match_expressions)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Returns True if the labels satisfy the whole selector."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


@fixed()
class Taint(Value):
    """A taint of a node or flavor. Its `effect` is one of `EFFECTS`."""

    key: str
    value: str
    effect: str


@fixed()
class Toleration(Value):
    """A toleration of taints.

    An empty key with `Exists` tolerates every key, and an empty effect tolerates every effect. With `Gt` and
    `Lt`, a taint is tolerated if its value is greater or less than `value`. `seconds` is how long a pod stays
    on a node with a NoExecute taint. None means that there is no limit.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Returns True if this toleration covers a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("Gt", "Lt"):
            if not (_DECIMAL.fullmatch(taint.value) and _DECIMAL.fullmatch(self.value)):
                return False
            number, bound = int(taint.value), int(self.value)
            return number > bound if self.operator == "Gt" else number < bound
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def read_selector(fields: Fields) -> LabelSelector:
    """Read a label selector. An unknown operator or a missing value is a fault."""
    return LabelSelector(
        fields.strings("matchLabels"),
        tuple(read_requirement(item, LABEL_OPERATORS) for item in fields.items("matchExpressions")),
    )


def read_requirement(fields: Fields, operators: tuple[str, ...] = NODE_OPERATORS) -> Requirement:
    """Read a single expression of a label selector or node selector."""
    operator = fields.choice("operator", operators, "Exists", required=True)
    values = fields.texts("values")
    if operator in ("In", "NotIn") and not values:
        fields.fault("values", f"must not be empty with operator {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        fields.fault("values", f"must be empty with operator {operator}")
    if operator in ("Gt", "Lt") and (len(values) != 1 or _integer(values[0]) is None):
        fields.fault("values", f"must be one whole number with operator {operator}")
        values = ("0",)
    return Requirement(fields.string("key", required=True), operator, values)


def read_taint(fields: Fields) -> Taint:
    """Read a taint of a node or flavor."""
    effect = fields.choice("effect", EFFECTS, "NoSchedule", required=True)
    return Taint(fields.string("key", required=True), fields.string("value"), effect)


def read_toleration(fields: Fields) -> Toleration:
    """Read a toleration of a pod or flavor."""
    operator = fields.choice("operator", ("Equal", "Exists", "Gt", "Lt"), "Equal")
    key, value = fields.string("key"), fields.string("value")
    effect = fields.choice("effect", ("", *EFFECTS), "")
    if not key and operator != "Exists":
        fields.fault("operator", "must be Exists when the key is empty")
    if value and operator == "Exists":
        fields.fault("value", "must be empty with operator Exists")
    if operator in ("Gt", "Lt") and not _DECIMAL.fullmatch(value):
        fields.fault("value", f"must be a whole number without leading zeros with operator {operator}")
    seconds = fields.integer("tolerationSeconds") if "tolerationSeconds" in fields else None
    return Toleration(key, operator, value, effect, seconds)


def read_taints(fields: Fields, name: str) -> tuple[Taint, ...]:
    """Read a list of taints. As in Kubernetes, two taints with the same key and effect are a fault."""
    taints = tuple(read_taint(item) for item in fields.items(name))
    keys = [(taint.key, taint.effect) for taint in taints]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            fields.fault(f"{name}[{number}]", f"a second taint {key[0]}:{key[1]}")
    return taints


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None
