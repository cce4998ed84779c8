"""Studies that need many replays: twins, experiments, tuning and forecasts."""
