"""Follows the objects of one kind with a list, then with watches, and with a new list only if required.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from harness.base.errors import HarnessError
from harness.base.json_text import mapping_of
from harness.readers.live.answers import UnreachedError
from harness.readers.live.http import HttpReader, RefusedError

LISTED = "LISTED"
"""The event of an object from a list, in addition to the events of watches."""

_PAGE = "500"
_MOST_PAGES = 20_000  # the maximum number of pages in a list, which is enough for ten million objects

_WATCH = 290  # the time in seconds after which the server ends a watch, so that another watch begins

_PATIENCE = 150.0
"""The longest time without a byte, in seconds.

It is longer than a minute, because a healthy server sends a bookmark every minute.
"""

_GONE = 410
_SAID = 2
"""The number of successive failures after which harness reports a problem.

Single failures are normal, because a watch may end at any time.
"""

_LONGEST = 30.0


class Seen(NamedTuple):
    """A version of an object.

    Attributes:
        event: ADDED, MODIFIED or DELETED for a watch, or LISTED.
    """

    event: str
    manifest: Mapping[str, Any]


class Whole(NamedTuple):
    """A sign that a list is complete. Objects that were not in the list do not exist.

    Attributes:
        revision: the resource version of the list.
    """

    revision: str
    uids: frozenset[str]


class At(NamedTuple):
    """A resource version up to which all changes were observed."""

    revision: str


class Trouble(NamedTuple):
    """A report that the server does not answer properly. harness repeats the requests.

    Attributes:
        what: the problem, or "" when it is over.
    """

    what: str


Sign: TypeAlias = Seen | Whole | At | Trouble


class _ExpiredError(Exception):
    """The server no longer has the changes since a resource version."""


def follow(
    http: HttpReader, path: str, revision: str | None, pause: Callable[[float], bool]
) -> Iterator[Sign]:
    """Yields the changes of the objects of one kind, without end.

    `revision` is the resource version to continue from, or None to begin with a list. `pause` waits for a
    number of seconds, and returns True to stop following.
    """
    failures = 0
    while True:
        trouble, heard = "", False
        try:
            if revision is None:
                for sign in _listed(http, path):
                    yield sign
                    if isinstance(sign, Whole):
                        revision = sign.revision
            for sign in _watched(http, path, str(revision)):
                if failures >= _SAID:
                    yield Trouble("")
                failures, heard = 0, True
                yield sign
                revision = _revision(sign) or revision
        except _ExpiredError:
            revision = None
        except RefusedError as error:
            if error.status == _GONE:
                revision = None
            else:
                trouble = str(error)
        except UnreachedError as error:
            trouble = str(error)
        except HarnessError:
            raise
        except Exception as error:
            # A program that provides tokens failed. The error may quote the program's output.
            trouble = f"{type(error).__name__}: no credentials"
        failures = failures + 1 if trouble else 0
        if failures == _SAID:
            yield Trouble(f"{trouble}; trying again")
        if pause(_wait(failures, heard=heard)):
            return


def _wait(failures: int, *, heard: bool) -> float:
    if failures > 1:
        return min(_LONGEST, 2.0 ** min(failures - 1, 10))
    return 0.05 if heard else 1.0


def _listed(http: HttpReader, path: str) -> Iterator[Sign]:
    """Yields all objects, page by page.

    If a list expires while it is being read, it is read again from the beginning, because the remaining
    pages would show the objects at another time.
    """
    params = {"limit": _PAGE}
    uids: set[str] = set()
    tokens: set[str] = set()
    while True:
        try:
            page = http.get(path, params)
        except RefusedError as error:
            if error.status != _GONE or "continue" not in params:
                raise
            params = {"limit": _PAGE}
            uids.clear()
            tokens.clear()
            continue
        items = page.get("items") if isinstance(page, Mapping) else ()
        if not isinstance(items, (list, type(None))):
            raise UnreachedError("the answer is not a list of objects")
        metadata = mapping_of(page, "metadata")
        named = {"apiVersion": page.get("apiVersion"), "kind": str(page.get("kind")).removesuffix("List")}
        for number, item in enumerate(items or (), len(uids) + 1):
            if not isinstance(item, Mapping) or not isinstance(item.get("metadata"), Mapping):
                raise UnreachedError(f"item {number:,} of the list is not an object")
            uids.add(str(mapping_of(item, "metadata").get("uid")))
            yield Seen(LISTED, {**named, **item})
        if not metadata.get("continue"):
            yield Whole(str(metadata.get("resourceVersion")), frozenset(uids))
            return
        token = str(metadata["continue"])
        if token in tokens or len(tokens) >= _MOST_PAGES:
            raise UnreachedError("the pages of the list do not advance: the server sent the same token again")
        tokens.add(token)
        params = {**params, "continue": token}


def _watched(http: HttpReader, path: str, revision: str) -> Iterator[Sign]:
    params = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": revision,
        "timeoutSeconds": str(_WATCH),
    }
    for event in http.lines(path, params, patience=_PATIENCE):
        if not isinstance(event, Mapping):
            raise UnreachedError("the answer is not a watch")
        kind, manifest = str(event.get("type")), event.get("object")
        if not isinstance(manifest, Mapping):
            raise UnreachedError("an event of the watch has no object")
        if kind == "ERROR":
            code = manifest.get("code")
            if code == _GONE:
                raise _ExpiredError
            said = http.said(str(manifest.get("message") or ""))
            raise RefusedError(code if isinstance(code, int) else 500, said)
        yield At(_version(manifest)) if kind == "BOOKMARK" else Seen(kind, manifest)


def _revision(sign: Sign) -> str:
    if isinstance(sign, At):
        return sign.revision
    return _version(sign.manifest) if isinstance(sign, Seen) else ""


def _version(manifest: Mapping[str, Any]) -> str:
    return str(mapping_of(manifest, "metadata").get("resourceVersion") or "")
