"""Represents amounts of quota by flavor-resource."""

from __future__ import annotations

Amounts = tuple[tuple[int, int], ...]
"""Pairs of a flavor-resource number and an amount. The numbers are in ascending order."""
