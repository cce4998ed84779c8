"""Experiments, with their factors, replays, results and best settings."""
