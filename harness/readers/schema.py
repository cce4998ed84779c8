"""The result of a reader, with rows in the columns of the schema, and skipped rows with their reasons."""

from harness.base.names import kubernetes_name
from harness.plugins.reading import Reading, leave_out
from harness.trace.rules import Rule, breaches
from harness.trace.schema import (
    CONVENTIONS_KEY,
    LEFT_OUT_KEY,
    LIMIT,
    REQUEST,
    VERSION,
    VERSION_KEY,
    Kind,
    column_of,
)

__all__ = [
    "CONVENTIONS_KEY", "LEFT_OUT_KEY", "LIMIT", "REQUEST", "VERSION", "VERSION_KEY", "Kind", "Reading",
    "Rule", "breaches", "column_of", "kubernetes_name", "leave_out",
]  # fmt: skip
