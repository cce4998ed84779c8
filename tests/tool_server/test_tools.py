"""`harness mcp`, asked by the client of the protocol's SDK: the server is a process.

`HOSTILE=1000 python -m pytest -m slow tests/tool_server` asks so many hostile questions, by default 1,000.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_environment import clean_environment
from hostile_questions import KINDS, SECRET, Hostile, hostile
from live_dumps import GPU, node, queue, workload
from small_clusters import queues

from harness.base.errors import InputError
from harness.cli.tool_server.folders import Folders
from harness.cli.tool_server.questions import simulate, what_if

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed (extra mcp)")

ROOT = Path(__file__).parents[2]
LABEL = "kueue.x-k8s.io/queue-name"
MANY = int(os.environ.get("HOSTILE", "1000"))
TOOLS = {"simulate", "forecast", "what_if", "explain", "compare", "list_runs"}

Asks = Callable[[Any], Awaitable[None]]


def job(gpus: int, pods: int = 1) -> dict[str, Any]:
    """A Job of the queue `q`."""
    container = {"name": "c", "resources": {"requests": {GPU: str(gpus)}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "mine", "namespace": "d", "labels": {LABEL: "q"}},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": {"containers": [container]}}},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a dump, beside one with a secret that links lead to."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    items = [node("n0"), node("n1"), *queue(), workload("runs", 8, held=1)]
    (inside / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (outside / "secret.yaml").write_text(f"token: {SECRET}\n")
    (inside / "link.yaml").symlink_to(outside / "secret.yaml")
    (inside / "folder").mkdir()
    (inside / "folder" / "deep.yaml").symlink_to(outside / "secret.yaml")
    (inside / "round").symlink_to(inside / "round")
    return inside


def asking(folder: Path, asks: Asks, *options: str) -> None:
    """Ask a server about a folder."""
    command = [sys.executable, "-c", "from harness.cli import main; main()"]
    args = [*command[1:], "mcp", str(folder), *options]

    async def session() -> None:
        from mcp.client import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(command=command[0], args=args, env=clean_environment(), cwd=ROOT)
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            async with Client(stdio_client(parameters, errlog=nowhere)) as client:
                await asks(client)

    anyio.run(session)


def said(result: Any) -> str:
    """The text of an answer."""
    return "\n".join(each.text for each in result.content)


@pytest.mark.early
def test_the_tools_answer_with_text_and_with_plain_values(folder: Path) -> None:
    """Each has a typed input; paths count from the folder."""

    async def asks(client: Any) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert set(tools) == TOOLS
        assert tools["simulate"].input_schema["required"] == ["cluster"]
        assert all(each.description for each in tools.values())
        found = await client.call_tool("simulate", {"cluster": "dump.json", "jobs": [job(8), job(8, 2)]})
        assert not found.is_error, said(found)
        assert "1 of 2 submitted jobs would start now" in said(found)
        assert [each["verdict"] for each in found.structured_content["answers"]] == ["starts", "waits"]
        runs = await client.call_tool("list_runs", {})
        assert runs.structured_content == {"schema": "1", "runs": []}

    asking(folder, asks)


def test_a_trace_is_replayed_on_both_clusters_and_compared(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """The cluster as it is first; what the replays wrote is gone, and nothing of it is in the folder."""
    trace = write_trace({"job_id": "x", "queue": "a", "request.cpu": 2000, "duration": 20})
    (trace.parent / "q.yaml").write_text(queues({"a": {"cpu": "4"}}))
    before = sorted(trace.parent.rglob("*"))
    patch = {"kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": {"stopPolicy": "Hold"}}
    folders = Folders([trace.parent])
    found = what_if(folders, trace.name, patch=[patch], cluster="q.yaml", plugin="kueue-classic")
    assert "stopPolicy None -> Hold" in found.text
    assert "/mix/" not in found.text
    assert [each["label"] for each in found.document["runs"]] == ["base", "patched"]
    assert sorted(trace.parent.rglob("*")) == before


async def refuse(client: Any, question: Hostile) -> float:
    """See that a question is refused in words that name nothing outside; answers how long that took."""
    from mcp import MCPError  # takes seconds

    begun = anyio.current_time()
    try:
        with anyio.fail_after(600):
            found = await client.call_tool(question.tool, question.arguments)
        refused, text = found.is_error, said(found)
    except MCPError as error:
        refused, text = True, str(error)
    shown = f"{question.kind} {question.tool} {str(question.arguments)[:400]}: {text[:400]}"
    assert refused, shown
    assert len(text) > 5, shown
    for never in (SECRET, "Traceback", "bug in harness"):
        assert never not in text, shown
    return anyio.current_time() - begun


@pytest.mark.nightly
def test_hostile_questions_are_refused_in_words(folder: Path) -> None:
    """One of each kind: nothing outside of the folders is read or named, and the server goes on."""

    async def asks(client: Any) -> None:
        for question in {each.kind: each for each in map(hostile, range(24))}.values():
            await refuse(client, question)
        again = await client.call_tool("simulate", {"cluster": "dump.json", "jobs": [job(1)]})
        assert not again.is_error

    before = listed(folder.parent)
    asking(folder, asks)
    assert listed(folder.parent) == before


def test_the_hostile_questions_are_of_every_kind() -> None:
    """Paths, types, sizes, manifests, patches and options, of every tool."""
    found = [hostile(number) for number in range(300)]
    assert {each.kind for each in found} == set(KINDS)
    assert {each.tool for each in found} >= TOOLS


def test_it_is_not_said_whether_something_outside_is_there(folder: Path) -> None:
    """The words are the same for a file that is and for one that is not."""
    told = []
    for name in ("secret.yaml", "nothing.yaml"):
        with pytest.raises(InputError) as raised:
            simulate(Folders([folder]), f"../outside/{name}")
        told.append(str(raised.value).replace(name, ""))
    assert told[0] == told[1]


@pytest.mark.slow
def test_many_hostile_questions_leave_the_server_small(folder: Path) -> None:
    """Twenty at once, over and over: all are refused in words, and memory stays where it was."""
    sizes: list[int] = []
    workers: list[int] = []
    took: list[float] = []

    async def one(client: Any, number: int) -> None:
        took.append(await refuse(client, hostile(number)))

    async def watch() -> None:
        while True:
            server, largest = resident(folder)
            sizes.append(server)
            workers.append(largest)
            await anyio.sleep(0.2)

    async def asks(client: Any) -> None:
        async with anyio.create_task_group() as watching:
            watching.start_soon(watch)
            for first in range(0, MANY, 20):
                async with anyio.create_task_group() as group:
                    for number in range(first, min(MANY, first + 20)):
                        group.start_soon(one, client, number)
            again = await client.call_tool("simulate", {"cluster": "dump.json", "jobs": [job(1)]})
            assert not again.is_error
            watching.cancel_scope.cancel()

    before = listed(folder.parent)
    asking(folder, asks, "--seconds", "300")
    assert listed(folder.parent) == before
    mebibytes = [f"{each >> 20} MiB" for each in (sizes[0], max(sizes), max(workers))]
    print(f"{len(took)} questions, the longest {max(took):.1f} s; server, at most, workers: {mebibytes}")
    assert max(sizes) < sizes[0] + (64 << 20), mebibytes
    assert max(workers) < 1 << 30, mebibytes
    assert max(took) < 600


def listed(folder: Path) -> list[tuple[str, int]]:
    """All files of a folder, and when they were changed."""
    return sorted((str(each), each.lstat().st_mtime_ns) for each in folder.rglob("*"))


def resident(folder: Path) -> tuple[int, int]:
    """How much memory the server of a folder has, and the largest process that answers for it, bytes."""
    server, parents = (0, 0), dict[int, tuple[int, int]]()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            size = int((each / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            if b"mcp" in words and str(folder).encode() in words:
                server = int(each.name), size
            elif b"harness.cli.tool_server.worker" in words:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1]), size
        except OSError:
            continue
    assert server[0], "the server is gone"
    return server[1], max((size for parent, size in parents.values() if parent == server[0]), default=0)


def test_a_question_that_takes_too_long_is_ended(folder: Path) -> None:
    """With how long it may take."""

    async def asks(client: Any) -> None:
        found = await client.call_tool("simulate", {"cluster": "dump.json"})
        assert found.is_error
        assert "took longer than 0.05 s and was stopped" in said(found)

    asking(folder, asks, "--seconds", "0.05")


def test_a_question_that_takes_too_much_memory_is_ended(folder: Path) -> None:
    """The server itself goes on."""

    async def asks(client: Any) -> None:
        for _ in range(2):
            found = await client.call_tool("simulate", {"cluster": "dump.json"})
            assert found.is_error
            assert "memory" in said(found) or "bug in harness" in said(found)

    asking(folder, asks, "--memory", "20Mi")


def test_many_questions_at_once_are_answered_one_by_one(folder: Path) -> None:
    """Each with its own answer; those beyond what may wait are refused in words."""

    async def asks(client: Any) -> None:
        answers: list[Any] = []

        async def one(pods: int) -> None:
            answers.append(
                await client.call_tool("simulate", {"cluster": "dump.json", "jobs": [job(1, pods)]})
            )

        async with anyio.create_task_group() as group:
            for pods in range(1, 4):
                group.start_soon(one, pods)
        counts = [each.structured_content["answers"][0]["pods"] for each in answers]
        assert sorted(counts) == [1, 2, 3]

    asking(folder, asks)
