"""Elastic quotas: a tree of guarantees and bounds, the amounts lent from it, and Koordinator's runtimes."""
