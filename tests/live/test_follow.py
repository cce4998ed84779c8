"""One kind followed: lists page by page, also while they expire, and servers that are away for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fake_api import FakeApi
from watched_cluster import HOUR, WatchedCluster

pytest.importorskip("lightkube", reason="recording needs lightkube: pip install 'harness-replay[live]'")

from harness.readers.live.cluster import ApiServer, connect
from harness.readers.live.follow import Seen, Sign, Trouble, Whole, follow

PODS = "api/v1/pods"


@pytest.fixture
def api(serve: Callable[..., FakeApi]) -> FakeApi:
    """A server in the middle of an hour."""
    made = serve(WatchedCluster.of(2))
    made.now = HOUR // 2
    return made


@pytest.fixture
def server(api: FakeApi, token_file: Path) -> Iterator[ApiServer]:
    """Who asks it."""
    found = connect(server=api.url, token_file=token_file)
    with closing(found.http):
        yield found


def until(signs: Iterator[Sign], kind: type) -> list[Sign]:
    """The signs up to the first one of a kind."""
    found = []
    for sign in signs:
        found.append(sign)
        if isinstance(sign, kind):
            return found
    raise AssertionError


def test_a_list_that_expires_is_read_anew(api: FakeApi, server: ApiServer) -> None:
    """What it says is there in the end is what is there then, although its first pages were of before."""
    signs = follow(server.http, PODS, None, lambda _: False)
    first = next(signs)
    assert isinstance(first, Seen)
    before = {each["metadata"]["uid"] for each in api.there("Pod")}
    assert len(before) > 7  # a page
    api.advance(600)
    whole = until(signs, Whole)[-1]
    assert isinstance(whole, Whole)
    assert whole.uids == {each["metadata"]["uid"] for each in api.there("Pod")}
    assert before - whole.uids
    assert whole.revision == str(api.revision)
    signs.close()


def test_a_server_that_is_away_is_said_once(api: FakeApi, server: ApiServer) -> None:
    """And when it is back; until then it is asked again and again, less and less often."""
    waits: list[float] = []

    def pause(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 8:
            api.status = None
        return False

    signs = follow(server.http, PODS, str(api.revision), pause)
    api.status = 503
    api.advance(600)
    found = until(signs, Seen)
    assert found[:-1] == [
        Trouble("the server answers 503: jobs.batch is forbidden: User cannot list; trying again"),
        Trouble(""),
    ]
    assert waits[1:8] == [2, 4, 8, 16, 30, 30, 30]
    signs.close()
