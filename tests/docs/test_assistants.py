"""The page of assistants: each tool call on it is answered, and no tool is left out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness.cli.tool_server.folders import Folders
from harness.cli.tool_server.questions import TOOLS
from harness.plugins import load

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/assistants.md"


def calls() -> Iterator[dict[str, Any]]:
    """The tool calls of the page."""
    decoder = json.JSONDecoder()
    for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        at = 0
        while at < len(block):
            value, at = decoder.raw_decode(block, at)
            at += 1
            if "name" in value:
                yield value


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """A folder with the files of the page: a dump, and a short trace with two runs of it."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copy(ROOT / "docs/examples/live.json.gz", folder)
    shutil.copy(ROOT / "traces/mix.cluster.yaml", folder)
    trace = folder / "mix.parquet"
    pl.read_parquet(ROOT / "traces/mix.parquet").head(60).write_parquet(trace)
    for plugin in ("kueue-classic", "none"):
        run = harness.replay(
            trace, plugin=plugin, output=folder / "made", plugins=load(block=["metrics"]), label=plugin
        )
        shutil.copytree(run.path, folder / "mix" / plugin)
    shutil.rmtree(folder / "made")
    return Folders([folder])


@pytest.mark.parametrize("call", [pytest.param(each, id=each["name"]) for each in calls()])
def test_the_calls_of_the_page_are_answered(call: dict[str, Any], folders: Folders) -> None:
    """With text and a document."""
    found = TOOLS[call["name"]](folders, **call["arguments"])
    assert found.text
    json.dumps(found.document)


def test_the_page_calls_every_tool() -> None:
    """Once each."""
    assert sorted(each["name"] for each in calls()) == sorted(TOOLS)
