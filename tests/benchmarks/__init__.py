"""Benchmarks for asv: figures to track over time, in CPU-seconds or as ratios; run by hand, never in tests."""
