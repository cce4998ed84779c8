"""Studies that need many replays, such as twins, experiments, tuning and forecasts."""
