"""Answers recorded questions to Kueue's scheduler with the same code that replays use."""
