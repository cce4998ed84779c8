"""Plugins of somebody else's, installed with pip into an environment of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.plugins.scaffold.package import KINDS, commands

ROOT = Path(__file__).parents[1]
VOLCANO = ROOT / "docs" / "examples" / "volcano_proportion"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Installs a package; answers the environment's Python, which can import what is installed here too."""
    environment = tmp_path_factory.mktemp("environment")
    python = environment / "bin" / "python"
    lent = find_spec("pip") is not None  # to unpack another one takes seconds
    venv.create(environment, system_site_packages=False, with_pip=not lent)
    pip = [sys.executable, "-m", "pip", "--python", python] if lent else [python, "-m", "pip"]
    site = next((environment / "lib").glob("python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in ours))
    script = environment / "bin" / "harness"
    script.write_text(f"#!{python}\nfrom harness.cli import main\nmain()\n")
    script.chmod(0o755)

    def install(package: Path) -> Path:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps"]
        if find_spec("hatchling") is not None:
            options += ["--no-build-isolation", "--no-index"]  # without asking an index of packages
        subprocess.run([*pip, "install", *options, str(package)], check=True)
        return python

    return install


def ran(*command: str | Path, where: Path) -> str:
    """What a command printed; it must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=where)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_of_the_plugin_guide_works_when_it_is_installed(
    installed: Callable[[Path], Path], tmp_path: Path, write_trace: Callable[..., Path]
) -> None:
    """The guide's policy is listed and replays."""
    blocks = (ROOT / "plugins" / "README.md").read_text().split("```")
    source = next(block for block in blocks if block.startswith("python\n")).removeprefix("python\n")
    project = next(block for block in blocks if block.startswith("toml\n")).removeprefix("toml\n")
    package = tmp_path / "package"
    package.mkdir()
    (package / "shortest.py").write_text(source)
    (package / "pyproject.toml").write_text(project)
    python = installed(package)
    trace = write_trace({"request.cpu": 4000}, {"request.cpu": 3000}, {"request.cpu": 1000})
    command = [python, "-m", "harness", "replay", trace, "-p", "none", "-p", "smallest-first"]
    command += ["--set", "smallest-first.least=2000", "-o", tmp_path / "results", "-q"]
    assert "smallest-first" in ran(*command, where=tmp_path)


_CHECKED = """
import sys
from pathlib import Path
import harness
from harness.models.manifests import load_cluster
from harness.plugins import load
from harness.testing.checks import check_run
from harness.trace.trace import open_trace
trace, cluster, output = sys.argv[1:]
made = load_cluster(Path(cluster))
run = harness.replay(trace, plugin="volcano-proportion", cluster=made, until="40h", output=output)
broken = check_run(run, made, open_trace(Path(trace), load()), rules=["placement"])
assert not broken, broken
assert "Reclaimed" in run.decisions["reason"].to_list(), "the excerpt is to have reclaims"
"""


@pytest.mark.slow
def test_the_approximation_of_volcano_works_when_it_is_installed(
    installed: Callable[[Path], Path], tmp_path: Path
) -> None:
    """Its kind is checked, its own tests pass, and a run of an excerpt keeps to what holds of every run."""
    python = installed(VOLCANO)
    cluster = f"{ROOT / 'traces' / 'mix.cluster.yaml'},{VOLCANO / 'queues.yaml'}"
    assert "4 Queues" in ran(python, "-m", "harness", "cluster", "check", cluster, where=tmp_path)
    own = [VOLCANO / "tests", "-q", "-c", VOLCANO / "pyproject.toml", "-p", "no:cacheprovider"]
    assert re.search(r"\d passed", ran(python, "-m", "pytest", *own, where=tmp_path))
    script = [_CHECKED, ROOT / "traces" / "mix.parquet", cluster, tmp_path / "results"]
    ran(python, "-c", *script, where=tmp_path)


def test_the_approximation_of_volcano_is_short() -> None:
    """A policy with queues, gangs and reclaim is 250 lines, blank ones not counted, on the public models.

    What makes its Queues of Kueue's ClusterQueues does not count, and conversion is at most 30 lines.
    """

    def lines(*paths: Path) -> int:
        return sum(bool(line.strip()) for path in paths for line in path.read_text("utf-8").splitlines())

    sources = VOLCANO / "src" / "volcano_proportion"
    apart = {sources / "cluster_queues.py", sources / "conversion.py"}
    assert lines(*{*sources.rglob("*.py")} - apart) <= 250
    assert lines(sources / "conversion.py") <= 30


SHOWN = {
    "policy": "tiny-first",
    "reader": "wait.first_start.p50",
    "metric": "slowest.max",
    "section": "Who submits",
}
"""What is to be seen when a package of `harness plugins new` is used."""
NAMES = {"policy": "tiny-first", "reader": "our-log", "metric": "slowest", "section": "who"}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(each, marks=pytest.mark.slow if number else pytest.mark.nightly)
        for number, each in enumerate(KINDS)
    ],
)
def test_a_new_package_works_as_it_is(kind: str, installed: Callable[[Path], Path], tmp_path: Path) -> None:
    """It is installed, its own tests pass, and the commands that were printed use it."""
    name, trace = NAMES[kind], ROOT / "traces" / "mix.parquet"
    assert name in ran(sys.executable, "-m", "harness", "plugins", "new", name, f"--{kind}", where=tmp_path)
    here = tmp_path / name
    path = f"{installed(here).parent}{os.pathsep}{os.environ['PATH']}"
    change, install, tests, *uses = commands(name, kind, str(trace))
    assert [change, install] == [f"cd {name}", "python -m pip install -e '.[test]'"]
    shown = ""
    for line in (f"{tests} -q -p no:cacheprovider", *uses):
        done = subprocess.run(
            ["bash", "-c", line], cwd=here, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        shown += done.stdout
    assert " passed" in shown
    assert SHOWN[kind] in shown + "".join(page.read_text() for page in here.glob("report.md"))
