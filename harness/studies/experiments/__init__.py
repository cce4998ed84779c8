"""Many replays as one thing: what varies, who makes them, what came of it, and what is best."""
