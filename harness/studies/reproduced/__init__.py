"""Replays published results, and shows the published figures next to ours with the reasons of differences."""
