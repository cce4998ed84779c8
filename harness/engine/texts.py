"""Converts objects from policies to the text that is stored, and rejects objects that can't be converted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any, final

from harness.base.memo import Memo
from harness.engine.events import Fact, UnwritableError


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{short(value)} is of type {type(value).__name__}")


_JSON = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), default=_plain, check_circular=False, allow_nan=False
)


@final
class Texts:
    """Converts objects to canonical JSON, each object only once. Equal objects give equal texts."""

    def __init__(self) -> None:
        self._details: Memo[int, tuple[object, str]] = Memo()
        self._flavors: Memo[int, tuple[object, str]] = Memo()

    def of_detail(self, fact: Fact) -> str:
        """Returns the field `detail` of a fact as JSON text. It contains numbers that explain the decision.

        Raises:
            UnwritableError: the detail can't be written as a JSON object.
        """
        value = fact.detail
        seen = self._details.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        if not isinstance(value, Mapping):
            raise UnwritableError(fact.job, f"the detail must be a mapping, not {short(value)}")
        try:
            text = _JSON.encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            why = "a number is NaN or infinite" if "Out of range" in str(error) else str(error)
            raise UnwritableError(fact.job, f"the detail cannot be written as JSON: {why}") from error
        self._details[id(value)] = (value, text)
        return text

    def of_flavors(self, fact: Fact) -> str:
        """Returns the field `flavors` of an admission's fact as JSON text.

        Raises:
            UnwritableError: the flavors are not a mapping of mappings of text.
        """
        value = fact.flavors
        seen = self._flavors.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        if not _are_flavors(value):
            raise UnwritableError(
                fact.job,
                f"the flavors must have the form {{pod set: {{resource: flavor}}}}, not {short(value)}",
            )
        text = _JSON.encode(value)
        self._flavors[id(value)] = (value, text)
        return text


def _are_flavors(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(pod_set, str)
        and isinstance(flavors, Mapping)
        and all(isinstance(each, str) for pair in flavors.items() for each in pair)
        for pod_set, flavors in value.items()
    )
