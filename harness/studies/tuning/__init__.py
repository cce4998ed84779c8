"""Tuning of parameters, with the search space, the search and the results."""
