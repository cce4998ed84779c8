"""Something that is made item by item, and how it goes to other processes and machines.

It travels by its sum: whoever makes items keeps what it got, and says so where it has not got it yet.
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
    """Makes items; it can be pickled, with all that they are made of."""

    @property
    def memory(self) -> int:
        """About how many bytes a process takes that makes items."""
        ...

    def begun(self) -> Callable[[ItemT], MadeT]:
        """Be ready in this process; answers what makes an item."""
        ...

    def failed(self, item: ItemT, why: str) -> MadeT:
        """What comes of an item that nobody could make."""
        ...


class Packed(NamedTuple):
    """A work as bytes, and their sum."""

    digest: str
    content: bytes


def packed(work: Work[Any, Any]) -> Packed:
    """A work, ready to travel."""
    content = zlib.compress(pickle.dumps((code_of_harness().sha256, work)), 1)
    return Packed(sha256(content).hexdigest(), content)


def make_elsewhere(digest: str, content: bytes | None, item: Any) -> Any:
    """Make an item in a process that may have got the work before; None asks for it.

    Args:
        digest: the sum of the work.
        content: the work; None where it may be there already.
        item: what to make.

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
            hint="install the same version everywhere, and start the workers anew",
        )
    return work  # type: ignore[no-any-return]
