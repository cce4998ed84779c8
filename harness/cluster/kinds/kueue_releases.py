"""Lists the known Kueue releases, and reads histories, which are texts that record changes by release."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from harness.base.errors import OptionError

_NEWEST_PATCHES = {13: 10, 14: 8, 15: 8, 16: 9, 17: 8, 18: 6, 19: 2}
"""Maps a minor version to its newest patch release that harness knows."""

_COMMIT = "ff69552"
_RELEASE = re.compile(r"v?0\.(\d+)(?:\.(\d+))?")


class Release(NamedTuple):
    """A release of Kueue, such as 0.17.8. The newest entry is not a release but a commit before 0.20."""

    minor: int
    patch: int

    def __str__(self) -> str:
        return _COMMIT if self == NEWEST else f"v0.{self.minor}.{self.patch}"


NEWEST = Release(20, 0)
"""The newest recorded release."""

RELEASES = (
    *(Release(minor, patch) for minor, most in _NEWEST_PATCHES.items() for patch in range(most + 1)),
    NEWEST,
)
"""All known releases, in order."""


def release_named(text: str) -> Release:
    """Returns the release that a text names, such as `v0.17.8`.

    `v0.17` means its newest known patch release, and `ff69552` the newest recorded commit.

    Raises:
        OptionError: the text names no known release.
    """
    found = _RELEASE.fullmatch(text)
    if found is not None:
        minor, patch = int(found[1]), found[2]
        most = _NEWEST_PATCHES.get(minor, -1)
        if most >= 0 and (patch is None or int(patch) <= most):
            return Release(minor, most if patch is None else int(patch))
    elif text.startswith(_COMMIT):
        return NEWEST
    newest = ", ".join(f"v0.{minor}.{patch}" for minor, patch in _NEWEST_PATCHES.items())
    raise OptionError(
        f"Kueue {text!r} is not a known release",
        hint=f"harness knows the commit {_COMMIT}, and all releases from v0.13.0 up to these: {newest}",
    )


def nearest_release(text: str) -> Release | None:
    """Returns the newest known release up to the release that a text names, or None if it names no release.

    If the named release is older than all known releases, the function returns the oldest known release.
    """
    found = re.match(r"v?0\.(\d+)\.(\d+)(?![\w.])", text)
    if found is None:
        return NEWEST if text.startswith(_COMMIT) else None
    wanted = Release(int(found[1]), int(found[2]))
    if wanted.minor >= NEWEST.minor:
        return NEWEST
    return max((each for each in RELEASES if each <= wanted), default=RELEASES[0])


@cache
def state_at(history: str, release: Release) -> str:
    """Returns the state that a history records for a release.

    `history` has the changes in order, such as `15.6=T 16=- 16.3=T`. Each entry is `release=state`: the state
    applies from 0.15.6 on. A change that was backported to 0.15.6 but came to 0.16 only in 0.16.3 has three
    entries, as in this example. Before the first change, the state is `-`.
    """
    state = "-"
    for change in history.split():
        since, _, word = change.partition("=")
        minor, _, patch = since.partition(".")
        if release < (int(minor), int(patch or 0)):
            break
        state = word
    return state
