"""Kueue's rules, one concept of its documentation per module."""
