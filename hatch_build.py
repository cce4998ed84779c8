"""Compiles policies, models and the engine where `HARNESS_COMPILE=1` is set while a wheel is built.

Without this variable, the hook does nothing, and the build needs no compiler. A compiled wheel contains every
source file of a plain wheel. For some of these files, it also contains an extension module made by mypyc.
Python imports the extension module instead of the source file.

We don't use hatch-mypyc for three reasons. It supports only one folder of sources, but we have two. While it
runs, it moves `pyproject.toml` away, which contains mypy's settings. It also leaves extension modules in the
checkout, and Python would import them there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAG = "HARNESS_COMPILE"
PACKAGES = ("harness", "plugins/harness_plugins")
_PLAIN = f"or unset {FLAG}. The plain build makes the same decisions and needs no compiler"
_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup
from pybind11.setup_helpers import ParallelCompile  # after setuptools, whose compilers it makes use all cores

ParallelCompile(default=0).install()
compiled = mypycify({arguments!r}, group_name="harness._native", multi_file=True, debug_level="0")
for each in compiled:  # mypyc 2.4.1 puts the headers of a group with a dot in its name there
    each.include_dirs.append("build/harness")
    each.extra_compile_args.append("-fvisibility=hidden")  # calls within the group need no symbol table
setup(name="compiled", packages=[], ext_modules=compiled)
"""


class CompiledModules(BuildHookInterface[Any]):
    """Adds extension modules to a compiled wheel."""

    def dependencies(self) -> list[str]:
        """Returns the packages that compile modules, if a compiled wheel is wanted."""
        return self.config["compilers"] if _wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles the modules that `pyproject.toml` lists, and adds them to the wheel.

        An editable installation stays plain, because its source files change.
        """
        if not _wanted():
            return
        if version != "standard":
            self.app.display_warning(f"{FLAG} has no effect: an editable installation is always plain")
            return
        lack = _what_is_missing()
        if lack:
            self.app.abort(f"{FLAG}={os.environ[FLAG]} requests a compiled build, but {lack}, {_PLAIN}.")
        self._scratch = TemporaryDirectory()
        scratch, root = Path(self._scratch.name), Path(self.root)
        for package in PACKAGES:
            ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
            shutil.copytree(root / package, scratch / package, ignore=ignored)
        modules = compiled_modules(scratch, self.config)
        # Modules may need libraries that only some installations have, and that the build doesn't have.
        options = ["--follow-imports=silent", "--ignore-missing-imports"]
        arguments = ["--config-file", str(root / "pyproject.toml"), *options, *modules]
        (scratch / "setup.py").write_text(_SETUP.format(arguments=arguments), encoding="utf-8")
        self.app.display_waiting(f"compiling {len(modules)} modules, which takes a few minutes")
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", "lib"]
        if subprocess.run(command, cwd=scratch, check=False, stdout=sys.stderr).returncode:  # noqa: S603
            self.app.abort(f"mypyc could not compile the modules. Fix the error above, {_PLAIN}.")
        lib = scratch / "lib"
        (lib / "harness" / "compiled.json").write_text(json.dumps(_sums(scratch, modules), indent=1))
        for path in lib.rglob("*"):
            if path.is_file():
                build_data["force_include"][str(path)] = path.relative_to(lib).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the files that only the build needed."""
        if _wanted() and version == "standard":
            self._scratch.cleanup()


def compiled_modules(root: Path, config: dict[str, Any]) -> list[str]:
    """Returns the files that a compiled build compiles, as paths within a checkout.

    Args:
        root: the checkout.
        config: the table of the hook in `pyproject.toml`, with the patterns `include` and `exclude`.
    """
    wanted = {path for pattern in config["include"] for path in root.glob(pattern)}
    plain = {path for pattern in config["exclude"] for path in root.glob(pattern)}
    return sorted(path.relative_to(root).as_posix() for path in wanted - plain)


def _wanted() -> bool:
    return os.environ.get(FLAG, "") not in ("", "0")


def _what_is_missing() -> str:
    """Returns what this machine lacks to compile, and how to get it, or "" if nothing is missing."""
    for name in ("mypyc", "pybind11", "setuptools"):
        if find_spec(name) is None:
            return f"there is no {name} for {sys.executable}. Build with isolation (pip's default)"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        how = "Debian: apt-get install gcc; macOS: xcode-select --install"
        return f"there is no C compiler ({compiler}). Install one ({how})"
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.is_file():
        how = "Debian: apt-get install python3-dev"
        return f"there are no headers of Python ({header}). Install them ({how})"
    return ""


def _sums(root: Path, modules: list[str]) -> dict[str, dict[str, str]]:
    """Returns the checksum of each compiled file, by package and file. Runs identify their code by them."""
    found: dict[str, dict[str, str]] = {}
    for package in PACKAGES:
        files = {
            name.removeprefix(f"{package}/"): root / name for name in modules if name.startswith(package)
        }
        found[Path(package).name] = {
            name: blake2b(path.read_bytes()).hexdigest() for name, path in files.items()
        }
    return found
