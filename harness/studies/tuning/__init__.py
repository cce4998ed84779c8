"""Tuning: what is searched for, how it is searched, and what was found."""
