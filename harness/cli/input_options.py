"""Refuses an option for an input file that is given twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


def _only(ctx: click.Context, param: click.Parameter, values: Sequence[Any]) -> Any:
    if len(values) > 1:
        several = "; separate paths by commas" if param.opts[0] == "--cluster" else ""
        said = f"{param.opts[0]} is given {len(values)} times, but has one value{several}"
        raise click.UsageError(said, ctx)
    return values[0] if values else None


ONCE: Mapping[str, Any] = {"multiple": True, "callback": _only}
"""Arguments of `click.option` for an input file that is refused if it is given twice.

Otherwise, click would ignore the first file, although other commands accept several files in this way. Of
options that are no input, such as a plugin or a limit, the last value counts, as in most programs.
"""
