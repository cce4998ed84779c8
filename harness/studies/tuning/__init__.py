"""Tuning: the search space, the search, and its results."""
