"""Sends only GET requests, and reads JSON answers, either as a whole or line by line."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from html import unescape
from socket import SHUT_RDWR, socket
from threading import Event, Timer
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from harness.base.errors import InputError
from harness.base.json_text import parse_json
from harness.readers.live.answers import (
    BeyondError,
    Bounds,
    LateError,
    UnreachedError,
    body,
    lines,
    stopwatch,
)

if TYPE_CHECKING:
    import httpx2

_INSTALL = "pip install 'harness-replay[live]'"
_CONNECT = 10.0
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_SAID = 300

ANSWER = Bounds(sent=64 << 20, held=64 << 20, line=64 << 20, seconds=300.0)
"""The limits of a whole answer, which equal the size to which any packed file can expand."""

STREAM = Bounds(sent=1 << 30, held=1 << 30, line=8 << 20, seconds=480.0)
"""The limits of a watch. etcd accepts no object larger than 1.5 MiB."""

REFUSAL = Bounds(sent=1 << 16, held=1 << 16, line=1 << 16, seconds=300.0)
"""The limits of the text of a refusal."""

HIDDEN = "the message is not shown, because it repeats a secret that harness sent"

_EVERY_REQUEST = ("accept", "accept-encoding", "connection", "host", "user-agent")
_PART = 8  # no text may show this many consecutive letters of a secret

_WORD = 3
"""A shorter value hides only texts that contain it as a whole word. Otherwise, it would hide every text."""


class RefusedError(Exception):
    """A server refused a request."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"the server answers {status}: {what}" if what else f"the server answers {status}")
        self.status = status
        self.what = what


def live_module(name: str) -> ModuleType:
    """Imports a module of the extra `live`.

    Raises:
        InputError: the module is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        what = name.partition(".")[0]
        raise InputError(
            f"querying a server requires {what}, which is not installed", hint=_INSTALL
        ) from error


class HttpReader:
    """A server with read-only access, and with limits for all answers.

    Args:
        client: holds the address and the credentials. It does not follow redirects, so that credentials are
            not sent to other servers.
        refused: returns the explanation of a refusal from an answer's body.
    """

    def __init__(self, client: httpx2.Client, refused: Callable[[Any], str]) -> None:
        self._client = client
        self._refused = refused
        self._sockets: set[socket] = set()
        self._secrets = Secrets()
        self._errors = live_module("httpx2")

    def close(self) -> None:
        """Close all connections, even if another thread is waiting for them."""
        self.break_off()
        self._client.close()

    def break_off(self) -> None:
        """End all answers that other threads are waiting for. New connections can still be opened."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)

    def said(self, text: str) -> str:
        """Returns a server's text on a single line and without secrets, so that it may be shown."""
        return self._secrets.hidden(text)[:_SAID]

    def get(self, path: str, params: Mapping[str, str], *, patience: float = 60.0) -> Any:
        """Returns the JSON value of an answer.

        `path` begins after the server's address. `patience` is the longest time without a byte, in seconds.

        Raises:
            RefusedError: the status is not a success.
            UnreachedError: the answer is missing, or not JSON.
            BeyondError, LateError: the answer is too large, or takes too long.
        """
        with self._answer(path, params, patience, ANSWER) as pieces:
            data = b"".join(pieces)
        try:
            return parse_json(data)
        except ValueError as error:
            raise UnreachedError("the answer is not JSON") from error

    def lines(self, path: str, params: Mapping[str, str], *, patience: float) -> Iterator[Any]:
        """Yields the JSON value of every line of an answer as soon as the line is complete.

        Raises:
            RefusedError, UnreachedError, BeyondError: as for `get`. UnreachedError also means that the answer
                is cut off.
        """
        with self._answer(path, params, patience, STREAM) as pieces:
            for line in lines(pieces, STREAM):
                if line.strip():
                    try:
                        value = parse_json(line)
                    except ValueError as error:
                        raise UnreachedError("the answer is cut off within a line") from error
                    yield value

    @contextmanager
    def _answer(
        self, path: str, params: Mapping[str, str], patience: float, bounds: Bounds
    ) -> Iterator[Iterator[bytes]]:
        """Yields the pieces of an answer's body, and converts connection errors into errors of harness."""
        timeout = self._errors.Timeout(_CONNECT, read=patience)
        clock, late = stopwatch(), Event()
        guard = Timer(bounds.seconds, self._too_late, (late,))  # a head may arrive byte by byte forever
        guard.daemon = True
        guard.start()
        try:
            with self._client.stream(
                "GET",
                path,
                params=dict(params),
                headers={"Accept-Encoding": "gzip"},
                timeout=timeout,
                extensions={"trace": self._trace},
            ) as answer:
                self._secrets.sent(answer.request.headers)
                encoding = answer.headers.get("Content-Encoding", "").strip().lower()
                if not answer.is_success:
                    raise self._refusal(answer, body(answer.iter_raw(), encoding, REFUSAL, clock))
                yield body(answer.iter_raw(), encoding, bounds, clock)
        except (self._errors.HTTPError, self._errors.StreamError, OSError) as error:
            if late.is_set():
                raise LateError(bounds.seconds) from error
            raise UnreachedError(_why(error)) from error
        finally:
            guard.cancel()

    def _too_late(self, late: Event) -> None:
        late.set()
        self.break_off()

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Stores the socket of a connection, so that another thread can close it while this thread waits."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets = {each for each in self._sockets if each.fileno() >= 0}
            self._sockets.add(info["return_value"].get_extra_info("socket"))

    def _refusal(self, answer: httpx2.Response, pieces: Iterator[bytes]) -> RefusedError:
        if answer.is_redirect:
            return RefusedError(
                answer.status_code, "it redirects to another address; give that address instead"
            )
        try:
            said = self._refused(parse_json(b"".join(pieces)))
        except (ValueError, UnreachedError):
            said = ""
        return RefusedError(answer.status_code, self.said(said or answer.reason_phrase))


def is_transient(error: RefusedError | UnreachedError) -> bool:
    """Returns True if the request may succeed later."""
    if isinstance(error, RefusedError):
        return error.status in _TRANSIENT
    return not isinstance(error, (BeyondError, LateError))


def _why(error: Exception) -> str:
    """Returns why a connection failed, without the address and other quoted parts."""
    name = type(error).__name__
    words = {
        "ConnectError": "it does not accept connections",
        "ConnectTimeout": "it does not accept the connection in time",
        "ReadTimeout": "it sends nothing",
    }
    cause = error.__cause__ or error.__context__
    while cause is not None and (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__
    reason = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
    said = words.get(name, f"the connection failed ({name})")
    return f"{said}: {reason}" if reason else said


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
