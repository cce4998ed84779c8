"""Plans replays, carries them out, and stores them as folders of tables."""
