"""Forecasts when waiting jobs will start: many futures of a live cluster, drawn from its history."""
