"""Elastic quotas: a tree of guarantees and limits, the lent amounts, and Koordinator's runtime quotas."""
