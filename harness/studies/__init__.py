"""Studies that need many replays: twins (slightly shifted arrivals), experiments, tuning and forecasts."""
