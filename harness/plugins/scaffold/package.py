"""Writes the package of a plugin, which you can install, test and use immediately."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from harness.base.errors import PluginError
from harness.base.files.whole import whole_folder
from harness.base.names import LONGEST
from harness.plugins import Plugins

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_ENDING = ".tmpl"
_BLANK = re.compile(r"\{\{ (\w+) \}\}")
_COMMON = "package"
_DEVICES = frozenset(
    ("aux", "con", "nul", "prn", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)))
)
"""Names of devices in Windows, where no folder can have such a name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of package.

    Attributes:
        registry: the kind of registration.
        about: the package's description.
        use: the commands that use the installed package. `{name}` stands for its name and `{trace}` for a
            trace.
    """

    registry: str
    about: str
    use: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "policy": Kind(
        "policy",
        "A scheduling policy for harness that starts the smallest waiting job first.",
        ("harness replay {trace} --plugin none --plugin {name} --until 2d",),
    ),
    "reader": Kind(
        "reader",
        "A trace reader for harness that reads lines of text below a header.",
        (
            "harness trace convert tests/example.{name} example.parquet",
            "harness replay example.parquet --plugin none",
        ),
    ),
    "metric": Kind(
        "metric",
        "A metric for harness that measures the longest wait for a first start in each queue.",
        (
            "harness replay {trace} --plugin none --until 2d",
            "harness compare results/*/none-* --metric {name}.max",
        ),
    ),
    "section": Kind(
        "section",
        "A section for reports of harness that counts the jobs of each user.",
        ("harness replay {trace} --plugin none --until 2d", "harness report results/*/none-* -o report.md"),
    ),
}
"""Maps an option of `harness plugins new` to the kind of package that it writes."""


def new_package(parent: Path, name: str, kind: str, plugins: Plugins) -> Path:
    """Write the package of a plugin into a new folder with the plugin's name.

    Args:
        parent: the parent of the folder.
        name: the name of the plugin and of its registration.
        kind: one of `KINDS`.
        plugins: the installed plugins.

    Returns:
        The folder, which is either complete or absent.

    Raises:
        PluginError: the name is invalid or taken, or the folder already exists.
        OSError: the folder cannot be written.
    """
    folder = parent / name
    module = _checked(name, kind, plugins)
    if os.path.lexists(folder):
        raise PluginError(f"{folder} already exists", hint="choose another name or another folder")
    _check_import(name, module)
    blanks = {
        "name": name,
        "module": module,
        "about": KINDS[kind].about,
        "next": "\n".join(commands(name, kind, "TRACE.parquet")[1:]),
    }
    with whole_folder(folder) as new:
        for each in (_COMMON, kind):
            for parts, text in _templates(files("harness.plugins.scaffold") / "templates" / each):
                place = new.joinpath(*(part.replace("module", module) for part in parts[:-1]))
                place.mkdir(parents=True, exist_ok=True)
                last = parts[-1].removesuffix(_ENDING).replace("module", module).replace(".name", f".{name}")
                filled = _BLANK.sub(lambda blank: blanks[blank[1]], text)
                (place / last).write_text(filled, encoding="utf-8")
    return folder


def commands(name: str, kind: str, trace: str) -> list[str]:
    """Returns the next commands for a new package, as lines for a shell."""
    install = [f"cd {name}", "python -m pip install -e '.[test]'", "python -m pytest"]
    return install + [each.format(name=name, trace=trace) for each in KINDS[kind].use]


def _checked(name: str, kind: str, plugins: Plugins) -> str:
    """Returns the module's name, or raises an error if the plugin's name is invalid or taken."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        raise PluginError(
            f"{name!r} cannot be the name of a plugin",
            hint=f"use up to {LONGEST} lowercase letters and digits, with a letter first and - between "
            "words, such as least-slack",
        )
    registry = next(each for each in plugins.registries if each.kind == KINDS[kind].registry)
    owner = next((each.owner for each in registry if each.name == name), None)
    if owner is None:
        owner = next((info.name for info in plugins.found if info.name == name), None)
    if owner is None and kind == "reader":
        owner = next((each.owner for each in plugins.readers if f".{name}" in each.suffixes), None)
    if owner is not None:
        raise PluginError(
            f"the name {name!r} is taken by the plugin {owner}", hint="harness plugins lists all names"
        )
    return name.replace("-", "_")


def _check_import(name: str, module: str) -> None:
    """Check that the package can be installed, and that no other module has its name."""
    if iskeyword(module) or module in sys.stdlib_module_names or module == "pip":
        raise PluginError(f"{name!r} cannot be the name of a plugin, because Python uses it")
    if module in _DEVICES:
        raise PluginError(
            f"{name!r} cannot be the name of a plugin, because Windows reserves it for a device"
        )
    taken = f"a module {module}" if find_spec(module) is not None else None
    if taken is None and _is_installed(f"harness-{name}"):
        taken = f"a distribution harness-{name}"
    if taken is not None:
        raise PluginError(
            f"the name {name!r} is taken, because {taken} already exists",
            hint="choose another name, or uninstall it",
        )


def _is_installed(distribution: str) -> bool:
    try:
        metadata(distribution)
    except PackageNotFoundError:
        return False
    return True


def _templates(folder: Traversable, *above: str) -> Iterator[tuple[tuple[str, ...], str]]:
    for each in sorted(folder.iterdir(), key=lambda item: item.name):
        if each.is_dir():
            yield from _templates(each, *above, each.name)
        elif each.name.endswith(_ENDING):
            yield (*above, each.name), each.read_text(encoding="utf-8")
