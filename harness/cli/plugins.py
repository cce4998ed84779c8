"""`harness plugins`: what is installed, what it brings, and why something failed to load."""

from __future__ import annotations

import json
from typing import Any

import click

from harness.cli.context import loaded_plugins
from harness.options import Option
from harness.plugins import Plugins
from harness.text import aligned, printable


@click.command(
    epilog="""\b
Examples:
  harness plugins
  harness plugins --json"""
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.pass_context
def plugins(ctx: click.Context, as_json: bool) -> None:
    """List plugins: where they come from, what they register with which options, and which are broken."""
    loaded = loaded_plugins(ctx)
    if as_json:
        click.echo(json.dumps(_document(loaded), ensure_ascii=False))
        return
    rows = [["plugin", "from", "version", "brings"]]
    for info in loaded.found:
        brings = f"broken: {info.error}" if info.error else ", ".join(_brings(loaded, info.name)) or "nothing"
        rows.append([info.name, info.distribution or info.module, info.version or "-", brings])
    # The last column is prose, so only the others are aligned.
    table = aligned([row[:-1] for row in rows]).split("\n")
    heads = [rows[0][-1], "─" * len(rows[0][-1]), *(row[-1] for row in rows[1:])]
    width = max(len(line) for line in table)
    click.echo(
        "\n".join(f"{line:<{width}}  {printable(last)}" for line, last in zip(table, heads, strict=True))
    )
    click.echo("\npolicies (harness replay --plugin NAME)")
    for policy in loaded.policies:
        clairvoyant = " [clairvoyant: sees how long jobs run]" if policy.clairvoyant else ""
        click.echo(f"  {policy.name}: {policy.help}{clairvoyant}")
        for option in policy.options:
            click.echo(f"    {_option(option)}")
    click.echo("\nreaders (harness trace convert --reader NAME)")
    for reader in loaded.readers:
        suffixes = f" [{', '.join(reader.suffixes)}]" if reader.suffixes else ""
        click.echo(f"  {reader.name}: {reader.help}{suffixes}")
        for option in reader.options:
            click.echo(f"    {_option(option)}")
    click.echo("\nmetrics")
    for metric in loaded.metrics:
        click.echo(f"  {metric.name}: {metric.help}")


def _brings(loaded: Plugins, owner: str) -> list[str]:
    return [
        f"{registry.kind} {spec.name}"
        for registry in (loaded.policies, loaded.readers, loaded.metrics, loaded.conformance)
        for spec in registry
        if spec.owner == owner
    ]


def _option(option: Option) -> str:
    choices = f" ({' | '.join(option.choices)})" if option.choices else ""
    default = str(option.default).lower() if isinstance(option.default, bool) else option.default
    return f"{option.name}={default}{choices}: {option.help}"


def _document(loaded: Plugins) -> dict[str, Any]:
    def options(declared: tuple[Option, ...]) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "default": each.default, "choices": list(each.choices), "help": each.help}
            for each in declared
        ]

    return {
        "schema": "1",
        "plugins": [
            {
                "name": info.name,
                "module": info.module,
                "distribution": info.distribution,
                "version": info.version,
                "hooks": list(info.hooks),
                "error": info.error,
            }
            for info in loaded.found
        ],
        "policies": [
            {
                "name": spec.name,
                "plugin": spec.owner,
                "help": spec.help,
                "clairvoyant": spec.clairvoyant,
                "options": options(spec.options),
            }
            for spec in loaded.policies
        ],
        "readers": [
            {
                "name": spec.name,
                "plugin": spec.owner,
                "help": spec.help,
                "suffixes": list(spec.suffixes),
                "options": options(spec.options),
            }
            for spec in loaded.readers
        ],
        "metrics": [{"name": spec.name, "plugin": spec.owner, "help": spec.help} for spec in loaded.metrics],
    }
