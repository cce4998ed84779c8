"""Keeps the scheduler's state: workloads with and without quota, LocalQueue usage, and topology capacity."""
