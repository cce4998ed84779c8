"""Estimates run times and future jobs from the facts known at a moment."""
