"""Whether columns are called as in the schema."""

from __future__ import annotations

from collections.abc import Iterator

from harness.trace.lint.finding import Finding, Material
from harness.trace.misnamed import misnamed


def check(material: Material) -> Iterator[Finding]:
    """Further columns whose names are nearly those of the schema."""
    for name, meant in misnamed(material.trace.frame.schema).items():
        yield Finding(
            "column-name",
            f"the column {name!r} is not in the schema, so no policy sees it",
            f"did you mean {meant!r}? rename it; a further column is kept, and no more",
        )
