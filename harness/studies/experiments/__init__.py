"""Experiments, which replay all combinations of factors, with their results and best settings."""
