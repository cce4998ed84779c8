"""What is packaged, what it imports, and how fast it answers `--help`."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from package_imports import BESIDES, STABLE, internal_imports, is_stable

from harness.trace.bundled import BUNDLED

ROOT = Path(__file__).parents[1]
DATA = (
    "benchmark/suites/sched-1.0.yaml",
    "benchmark/suites/sched-1.0-nodes.csv",
    "benchmark/suites/sched-1.0-quota.csv",
    "reproduced/hpc2n_first5000_fcfs240_accasim_result.csv.gz",
)
"""Files that studies read, below `harness/studies`."""

PACKAGES = {"harness": ROOT / "harness", "harness_plugins": ROOT / "plugins" / "harness_plugins"}


def modules() -> dict[str, Path]:
    """Every module of the two packages, by name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            found[name] = path
    return found


def imported(path: Path, known: dict[str, Path], *, when_run: bool) -> set[str]:
    """The modules of ours that a file imports; with `when_run` only those that importing it runs."""
    found = set()
    for node in imports(path, when_run=when_run):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in known else node.module)
    return {name for name in found if name in known}


def imports(path: Path, *, when_run: bool) -> list[ast.Import | ast.ImportFrom]:
    """The statements that import something; none that only a type checker sees."""
    return [node for node, late in _imports(path) if not (late and when_run)]


@cache
def _imports(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The same, with whether each is in a function."""
    found = []
    within = list[tuple[ast.AST, bool]]([(ast.parse(path.read_text(encoding="utf-8")), False)])
    while within:
        node, late = within.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, late))
        test = node.test if isinstance(node, ast.If) else None
        if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
            late = late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            inner = (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
            within += ((each, late) for each in inner)
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of this checkout."""
    place = str(tmp_path_factory.mktemp("dist"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = Path(place).glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_exactly_the_two_packages(wheel: zipfile.ZipFile) -> None:
    """Nothing of tests or a folder called `plugins` lands in site-packages; traces lie within the package."""
    inside = wheel.namelist()
    names = {name.split("/")[0] for name in inside}
    assert {name for name in names if not name.endswith(".dist-info")} == {"harness", "harness_plugins"}
    assert "harness/py.typed" in inside
    assert {f"harness/trace/bundled/{name}.parquet" for name in BUNDLED} <= set(inside)
    assert "harness/trace/bundled/README.md" in inside
    assert "harness_plugins/py.typed" in inside
    templates = (ROOT / "harness" / "plugins" / "scaffold").rglob("*.tmpl")
    assert {path.relative_to(ROOT).as_posix() for path in templates} <= set(inside)
    assert {f"harness/analysis/report/page.{kind}" for kind in ("html", "css", "js")} <= set(inside)
    assert {f"harness/studies/{name}" for name in DATA} <= set(inside)


@pytest.fixture(scope="module")
def unpacked(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs Python in an empty folder, with what the wheel holds alone; answers what it prints."""
    place = tmp_path_factory.mktemp("unpacked")
    wheel.extractall(place / "site")
    environment = {**os.environ, "PYTHONPATH": str(place / "site")}

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=place, env=environment
        ).stdout

    return run


def test_the_wheel_holds_the_benchmark(unpacked: Callable[..., str]) -> None:
    """The suite's files have the sums that it names."""
    check = "from harness.studies.benchmark.suite import NEWEST, load_suite\n"
    check += "for task in load_suite(NEWEST).tasks.values():\n    task.check()\n"
    check += "import harness\nprint(harness.__file__)"
    assert "unpacked" in unpacked("-c", check)


@pytest.mark.slow
def test_the_wheel_runs_the_benchmark(unpacked: Callable[..., str]) -> None:
    """A task of it."""
    line = "-m harness bench run hpc2n -p none --twins 2 --workers 1"
    assert "hpc2n" in unpacked(*line.split())


def test_built_in_plugins_and_examples_import_stable_names_only() -> None:
    """They use nothing that a third party could not rely on."""
    files = [path for name, path in modules().items() if name.startswith("harness_plugins")]
    files += sorted((ROOT / "docs" / "examples").rglob("*.py"))
    assert len(files) > 80
    assert {str(path): found for path in files if (found := internal_imports(path))} == {}


KUBE = frozenset({"auto", "elastic_quota", "kube", "kube_scheduler", "none"})
"""Plugins that offer kube-scheduler, with gangs as elastic quotas place them."""


def test_built_in_plugins_do_not_build_on_each_other() -> None:
    """What several of them share is in a room of `harness`, where a third party finds it too."""
    known = {name: path for name, path in modules().items() if name.startswith("harness_plugins.")}
    for name, path in known.items():
        own = name.split(".")[1]
        theirs = {each.split(".")[1] for each in imported(path, known, when_run=False)}
        assert theirs <= (KUBE if own in KUBE else {own}), f"{path} imports {theirs}"


def test_the_page_about_stability_names_the_rooms_that_stay() -> None:
    """The page and the test mean the same."""
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE) == ["harness", *STABLE]
    beside = page.split("The following modules are also stable", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"`(harness[\w.]+)`", beside)) == BESIDES


def test_what_a_stable_room_exports_is_there() -> None:
    """Every name of an `__all__`."""
    names = [name for name in modules() if is_stable(name, "x") and name != "harness"]
    for name in names:
        module = import_module(name)
        assert all(hasattr(module, each) for each in getattr(module, "__all__", ())), name


def test_harness_does_not_import_its_plugins() -> None:
    """The core knows no built-in plugin by name."""
    known = modules()
    for name, path in known.items():
        if name.split(".")[0] == "harness":
            theirs = {
                each for each in imported(path, known, when_run=False) if each.startswith("harness_plugins")
            }
            assert not theirs, f"{path} imports {theirs}"


def test_the_import_graph_has_no_cycles() -> None:
    """Modules build on each other in one direction."""
    known = modules()
    graph = {name: imported(path, known, when_run=True) - {name} for name, path in known.items()}
    list(TopologicalSorter(graph).static_order())


KUEUE = "harness_plugins.kueue."
PUT_TOGETHER = {f"{KUEUE}{each}" for each in ("factory", "machinery", "scheduler")} | {
    "harness_plugins.elastic_quota.scheduler"
}
"""The modules that put rules and shortcuts together."""


def test_no_rule_of_any_plugin_imports_a_shortcut() -> None:
    """Rules and state read as if nothing were ever kept; shortcuts are put before them from outside."""
    known = modules()
    asking = {
        name
        for name, path in known.items()
        if name.startswith("harness_plugins.") and ".shortcuts" not in name and ".conformance." not in name
        for each in imported(path, known, when_run=False)
        if ".shortcuts" in each
    }
    assert asking == PUT_TOGETHER


def test_state_of_kueue_does_not_import_rules() -> None:
    """What is there knows nothing of what is decided by it."""
    known = modules()
    for name, path in known.items():
        if name.startswith(f"{KUEUE}state"):
            theirs = imported(path, known, when_run=False)
            assert not {each for each in theirs if each.startswith(f"{KUEUE}rules")}, path


def test_the_types_of_kueue_have_no_cycles() -> None:
    """Nor do imports for the type checker alone run in circles."""
    known = {name: path for name, path in modules().items() if name.startswith(KUEUE)}
    graph = {name: imported(path, known, when_run=False) - {name} for name, path in known.items()}
    list(TopologicalSorter(graph).static_order())


DUMP = str(ROOT / "docs" / "examples" / "live.json.gz")
HELP = [["--help"], ["replay", "--help"], ["compare", "--help"], ["--version"]]


@pytest.mark.parametrize("command", [*HELP, ["simulate", "--cluster", DUMP]])
def test_light_commands_load_nothing_heavy(command: list[str]) -> None:
    """They import neither polars nor pyarrow, which take longer than everything else together."""
    script = (
        "import sys\nfrom harness.cli import main\n"
        f"try:\n    main({command!r})\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = {'polars', 'pyarrow', 'numpy', 'altair'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


_UNUSED = {
    *("scipy", "pandas", "altair", "asyncio", "pyarrow.compute", "pyarrow.dataset", "numpy.ma"),
    *("gzip", "harness.trace.shake"),
    *(
        "harness.studies.experiments",
        "harness.analysis.explanation",
        "harness.analysis.comparison.conditions",
        "harness.analysis.report.blocks",
    ),
    *("harness.cluster.slurm.nodes", "multiprocessing.connection"),
}


def test_a_replay_loads_nothing_that_it_does_not_use(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Of one plugin: what checks conditions, draws, tunes or runs functions of arrow costs others nothing."""
    script = (
        # An older numpy imports all of itself.
        f"import sys, numpy\nunused = {_UNUSED} - set(sys.modules)\n"
        "from harness.cli import main\n"
        f"try:\n    main(['replay', {str(write_trace({}))!r}, '-p', 'none', '-o', {str(tmp_path)!r}])\n"
        "except SystemExit as stop:\n    assert not stop.code\n"
        "unused &= set(sys.modules)\nassert not unused, unused\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_oldest_set_is_exactly_the_lower_bounds() -> None:
    """CI runs on tests/oldest.txt, so that every `>=` of pyproject.toml is a promise that was tried."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        asked += [each for each in extra if not each.startswith(f"{project['name']}[")]
    assert all(re.fullmatch(r"[\w-]+>=[\d.]+", each) for each in asked), "just one lower bound for each"
    pinned = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in pinned if not line.startswith("#")] == [
        each.replace(">=", "==") for each in asked
    ]
