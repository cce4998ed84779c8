"""Computes the results of recorded Kueue scheduler cases with the same code that replays use."""
