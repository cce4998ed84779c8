"""Models elastic quotas: a tree of guarantees and limits, lent quantities, and Koordinator's runtimes."""
