"""Recording of a replay: turns the engine's reports into columns, and writes them to Parquet tables."""
