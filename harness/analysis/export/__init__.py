"""Exports finished runs in the formats of other tools: traces for Perfetto, time series for Prometheus."""
