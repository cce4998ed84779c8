"""`harness plugins` lists plugins and why some of them failed to load, and creates new plugins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

import click

from harness.base.options import Option, durations, option_text
from harness.base.text import aligned, folded, printable
from harness.cli.context import loaded_plugins
from harness.cli.group import Group
from harness.cli.plugins_new import new
from harness.cli.screen import terminal_width
from harness.plugins import PluginInfo, Plugins

_WIDTH = 100


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog="""\b
Examples:
  harness plugins
  harness plugins --json
  harness plugins --kueue-version v0.15
  harness plugins new least-slack""",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option(
    "--kueue-version", metavar="RELEASE",
    help="Print how decisions of this release of Kueue differ from the newest release that harness models.",
)  # fmt: skip
@click.pass_context
def plugins(ctx: click.Context, as_json: bool, kueue_version: str | None) -> None:
    """List plugins: their origin, the names and options that they register, and their load errors.

    The command `new` writes the package of a new plugin.
    """
    if ctx.invoked_subcommand is not None:
        if as_json or kueue_version is not None:
            raise click.UsageError("--json and --kueue-version belong to the list, not to its commands")
        return
    if kueue_version is not None:
        click.echo("\n".join(_of_release(kueue_version, as_json=as_json)))
        return
    loaded = loaded_plugins(ctx)
    click.echo(json.dumps(_document(loaded)) if as_json else "\n\n".join(_report(loaded)))


plugins.add_command(new)


def _report(loaded: Plugins) -> Iterator[str]:
    rows = [["plugin", "from", "version", "brings"]]
    for info in loaded.found:
        brings = f"broken: {info.error}" if info.error else _brings(loaded, info)
        rows.append([info.name, info.distribution or info.module, info.version or "-", brings])
    yield aligned(rows, left=range(4), width=terminal_width() or _WIDTH)
    entries: list[_Entry] = [
        (
            spec.name,
            spec.help + (" [clairvoyant: sees how long jobs run]" if spec.clairvoyant else ""),
            spec.options,
        )
        for spec in loaded.policies
    ]
    yield _section("policies (harness replay TRACE --plugin NAME --set KEY=VALUE)", entries)
    entries = [
        (spec.name, spec.help + (f" [{', '.join(spec.suffixes)}]" if spec.suffixes else ""), spec.options)
        for spec in loaded.readers
    ]
    yield _section("readers (harness trace convert IN OUT.parquet --reader NAME --set KEY=VALUE)", entries)
    entries = [(spec.name, f"read in {' and '.join(spec.how.versions)}", ()) for spec in loaded.kinds]
    yield _section("kinds of manifests (harness cluster check FILE)", entries)
    yield _section("metrics (of every run)", [(spec.name, spec.help, ()) for spec in loaded.metrics])
    yield _section(
        "sections (of every report)",
        [(spec.name, spec.help, ()) for spec in sorted(loaded.sections, key=lambda spec: spec.order)],
    )
    entries = [(spec.name, spec.help, ()) for spec in loaded.conformance]
    yield _section("components (harness conform FILE... --component NAME)", entries)


_WITHOUT_REGISTRY = ("harness_register_commands", "harness_replay_finished", "harness_replay_started")

_Entry: TypeAlias = tuple[str, str, tuple[Option, ...]]


def _section(head: str, entries: Iterable[_Entry]) -> str:
    lines = [head]
    for name, text, options in entries:
        lines += _folded(f"  {name}: {text}")
        for option in options:
            lines += _folded(f"    {_option(option)}")
    return "\n".join(lines)


def _folded(text: str) -> Iterator[str]:
    return folded([printable(text)], terminal_width() or _WIDTH)


def _brings(loaded: Plugins, info: PluginInfo) -> str:
    """Returns what a plugin brings, such as `reader parquet, swf; metric waiting`."""
    kinds = [
        (registry.kind, [spec.name for spec in registry if spec.owner == info.name])
        for registry in loaded.registries
    ]
    kinds.append(("hook", [hook for hook in info.hooks if hook in _WITHOUT_REGISTRY]))
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names) or "nothing"


def _option(option: Option) -> str:
    choices = f" ({' | '.join(option.choices)})" if option.choices else ""
    default = option_text(option.default, duration=bool(durations([option])))
    return f"{option.name}={default}{choices}: {option.help}"


def _document(loaded: Plugins) -> dict[str, Any]:
    def options(declared: tuple[Option, ...]) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "default": each.default, "choices": list(each.choices), "help": each.help}
            for each in declared
        ]

    def entry(spec: Any, *further: str) -> dict[str, Any]:
        return {"name": spec.name, "plugin": spec.owner, **{name: getattr(spec, name) for name in further}}

    return {
        "schema": "1",
        "plugins": [asdict(info) for info in loaded.found],
        "policies": [
            {**entry(spec, "help", "clairvoyant", "record"), "options": options(spec.options)}
            for spec in loaded.policies
        ],
        "readers": [
            {**entry(spec, "help", "suffixes"), "options": options(spec.options)} for spec in loaded.readers
        ],
        "kinds": [{**entry(spec), "versions": spec.how.versions} for spec in loaded.kinds],
        "metrics": [entry(spec, "help") for spec in loaded.metrics],
        "sections": [
            entry(spec, "title", "help") for spec in sorted(loaded.sections, key=lambda spec: spec.order)
        ],
    }


def _of_release(text: str, *, as_json: bool) -> Iterator[str]:
    """Yields the differences as sentences with links, and the gates that only one of the releases has."""
    from harness.cluster.kinds.kueue_differences import differences, gates_of_its_own, gates_that_it_lacks
    from harness.cluster.kinds.kueue_releases import NEWEST, release_named

    release = release_named(text)
    found, own, lacking = list(differences(release)), gates_of_its_own(release), gates_that_it_lacks(release)
    if as_json:
        yield json.dumps(
            {
                "kueue_version": str(release),
                "newest": str(NEWEST),
                "differences": [each._asdict() for each in found],
                "own_gates": own,
                "lacking_gates": lacking,
            }
        )
        return
    if not found:
        yield f"Kueue {release} decides like {NEWEST}, the newest recorded release."
    else:
        yield f"Kueue {release} decides differently from {NEWEST}, the newest recorded release:"
        for each in found:
            yield ""
            yield from _folded(f"- {each.sentence}")
            yield f"  {each.link}"
    for head, names in (
        (f"Gates that {NEWEST} does not have", own),
        (f"Gates that {release} does not have", lacking),
    ):
        if names:
            yield ""
            yield from _folded(f"{head}: {', '.join(names)}")
    if found:
        yield ""
        yield f"To replay it: --set kueueVersion={release}"
