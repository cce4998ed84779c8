"""Answers recorded cases of Kueue's scheduler with the same code that replays use."""
