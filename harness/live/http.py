"""GET requests, and no others: what servers answer as JSON, whole or line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from socket import SHUT_RDWR, socket
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.json_text import parse_json

if TYPE_CHECKING:
    import httpx2

_INSTALL = "pip install 'harness-replay[live]'"
_CONNECT = 10.0
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_SAID = 300


class RefusedError(Exception):
    """A server answered that it does not do it.

    Args:
        status: the HTTP status.
        what: what the server says of it.
    """

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"the server answers {status}: {what}" if what else f"the server answers {status}")
        self.status = status
        self.what = what


class UnreachedError(Exception):
    """There is no answer, or not all of it."""


def live_module(name: str) -> ModuleType:
    """A module of the extra `live`.

    Raises:
        InputError: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        what = name.partition(".")[0]
        raise InputError(f"asking a server needs {what}, which is not installed", hint=_INSTALL) from error


class HttpReader:
    """A server that is only read.

    Args:
        client: knows its address and who asks; redirections are not followed, so that what says who asks
            goes nowhere else.
        refused: what of an answer's body says why something is refused.
    """

    def __init__(self, client: httpx2.Client, refused: Callable[[Any], str]) -> None:
        self._client = client
        self._refused = refused
        self._open: set[socket] = set()
        self._errors = live_module("httpx2")

    def close(self) -> None:
        """End all connections, also those that another thread is just waiting for."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)
        self._client.close()

    def get(self, path: str, params: Mapping[str, str], *, patience: float = 60.0) -> Any:
        """The JSON value of an answer.

        Args:
            path: after the server's address.
            params: of the query.
            patience: seconds without a byte after which it is given up.

        Raises:
            RefusedError: the status is not one of success.
            UnreachedError: no answer, or none in JSON.
        """
        timeout = self._errors.Timeout(_CONNECT, read=patience)
        try:
            answer = self._client.get(path, params=dict(params), timeout=timeout)
            if not answer.is_success:
                raise self._refusal(answer)
            return parse_json(answer.content)
        except (self._errors.HTTPError, OSError) as error:
            raise UnreachedError(_why(error)) from error
        except ValueError as error:
            raise UnreachedError("the answer is not JSON") from error

    def lines(self, path: str, params: Mapping[str, str], *, patience: float) -> Iterator[Any]:
        """The JSON value of every line of an answer, each as soon as it is there.

        Raises:
            RefusedError, UnreachedError: as for `get`; the second also where the answer breaks off.
        """
        timeout = self._errors.Timeout(_CONNECT, read=patience)
        try:
            with self._client.stream("GET", path, params=dict(params), timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise self._refusal(answer)
                below = answer.extensions["network_stream"].get_extra_info("socket")
                self._open.add(below)
                try:
                    for line in answer.iter_lines():
                        if line:
                            yield parse_json(line)
                finally:
                    self._open.discard(below)
        except (self._errors.HTTPError, self._errors.StreamError, OSError) as error:
            raise UnreachedError(_why(error)) from error
        except ValueError as error:
            raise UnreachedError("the answer breaks off within a line") from error

    def _refusal(self, answer: httpx2.Response) -> RefusedError:
        if answer.is_redirect:
            return RefusedError(answer.status_code, "it sends elsewhere; give the address that it sends to")
        try:
            said = self._refused(parse_json(answer.content))
        except ValueError:
            said = ""
        return RefusedError(answer.status_code, (said or answer.reason_phrase)[:_SAID])


def is_transient(error: RefusedError | UnreachedError) -> bool:
    """Whether the same request may do later."""
    return isinstance(error, UnreachedError) or error.status in _TRANSIENT


def _why(error: Exception) -> str:
    """What went wrong with a connection, without the address and what else a message may quote."""
    name = type(error).__name__
    words = {
        "ConnectError": "it cannot be connected to",
        "ConnectTimeout": "it does not take the connection",
        "ReadTimeout": "it sends nothing",
    }
    cause = error.__cause__ or error.__context__
    while cause is not None and (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__
    reason = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None)
    said = words.get(name, f"the connection failed ({name})")
    return f"{said}: {reason}" if reason else said
