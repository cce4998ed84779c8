"""Experiments: the factors, the replays, their results, and the best settings."""
