"""The compiled build: what it compiles, what stays plain, and what is said where it cannot be made."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from copy import copy
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_args
from weakref import ref

import pytest
from package_imports import is_stable

import harness
from harness.base.build import compiled_sources, is_compiled
from harness.base.memo import Memo
from harness.cli import main
from harness.models.quota import QuotaTree
from harness.policy import Decision
from harness.runs.identity import code_of_harness

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HOOK = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """`hatch_build.py`, which is in no package."""
    pytest.importorskip("hatchling", reason="no hatchling: pip install -e '.[test]'")
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hook(build: ModuleType, tmp_path: Path) -> Callable[..., Any]:
    """Makes the hook as hatchling does, with its settings or others."""
    from hatchling.bridge.app import Application

    def make(**other: Any) -> Any:
        config, app = HOOK | other, Application()
        return build.CompiledModules(str(ROOT), config, None, None, str(tmp_path), "wheel", app)

    return make


def compiled(build: ModuleType) -> list[Path]:
    """The files that a compiled build compiles."""
    return [ROOT / name for name in build.compiled_modules(ROOT, HOOK)]


def test_every_pattern_names_something() -> None:
    """What was renamed would else no longer be compiled, or left out, and nobody would know."""
    for pattern in (*HOOK["include"], *HOOK["exclude"]):
        assert any(ROOT.glob(pattern)), pattern


def test_the_border_to_plugins_stays_plain(build: ModuleType) -> None:
    """What policies of others make is plain: decisions and jobs; so is what names errors and stores texts."""
    rooms = {path.relative_to(ROOT).as_posix() for path in compiled(build)}
    assert len(rooms) > 120
    harness = [f"harness/{room}" for room in ("base/memo.py", "engine/", "models/", "runs/recording/")]
    ours = (*harness, "plugins/harness_plugins/")
    assert all(name.startswith(ours) for name in rooms)
    assert not rooms & {f"harness/engine/{name}.py" for name in ("blame", "events", "texts")}


def test_the_referee_reads_decisions_without_their_types() -> None:
    """Else compiled code would refuse a field of a wrong type before the referee sees it."""
    source = ast.parse((ROOT / "harness/engine/referee.py").read_text(encoding="utf-8"))
    types = {each.__name__ for each in get_args(Decision)}
    named = {
        ast.unparse(each.annotation)
        for node in ast.walk(source)
        if isinstance(node, ast.FunctionDef)
        for each in node.args.args
        if each.annotation is not None
    }
    assert "Given" in named
    assert not named & types


def test_what_cannot_be_compiled_stays_plain(build: ModuleType) -> None:
    """Functions that pluggy marks, and objects that are held weakly."""
    entries = PROJECT["project"]["entry-points"]["harness"].values()
    entry_points = {f"{each.replace('.', '/')}{end}" for each in entries for end in (".py", "/__init__.py")}
    for path in compiled(build):
        assert not re.search(r"hookimpl|hookspec|__weakref__", path.read_text(encoding="utf-8")), path
        assert path.relative_to(ROOT).as_posix().removeprefix("plugins/") not in entry_points


def test_nobody_may_inherit_from_what_is_compiled(build: ModuleType) -> None:
    """A class in Python cannot inherit from a compiled one, so those that others can name are final."""
    for path in compiled(build):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and is_stable(module, node.name):
                marks = {ast.unparse(each) for each in node.decorator_list}
                bases = {ast.unparse(each) for each in node.bases}
                assert "final" in marks or bases & {"NamedTuple", "Protocol", "Enum"}, f"{module}.{node.name}"


def test_which_build_runs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It is the compiled one where extension modules lie in the package."""
    package = Path(harness.__file__).parent / "models"
    lie_there = any(path.name.endswith(tuple(EXTENSION_SUFFIXES)) for path in package.iterdir())
    assert is_compiled() == lie_there
    with pytest.raises(SystemExit):
        main(["--version"])
    told = capsys.readouterr().out
    assert re.fullmatch(r"harness, version \S+(, compiled)?\n", told)
    assert (", compiled" in told) == lie_there


@pytest.mark.skipif(not is_compiled(), reason="the build that is installed is the plain one")
def test_what_differs_in_the_compiled_build() -> None:
    """As docs/compiled.md says; and the sources are there, and are those that were compiled."""
    many: Any = "many"
    with pytest.raises(TypeError, match="int object expected; got str"):
        Memo(many)
    with pytest.raises(TypeError, match="missing required argument"):
        copy(QuotaTree({}, {}))
    with pytest.raises(TypeError, match="weak reference"):
        ref(QuotaTree({}, {}))
    mine: Any = type("Mine", (QuotaTree,), {})
    with pytest.raises(TypeError, match="cannot inherit"):
        mine({}, {})
    assert code_of_harness().unknown == ""
    assert len(compiled_sources()["harness"]) > 30


@pytest.mark.parametrize("value", [None, "", "0"])
def test_who_does_not_ask_for_it_needs_nothing_more(
    value: str | None, hook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No compiler, no package, and the wheel is a plain one."""
    monkeypatch.delenv("HARNESS_COMPILE", raising=False)
    if value is not None:
        monkeypatch.setenv("HARNESS_COMPILE", value)
    monkeypatch.setenv("CC", "/nowhere/cc")
    build_data: dict[str, Any] = {}
    assert hook().dependencies() == []
    hook().initialize("standard", build_data)
    assert build_data == {}


def test_without_a_compiler_it_is_said_what_to_do(
    hook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, before anything is done."""
    monkeypatch.setenv("HARNESS_COMPILE", "1")
    monkeypatch.setenv("CC", "/nowhere/cc -pthread")
    with pytest.raises(SystemExit) as ended:
        hook().initialize("standard", {})
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("HARNESS_COMPILE=1 requests a compiled build, but there is no ")
    assert "or unset HARNESS_COMPILE. The plain build makes the same decisions and needs no compiler." in said


def test_an_editable_installation_stays_plain(
    hook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are there to be changed."""
    monkeypatch.setenv("HARNESS_COMPILE", "1")
    build_data: dict[str, Any] = {}
    hook().initialize("editable", build_data)
    assert build_data == {}
    assert "an editable installation is always plain" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_compiled_is_imported(
    build: ModuleType, hook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One module, which takes a minute or two; `scripts/ci/compiled.sh` compiles and tests all."""
    monkeypatch.delenv("CC", raising=False)
    lack = build._what_is_missing()
    if lack:
        pytest.skip(f"nothing can be compiled here: {lack}")
    monkeypatch.setenv("HARNESS_COMPILE", "1")
    build_data: dict[str, Any] = {"force_include": {}}
    making = hook(include=["harness/base/memo.py"], exclude=[])
    making.initialize("standard", build_data)
    for path, inside in build_data["force_include"].items():
        place = tmp_path / "site" / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(path).read_bytes())
    making.finalize("standard", build_data, "")
    assert (build_data["pure_python"], build_data["infer_tag"]) == (False, True)
    (tmp_path / "site" / "harness" / "__init__.py").touch()
    asked = "from harness.base import memo; kept = memo.Memo(2); kept[1] = 2; print(memo.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path / "site", capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip().endswith(tuple(EXTENSION_SUFFIXES))
    assert (tmp_path / "site" / "harness" / "compiled.json").is_file()
