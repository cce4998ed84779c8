"""A server of typed tools over stdio. A process answers each call and is killed at the time limit."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Signature, getdoc, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.base.errors import InputError
from harness.cli.tool_server.questions import TOOLS

_INSTALL = "pip install 'harness-replay[mcp]'"
_LARGEST_QUESTION = 2_000_000
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "SYSTEMROOT")
"""The environment variables that answering processes receive. None of them contains a secret."""


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

    for answer in TOOLS.values():
        server.tool(description=getdoc(answer))(_tool(answer, answered, result))
    return server


def _tool(answer: Callable[..., Any], answered: Callable[..., Any], result: type) -> Callable[..., Any]:
    """Returns the function of a tool, with the name and the parameters of `answer` except for the folders."""

    async def tool(**arguments: Any) -> Any:
        return await answered(answer.__name__, **arguments)

    tool.__name__ = answer.__name__
    _, *parameters = signature(answer, eval_str=True).parameters.values()
    # The return annotation makes the SDK return the answer unchanged.
    tool.__signature__ = Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    return tool


_ABOUT = (
    "Questions to harness, which simulates cluster schedulers. Paths must be below the folders that were "
    "named when the server was started; relative paths start from the first folder."
)


def _sdk(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError("serving tools needs the SDK of the protocol, mcp", hint=_INSTALL) from error
