"""Elastic quotas: a tree of guarantees and limits, amounts that are lent, and Koordinator's runtimes."""
