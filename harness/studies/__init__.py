"""Many replays as one thing: twins, experiments, tuning and forecasts."""
