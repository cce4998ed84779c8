"""Work that is done item by item, and its transfer to other processes and machines.

Work is identified by its hash. A process keeps the work that it receives, and reports if it lacks some.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, TypeVar

from harness.base.errors import ReplayError
from harness.base.memo import Memo
from harness.runs.identity import code_of_harness

_KEPT = 2

ItemT = TypeVar("ItemT", contravariant=True)
MadeT = TypeVar("MadeT", covariant=True)


class Work(Protocol[ItemT, MadeT]):
    """A maker of items that can be pickled with all its inputs."""

    @property
    def memory(self) -> int:
        """The approximate number of bytes that a process takes that makes items."""
        ...

    def begun(self) -> Callable[[ItemT], MadeT]:
        """Prepares this process; returns the function that makes an item."""
        ...

    def failed(self, item: ItemT, why: str) -> MadeT:
        """The result for an item that no process could make."""
        ...


class Packed(NamedTuple):
    """A work as bytes, and their hash."""

    digest: str
    content: bytes


def packed(work: Work[Any, Any]) -> Packed:
    """A work, ready to be sent."""
    content = zlib.compress(pickle.dumps((code_of_harness().sha256, work)), 1)
    return Packed(sha256(content).hexdigest(), content)


def make_elsewhere(digest: str, content: bytes | None, item: Any) -> Any:
    """Makes an item in a process that may already have the work; returns None to ask for the work.

    Args:
        digest: the hash of the work.
        content: the work; None if the process may already have it.
        item: the item to make.

    Raises:
        ReplayError: another version of `harness` is installed here.
    """
    make = _begun.get(digest)
    if make is None:
        if content is None:
            return None
        make = _begun[digest] = _unpacked(content).begun()
    return make(item)


_begun: Memo[str, Callable[[Any], Any]] = Memo(_KEPT)


def _unpacked(content: bytes) -> Work[Any, Any]:
    code, work = pickle.loads(zlib.decompress(content))  # noqa: S301 - packed by the one who asks
    if code != code_of_harness().sha256:
        raise ReplayError(
            "a worker has another version of harness than the one that began the work",
            hint="install the same version everywhere, and restart the workers",
        )
    return work  # type: ignore[no-any-return]
