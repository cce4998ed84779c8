"""Replays published results, and compares the published figures with those of harness."""
