"""Hides secrets that were sent with requests, even if a server repeats them."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from html import unescape
from urllib.parse import unquote

HIDDEN = "the message is not shown, because it repeats a secret that harness sent"

_EVERY_REQUEST = ("accept", "accept-encoding", "connection", "host", "user-agent")
_PART = 8  # no text may show this many consecutive letters of a secret

_WORD = 3
"""A shorter value hides only texts that contain it as a whole word. Otherwise, it would hide every text."""


class Secrets:
    """The values of the headers that were sent with requests. Messages must not show them."""

    def __init__(self) -> None:
        self._parts: set[str] = set()
        self._words: set[str] = set()

    def sent(self, headers: Mapping[str, str]) -> None:
        """Stores the headers of a request, except standard headers."""
        for name, value in headers.items():
            if name.lower() not in _EVERY_REQUEST:
                for each in _meanings(value):
                    self._note(each.casefold())

    def _note(self, secret: str) -> None:
        if len(secret) < _WORD:
            self._words.add(secret)
        else:
            size = min(_PART, len(secret))
            self._parts.update(secret[at : at + size] for at in range(len(secret) - size + 1))

    def hidden(self, text: str) -> str:
        """Returns a text unchanged, or `HIDDEN` if it repeats a part of a header that was sent."""
        forms = {form.casefold() for form in (text, unquote(text), unescape(text))}
        repeats = any(part in form for form in forms for part in self._parts) or any(
            word in re.findall(r"\w+", form) for form in forms for word in self._words
        )
        return HIDDEN if repeats else text


def _meanings(value: str) -> Iterator[str]:
    """Yields a value, the words in it, and the decoded credentials after `Basic`."""
    yield value
    yield from value.split()
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            plain = b64decode(rest, validate=True).decode()
        except ValueError:
            return
        yield plain
        yield from plain.split(":", 1)
