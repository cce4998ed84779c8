"""Recorded questions to Kueue's scheduler, answered with the same code that replays use."""
