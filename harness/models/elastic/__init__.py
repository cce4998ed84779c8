"""Elastic quotas: a tree of guarantees and limits, quantities that are lent, and Koordinator's runtimes."""
