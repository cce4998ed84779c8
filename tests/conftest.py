"""What many tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from more_examples import examples
from pluggy import PluginManager

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # of tables so small, threads would wait for each other
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would each compile what they import

import polars as pl

import harness
import harness_plugins
from harness.runs import identity

sys.dont_write_bytecode = False  # and each worker would rewrite the asserts of all tests
gc.set_threshold(20_000, *gc.get_threshold()[1:])  # tests make much that stays for a while
settings.register_profile("harness", parent=examples(100))
settings.load_profile("harness")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With several workers (pytest-xdist), tests that share what is made once go to one of them."""
    if (told := getattr(config, "workerinput", None)) is not None:
        config.option.loadgroup = told["grouped"]
    elif config.getoption("numprocesses", None) and config.getoption("dist") == "no":
        config.option.dist = "loadgroup"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers name the groups, but read the command line only: they hear here what was chosen above."""
    node.workerinput["grouped"] = node.config.getoption("dist") == "loadgroup"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Forgets the groups that have ended, which pytest-xdist would count again after each of 8,000 tests."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Forgetful(LoadGroupScheduling):
        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            group = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][group].values()):
                del self.assigned_work[node][group]

    return Forgetful(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Groups those tests, and begins with what takes longest, so that no worker is left alone with it."""
    for item in items:
        if (shared := _shared(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(shared))
    items.sort(key=lambda item: item.get_closest_marker("early") is None)
    yield
    for item in items if config.getoption("loadgroup", False) else ():
        group = item.get_closest_marker("xdist_group")
        if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
            # pytest-xdist 3.8 writes the name of the group where pytest 9.2 does not read it
            item._id = type(item.id).parse(f"{item.nodeid}@{group.args[0]}")  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end, so the garbage collector looks at them no more.

    Hypothesis asks it who refers to the random generator of numpy, once, before the first example after
    numpy was imported.
    """
    import_module("numpy")
    given(st.none())(lambda nothing: None)()
    gc.freeze()


def _shared(item: pytest.Item) -> str | None:
    """The widest place, a folder or a file, whose tests share a fixture that this test asks for.

    What has the scope of the session is cheap, and made once in every worker.
    """
    info = getattr(item, "_fixtureinfo", None)
    asked = [found[-1] for found in info.name2fixturedefs.values()] if info is not None else []
    shared = [fixture.baseid for fixture in asked if fixture.scope in ("package", "module")]
    return min(shared, key=len, default=None)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Thousands of small runs need not survive a power failure; tests/faults runs commands that do wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def our_own_code_stays_as_it_is() -> Iterator[None]:
    """Of thousands of small runs each would look at hundreds of files several times; no test edits these.

    Code anywhere else is looked at as ever.
    """
    ours = tuple(f"{folder}{os.sep}" for module in (harness, harness_plugins) for folder in module.__path__)
    within, whole = identity._within, identity._whole
    within_ours = cache(within)
    codes: dict[Any, identity.Code] = {}
    parsed, plain = PluginManager.parse_hookimpl_opts, set[tuple[str, str]]()

    def within_once(folder: Path, apart: tuple[str, ...] = ()) -> dict[str, str]:
        return (within_ours if f"{folder}{os.sep}".startswith(ours) else within)(folder, apart)

    def whole_once(several: Sequence[Any], others: Sequence[Any] = ()) -> identity.Code:
        files = tuple((each.top, *each.paths.values()) for each in several)
        if others or not all(path.startswith(ours) for _, *paths in files for path in paths):
            return whole(several, others)
        if files not in codes:
            codes[files] = whole(several)
        return codes[files]

    def parsed_once(manager: PluginManager, plugin: object, name: str) -> Any:
        of_module = (getattr(plugin, "__file__", ""), name)
        if of_module in plain:
            return None
        found = parsed(manager, plugin, name)  # type: ignore[arg-type]
        if found is None and str(of_module[0]).startswith(ours):
            plain.add(of_module)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PluginManager, "parse_hookimpl_opts", parsed_once)
        patch.setattr(identity, "_within", within_once)
        patch.setattr(identity, "_whole", whole_once)
        yield


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows of a trace; times in seconds, columns that are not given have plain defaults."""

    def write(*rows: Mapping[str, Any], name: str = "trace.parquet") -> Path:
        full = [
            {
                "job_id": f"j{number}",
                "submit_time": 0,
                "duration": 10,
                "queue": "default",
                "request.cpu": 1000,
                **row,
            }
            for number, row in enumerate(rows)
        ]
        frame = pl.DataFrame(full, infer_schema_length=None)
        times = [
            name
            for name in ("submit_time", "duration", "grace_period", "checkpoint_interval", "startup")
            if name in frame.columns
        ]
        frame = frame.with_columns((pl.col(times) * 1_000_000).cast(pl.Duration("us")))
        casts = {"pods": pl.Int32, "min_pods": pl.Int32, "priority": pl.Int32}
        frame = frame.cast({name: dtype for name, dtype in casts.items() if name in frame.columns})
        path = tmp_path / name
        frame.write_parquet(path)
        return path

    return write


@pytest.fixture
def seconds() -> Callable[[float], timedelta]:
    """A time as the tables of a run have it."""
    return lambda number: timedelta(seconds=number)
