"""Checks whether columns have the names of the schema."""

from __future__ import annotations

from collections.abc import Iterator

from harness.trace.lint.finding import Finding, Material
from harness.trace.misnamed import misnamed


def check(material: Material) -> Iterator[Finding]:
    """Finds columns outside the schema that have a name similar to a column of the schema."""
    for name, meant in misnamed(material.trace.frame.schema).items():
        yield Finding(
            "column-name",
            f"the column {name!r} is not in the schema, so policies do not see it",
            f"did you mean {meant!r}? rename the column; an unknown column is kept, but has no effect",
        )
