"""Forecasts when waiting jobs will start, from many simulated futures of a live cluster."""
