"""Resolves plain YAML scalars in the same way as the library that Kubernetes uses to convert YAML to JSON.

The library is go.yaml.in/yaml/v2, which sigs.k8s.io/yaml uses. Integers have Go's syntax (`010` and `0o10`
are 8), floats don't support base 60, and timestamps are texts. The library always reads the words of YAML 1.1
as booleans. For example, `name: n` becomes `false`, which an API server rejects as a name. Programs that
write YAML 1.2, and PyYAML, do not quote such names. For this reason, a `Word` counts as text if the field
requires text, and as a boolean if the field requires a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

_NULLS = ("", "~", "null", "Null", "NULL")
_SMALLEST = -(2**63)
_LARGEST = {False: 2**64 - 1, True: 2**63 - 1}  # the largest unsigned integer and the largest signed integer
_LONGEST_INTEGER = 100
"""The maximum length of an integer. A longer integer doesn't fit into 64 bits, unless it has leading zeros.
"""
_WITH_EXPONENT = 1e21
"""JSON writes a float of this size or more with an exponent."""
BOOLEAN_FIELDS = frozenset((
    "active", "allowPrivilegeEscalation", "automountServiceAccountToken", "blockAdmission",
    "blockOwnerDeletion", "controller", "disablePreemption", "enable", "enableServiceLinks", "gang",
    "globalDefault", "hostIPC", "hostNetwork", "hostPID", "hostProcess", "hostUsers", "immutable",
    "manualSelector", "optional", "privileged", "publishNotReadyAddresses", "readOnly",
    "readOnlyRootFilesystem", "ready", "runAsNonRoot", "setHostnameAsFQDN", "shareProcessNamespace",
    "started", "stdin", "stdinOnce", "suspend", "tty", "unconstrained", "unschedulable",
))  # fmt: skip
"""The fields that are booleans in all kinds that harness reads. Their values are never texts."""
_BASES = {"x": 16, "o": 8, "b": 2, "": 8}
_BASED = re.compile(r"([-+]?)0([xXoObB]?)([0-9a-fA-F]+)", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_FLOAT_FROM_POINT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class NotFiniteError(ValueError):
    """A plain scalar is infinite or NaN, which JSON can't express."""


class Word(str):
    """A plain word that YAML 1.1 reads as a boolean and YAML 1.2 as text: y, yes, on, n, no or off."""

    __slots__ = ()

    @property
    def truth(self) -> bool:
        """The boolean that the word means in YAML 1.1."""
        return self.lower() in ("y", "yes", "on")


def _spellings(*words: str) -> tuple[str, ...]:
    return tuple(spelling for word in words for spelling in (word, word.capitalize(), word.upper()))


_KNOWN: dict[str, Any] = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(_spellings("true"), True),
    **dict.fromkeys(_spellings("false"), False),
    **{word: Word(word) for word in _spellings("y", "yes", "on", "n", "no", "off")},
}


def resolved(text: str) -> Any:
    """Returns the JSON value of a plain scalar, or a `Word` if YAML 1.1 and 1.2 read it differently.

    Raises:
        NotFiniteError: JSON can't express the value.
    """
    if text in _KNOWN:
        return _KNOWN[text]
    if text[0] not in "0123456789+-.":
        return text
    if _NOT_FINITE.fullmatch(text):
        raise NotFiniteError
    number: int | float | None
    if text[0] == ".":
        number = _float(text.replace("_", "")) if _FLOAT_FROM_POINT.fullmatch(text) else None
    else:
        plain = text.replace("_", "")
        number = _integer(plain)
        if number is None and _FLOAT.fullmatch(plain):
            number = _float(plain)
    return text if number is None else number


def reads_as_text(plain: str) -> bool:
    """Returns True if Kubernetes reads a plain scalar as text."""
    try:
        return plain != "<<" and type(resolved(plain)) is str
    except NotFiniteError:
        return False


def settled(content: Any) -> Any:
    """Returns a document in which each `Word` is replaced by the boolean that it means in YAML 1.1.

    It is used for documents whose fields have no known type.
    """
    if isinstance(content, Word):
        return content.truth
    if isinstance(content, Mapping):
        return {key: settled(value) for key, value in content.items()}
    return [settled(value) for value in content] if isinstance(content, list) else content


def _integer(plain: str) -> int | None:
    """Returns a 64-bit integer, signed or unsigned, in the base of its prefix, or None for other texts."""
    if len(plain) > _LONGEST_INTEGER:
        return None
    if _DECIMAL.fullmatch(plain):
        number = int(plain)
    elif match := _BASED.fullmatch(plain):
        sign, letter, digits = match.groups()
        try:
            number = int(sign + digits, _BASES[letter.lower()])
        except ValueError:  # such as 08, which is read as a float
            return None
    else:
        return None
    return number if _SMALLEST <= number <= _LARGEST[plain[0] in "+-"] else None


def _float(plain: str) -> int | float | None:
    """Returns a float in JSON's form, without a decimal point if it is whole, or None if out of range."""
    number = float(plain)
    if not isfinite(number):
        return None
    if number.is_integer() and abs(number) < _WITH_EXPONENT:
        return int(Decimal(repr(number)))
    return number
