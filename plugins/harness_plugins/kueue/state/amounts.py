"""Amounts of quota by flavor-resource."""

from __future__ import annotations

Amounts = tuple[tuple[int, int], ...]
"""Amounts by number of a flavor-resource, in ascending order of the numbers."""
