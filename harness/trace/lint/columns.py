"""Check whether columns have the names of the schema."""

from __future__ import annotations

from collections.abc import Iterator

from harness.trace.lint.finding import Finding, Material
from harness.trace.misnamed import misnamed


def check(material: Material) -> Iterator[Finding]:
    """Find columns outside the schema whose names nearly match a column of the schema."""
    for name, meant in misnamed(material.trace.frame.schema).items():
        yield Finding(
            "column-name",
            f"the column {name!r} is not in the schema, so no policy sees it",
            f"did you mean {meant!r}? rename it; an unknown column is kept, but has no effect",
        )
