"""Benchmarks for asv: figures to track over time, in CPU-seconds or as ratios; never part of the tests."""
