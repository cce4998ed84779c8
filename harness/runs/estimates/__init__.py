"""Estimates of run times and of future jobs, from what is known at a moment."""
