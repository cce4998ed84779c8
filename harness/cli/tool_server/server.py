"""A server of typed tools over stdio. A process answers each call and is killed at the time limit."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.base.errors import InputError

_INSTALL = "pip install 'harness-replay[mcp]'"
_LARGEST_QUESTION = 2_000_000
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "SYSTEMROOT")
"""The environment variables that answering processes receive. None of them contains a secret."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Bounds:
    """The limits of one question, and of concurrent questions.

    Attributes:
        folders: the folders below which files may be read.
        memory: the memory limit of the process that answers a question, in bytes.
        at_once: the number of questions that are answered in parallel. Other questions wait.
        waiting: the number of questions that may wait. Further questions are refused.
    """

    folders: Sequence[Path]
    seconds: float
    memory: int
    at_once: int = 2
    waiting: int = 100


@dataclass
class Asker:
    """Starts a process to answer each question."""

    bounds: Bounds
    _free: asyncio.Semaphore = field(init=False)
    _asked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.bounds.at_once)

    async def ask(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a question, or an `error` in words."""
        bounds = self.bounds
        question = {
            "tool": tool,
            "arguments": {name: value for name, value in arguments.items() if value is not None},
            "folders": [str(folder) for folder in bounds.folders],
            "memory": bounds.memory,
        }
        text = json.dumps(question).encode()
        if len(text) > _LARGEST_QUESTION:
            return {"error": f"the question is longer than {_LARGEST_QUESTION:,} bytes"}
        if self._asked >= bounds.at_once + bounds.waiting:
            return {"error": f"{self._asked:,} questions are being answered or wait; ask again later"}
        self._asked += 1
        try:
            async with self._free:
                return await self._answered(text)
        finally:
            self._asked -= 1

    async def _answered(self, question: bytes) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "harness.cli.tool_server.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(question), self.bounds.seconds)
        except TimeoutError:
            return {"error": f"the question took longer than {self.bounds.seconds:g} s and was stopped"}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            found: dict[str, Any] = json.loads(out)
        except ValueError:
            return {"error": "the question was stopped: it used too much memory, or the system stopped it"}
        return found


def serve(bounds: Bounds) -> None:
    """Answer questions over stdio until stdin ends.

    Raises:
        InputError: the extra `mcp` is not installed.
    """
    server_of(bounds).run("stdio")


def server_of(bounds: Bounds) -> Any:
    """Returns the server with its tools.

    Raises:
        InputError: the extra `mcp` is not installed.
    """
    types = _sdk("mcp.types")
    server = _sdk("mcp.server").MCPServer("harness", instructions=_ABOUT, log_level="ERROR")
    asker = Asker(bounds)
    result = types.CallToolResult

    async def answered(tool: str, **arguments: Any) -> Any:
        found = await asker.ask(tool, arguments)
        error = found.get("error")
        content = [types.TextContent(type="text", text=found["text"] if error is None else error)]
        if error is not None:
            return result(content=content, is_error=True)
        return result(content=content, structured_content=found["document"])

    async def simulate(
        cluster: str,
        jobs: list[Manifest] | None = None,
        patch: list[Manifest] | None = None,
        plugin: str | None = None,
        workloads: list[str] | None = None,
        each: bool = False,
        changes: bool = True,
    ) -> Any:
        """Say whether jobs would start now in a cluster's dump, what they would preempt, and what would help.

        Without jobs, the tool answers for the named waiting workloads, or for all waiting workloads. Jobs and
        patch documents are manifests.
        """
        return await answered(
            "simulate", cluster=cluster, jobs=jobs, patch=patch, plugin=plugin, workloads=workloads,
            each=each, changes=changes,
        )  # fmt: skip

    async def forecast(
        cluster: str,
        history: str | None = None,
        job: Manifest | None = None,
        plugin: str | None = None,
        futures: int = 20,
        horizon: str = "7d",
    ) -> Any:
        """Forecast when waiting jobs in a cluster's dump start, and the effect of one more job."""
        return await answered(
            "forecast", cluster=cluster, history=history, job=job, plugin=plugin, futures=futures,
            horizon=horizon,
        )  # fmt: skip

    async def what_if(
        trace: str,
        patch: list[Manifest],
        cluster: str | None = None,
        plugin: str | None = None,
        until: str | None = None,
    ) -> Any:
        """Replay a trace on a cluster and on the patched one, and compare waits, use and preemptions."""
        return await answered(
            "what_if", trace=trace, patch=patch, cluster=cluster, plugin=plugin, until=until
        )

    async def explain(
        run: str, job: str | None = None, queue: str | None = None, at: str | None = None
    ) -> Any:
        """Explain what happened to a job of a finished run, in a queue, or at a given time."""
        return await answered("explain", run=run, job=job, queue=queue, at=at)

    async def compare(runs: list[str], baseline: str | None = None) -> Any:
        """Compare finished runs of the same jobs; the first one is the baseline."""
        return await answered("compare", runs=runs, baseline=baseline)

    async def list_runs(folder: str = ".") -> Any:
        """List the finished runs below a folder."""
        return await answered("list_runs", folder=folder)

    for tool in (simulate, forecast, what_if, explain, compare, list_runs):
        tool.__annotations__["return"] = result  # This makes the SDK return the answer unchanged.
        server.tool()(tool)
    return server


_ABOUT = (
    "Questions to harness, which simulates cluster schedulers. Paths must be below the folders that were "
    "named when the server was started; relative paths start from the first folder."
)


def _sdk(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError("serving tools needs the SDK of the protocol, mcp", hint=_INSTALL) from error
