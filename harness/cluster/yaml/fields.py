"""Reads a manifest field by field. The module checks types, collects all faults, and lists unread fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from harness.base.errors import Fault, InputError
from harness.base.units import parse_quantity, round_up
from harness.cluster.model import UNLIMITED, frozen
from harness.cluster.yaml.scalars import Word


class WebhookFault(Fault):
    """A fault that only the admission webhooks of a cluster find.

    The Kubernetes component itself would accept the object.
    """


class Fields:
    """A mapping in a manifest. Callers read it field by field.

    A getter marks the field as read, and returns its value or the default. If the value has the wrong type,
    the getter adds a fault but doesn't raise an error, so a single pass finds all faults. `unread()` returns
    the fields that no getter has read.

    Args:
        value: the mapping. A value of another type is a fault.
        where: the file, document and object, for messages.
        path: the path of this mapping, such as `spec.template`.
        with_words: the list that all mappings of one object share. A mapping is added to it if it contains
            texts that `words` returns. None creates the list of a new object.
    """

    def __init__(
        self,
        value: Any,
        where: str,
        faults: list[Fault],
        path: str = "",
        with_words: list[Fields] | None = None,
    ) -> None:
        self.where = where
        self.faults = faults
        self.path = path
        self._read: set[str] = set()
        self._words: list[tuple[str, str]] = []
        self._with_words: list[Fields] = [] if with_words is None else with_words
        self._children: list[Fields] = []
        self._mapping: Mapping[str, Any] = {}
        if isinstance(value, (dict, Mapping)) and _are_texts(value):
            self._mapping = value
        elif value is not None:
            self.fault("", f"must be a mapping of names to values, not {shown(value)}")

    def __contains__(self, name: str) -> bool:
        return self._mapping.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def fault(self, name: str, what: str) -> None:
        """Add a fault for a field of this mapping."""
        self.faults.append(Fault(self._place(name), what))

    def refuse(self, name: str, what: str) -> None:
        """Add a fault that only an admission webhook would find."""
        self.faults.append(WebhookFault(self._place(name), what))

    def _place(self, name: str) -> str:
        path = ".".join(part for part in (self.path, name) if part)
        return ": ".join(part for part in (self.where, path) if part)

    def raw(self, name: str) -> Any:
        """Marks a field as read, and returns its value without any check, or None if the field is absent."""
        self._read.add(name)
        return self._mapping.get(name)

    def string(self, name: str, default: str = "", *, required: bool = False) -> str:
        """Returns a text field."""
        value = self.raw(name)
        if value is None:
            if required:
                self.fault(name, "is missing")
            return default
        if isinstance(value, str):
            if required and not value:
                self.fault(name, "must not be empty")
            return self._text(name, value)
        quote = " (put it in quotes)" if isinstance(value, (bool, int, float)) else ""
        self.fault(name, f"must be text, not {shown(value)}{quote}")
        return default

    def choice(self, name: str, choices: tuple[str, ...], default: str, *, required: bool = False) -> str:
        """Returns a text field, whose value must be one of the choices."""
        value = self.string(name, default, required=required)
        if value not in choices:
            self.fault(name, f"{value!r} is not one of {', '.join(choices)}")
            return default
        return value

    def integer(
        self,
        name: str,
        default: int = 0,
        *,
        required: bool = False,
        least: int = -(2**31),
        most: int = 2**31 - 1,
    ) -> int:
        """Returns an integer field, whose value must be between `least` and `most`."""
        value = self.raw(name)
        if value is None:
            if required:
                self.fault(name, "is missing")
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            if least <= value <= most:
                return value
            self.fault(name, f"{value} is out of range ({least} to {most})")
        else:
            self.fault(name, f"must be a whole number, not {shown(value)}")
        return default

    def boolean(self, name: str, default: bool = False) -> bool:
        """Returns a boolean field."""
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, Word):
            return value.truth
        if isinstance(value, bool):
            return value
        self.fault(name, f"must be true or false, not {shown(value)}")
        return default

    def quantity(self, name: str) -> Fraction | None:
        """Returns the exact value of a quantity >= 0, or None if the quantity is absent or faulty."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            self.fault(name, f"must be a quantity, not {shown(value)}")
            return None
        try:
            quantity = parse_quantity(value)
        except InputError as error:
            self.fault(name, str(error))
            return None
        if quantity < 0:
            self.fault(name, f"{value} must not be negative")
            return None
        return quantity

    def amount(self, name: str, resource: str) -> int | None:
        """Returns a quantity >= 0 in the unit of its resource, or None if it is absent or faulty."""
        quantity = self.quantity(name)
        amount = None if quantity is None else round_up(resource, quantity)
        if amount is not None and amount > UNLIMITED:
            self.fault(name, f"is too large for {resource}: it must fit a signed 64-bit integer")
            return None
        return amount

    def quota(self, name: str, resource: str) -> int | None:
        """Returns a quota. As in Kueue, a quota that doesn't fit into 64 bits becomes `UNLIMITED`."""
        quantity = self.quantity(name)
        return None if quantity is None else min(round_up(resource, quantity), UNLIMITED)

    def amounts(self, name: str) -> Mapping[str, int]:
        """Returns a mapping of resources to quantities, such as `status.allocatable`."""
        table = self.child(name)
        found = {resource: table.amount(resource, resource) for resource in table}
        return frozen({resource: amount for resource, amount in found.items() if amount is not None})

    def strings(self, name: str) -> Mapping[str, str]:
        """Returns a mapping of names to texts, such as labels."""
        table = self.child(name)
        return frozen({key: table.string(key) for key in table})

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns a list of texts."""
        value = self.raw(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(self._text(f"{name}[{number}]", item) for number, item in enumerate(value))
        self.fault(name, f"must be a list of text values, not {shown(value)}")
        return ()

    def child(self, name: str) -> Fields:
        """Returns a field that is itself a mapping. If the field is absent, the mapping is empty."""
        return self._child(self.raw(name), name)

    def items(self, name: str) -> list[Fields]:
        """Returns a field that is a list of mappings. If the field is absent, the list is empty."""
        value = self.raw(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, f"must be a list, not {shown(value)}")
            return []
        return [self._child(item, f"{name}[{number}]") for number, item in enumerate(value)]

    def ignore(self, *names: str) -> None:
        """Mark fields as read although their values are not needed."""
        self._read.update(names)

    def ignore_rest(self) -> None:
        """Mark all remaining fields as read."""
        self._read.update(self._mapping)

    def unread(self) -> list[str]:
        """Returns the paths of all fields in this mapping and its children that no getter has read."""
        here = [
            f"{self.path}.{name}" if self.path else name
            for name in self._mapping
            if name not in self._read and self._mapping[name] is not None
        ]
        return here + [path for child in self._children for path in child.unread()]

    def words(self) -> list[tuple[str, str]]:
        """Returns the text fields of this mapping and its children that Kubernetes would read as booleans.

        Each field is given by its path and its text.
        """
        if not self._with_words:
            return []
        return self._words + [found for child in self._children for found in child.words()]

    def _text(self, name: str, value: str) -> str:
        if not isinstance(value, Word):
            return value
        self._words.append((f"{self.path}.{name}" if self.path else name, str(value)))
        self._with_words.append(self)
        return str(value)

    def _child(self, value: Any, name: str) -> Fields:
        path = f"{self.path}.{name}" if self.path else name
        child = Fields(value, self.where, self.faults, path, self._with_words)
        self._children.append(child)
        return child


_TEXT = frozenset({str})


def _are_texts(names: Iterable[object]) -> bool:
    return _TEXT.issuperset(map(type, names)) or all(isinstance(name, str) for name in names)


def shown(value: Any) -> str:
    """Returns a short form of a value on a single line, for messages."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to convert very long integers
        return "a number that is too long to show"
    except RecursionError:
        return "a value that is nested too deeply to show"
    return text if len(text) <= 40 else f"{text[:37]}..."
