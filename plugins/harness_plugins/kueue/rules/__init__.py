"""Kueue's rules, one concept of its documentation a module."""
