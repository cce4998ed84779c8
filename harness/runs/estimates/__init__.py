"""Estimates run times and future jobs from the facts that are known at a given time."""
