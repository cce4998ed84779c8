"""What is put in the place of something else, and where: values of other types, and at the edges of types."""

from __future__ import annotations

from random import Random
from typing import Any

WHOLE = (
    0, 1, -1, 2, 3, 7, 1000, 10**6, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1, 2**63,
    -(2**63), 2**64, 10**19, 10**30, -(10**30),
)  # fmt: skip
"""Whole numbers at the edges of what is counted with."""

INT64 = tuple(number for number in WHOLE if -(2**63) <= number < 2**63)

NUMBERS = (*WHOLE, 0.0, 1.5, -1.5, 1e-9, 1e9, 1e300, -1e300, 5e-324)

HOSTILE = (
    "", " ", "x", "a b", "-1", "0", "null", "true", "*", "a,b", "a:b=c", "a/b", "../../etc", "-rf", "--help",
    "a\nb", "a\r\nb", "a\u2028b\u2029c", "a\u0085b", "\x1b[2J\x1b]0;x\x07", "\u202eabc", "\ufeffa", "\0",
    "e\N{COMBINING ACUTE ACCENT}", "\N{LATIN SMALL LETTER E WITH ACUTE}", "日本", "😀" * 40, "x" * 5000,
    "|a|b|", "`a`", "<script>alert(1)</script>", "</script><!--", "&lt;", "'\"", "[a](b)", "=1+1", "{{a}}",
    "%s%n",    "\\",
    "a\tb", "#x", "harness.x", "NaN", "\ud7ff", "\U0010ffff", "CON", ".", "..", "x" * 63, "x" * 64,
)  # fmt: skip
"""Names that mean something to a terminal, a page, a table, a file system or a parser."""

QUANTITIES = (
    "0", "1", "4", "500m", "1.5", "64Gi", "-4", "1e3", "1e40", "1e999999999", "1e-40", "99999999999Ei",
    "9223372036854775807", "9223372036854775806", "9223372036854775", "9223372036854774", "8Ei", "7Ei",
    "9223372036854775808", "18446744073709551616", "4611686018427387904", "1n", "0.0000000001", "4 ", "4Gib",
    "", "x", ".5", "5.", "+3", "1_000", "0x10", "inf", "nan", "٣",
)  # fmt: skip
"""Quantities of Kubernetes, right and wrong, and near what 64 bits hold."""

TIMES = (
    "0", "1us", "1ms", "30s", "7d", "1h30m", "1us..2us", "9999999999w", "0.0000001s", "-5s", "-1", "2",
    "soon",
    "", "292471y", "2562047788h", "1e9s", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z", "2026-13-01", "2026-01-01T00:00:00+99:99", "1969-12-31T23:59:59.999999999Z",
)  # fmt: skip
"""Durations and moments as text."""

SCALARS: tuple[Any, ...] = (None, True, False, *NUMBERS, *QUANTITIES, *TIMES, *HOSTILE)


def junk(random: Random) -> Any:
    """Any JSON value: mostly a scalar, else a list or a mapping of some."""
    shape = random.randrange(10)
    if shape < 7:
        return random.choice(SCALARS)
    if shape == 7:
        return [junk(random) for _ in range(random.randrange(3))]
    if shape == 8:
        return {random.choice(HOSTILE): junk(random) for _ in range(random.randrange(3))}
    return random.choice(([], {}, [[]], [{}], [None], {"": None}, {"a": {"b": [{"c": None}]}}))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, the whole first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place."""
    for key in path:
        value = value[key]
    return value


def mutated(value: Any, random: Random) -> Any:
    """A JSON value with something else at one place of it."""
    found = places(value)
    path = random.choice(found[1:] or found)
    return _changed(value, path, random)


def _changed(value: Any, path: tuple[Any, ...], random: Random) -> Any:
    if not path:
        return _other(value, random)
    copy = dict(value) if isinstance(value, dict) else list(value)
    key, *rest = path
    if rest:
        copy[key] = _changed(copy[key], tuple(rest), random)
        return copy
    how = random.randrange(12)
    if how == 0:
        del copy[key]
    elif how == 1 and isinstance(copy, list):
        copy.append(copy[key])
    elif how == 1:
        copy[random.choice(HOSTILE)] = copy.pop(key)
    else:
        copy[key] = _other(copy[key], random)
    return copy


def _other(value: Any, random: Random) -> Any:
    """Something else in the place of a value; now and then something close."""
    how = random.randrange(8)
    if how == 0:
        return [value]
    if how == 1:
        return {"x": value}
    if how == 2 and isinstance(value, list | dict):
        inner = list(value.values()) if isinstance(value, dict) else value
        return inner[0] if inner else None
    if how == 2:
        return str(value)
    if how == 3 and isinstance(value, str | int | float):
        return random.choice(QUANTITIES)
    if how == 4 and isinstance(value, str | int | float):
        return random.choice(NUMBERS)
    return junk(random)


PIECES = (
    b"", b"\n", b"\r", b"\r\n", b" ", b"\t", b",", b";", b"-", b".", b"-1", b"e9", b"nan", b"inf", b"9" * 19,
    b"9" * 400, b"0x1", b"\xff", b"\xef\xbb\xbf", b"\0", b'"', b"'", b"_", "٣".encode(), b"{", b"}", b"[",
    b"]", b":", b"null", b"&a ", b"*a", b"? ", b"- ", b"!!x ", b"---\n", b"\xe2\x80\xa8",
    b"; UnixStartTime: 1e9\n",
)  # fmt: skip
"""Bytes that mean something to one format or another."""


def damaged(data: bytes, random: Random, *, text: bool = True) -> bytes:
    """Bytes with a few edits: pieces put in or over, parts cut out, doubled, or left away to the end."""
    content = bytearray(data)
    for _ in range(random.randrange(1, 5)):
        place = random.randrange(len(content) + 1)
        length = random.choice((0, 0, 1, 1, 2, 4, 12))
        how = random.randrange(10)
        if how == 0:
            content = content[:place]
        elif how == 1:
            content[place:place] = content[place : place + 40]
        elif how < 5 and not text and place < len(content):
            content[place] ^= 1 << random.randrange(8)
        else:
            piece = random.choice(PIECES) if text or random.randrange(2) else random.randbytes(4)
            content[place : place + length] = piece
    return bytes(content)
