"""Elastic quotas: a tree of guarantees and bounds, what is lent of it, and Koordinator's runtimes."""
