"""Plans replays, carries them out, and stores their results as folders of tables."""
