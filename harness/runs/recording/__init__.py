"""What happened in a replay, as columns: the engine's reports, chunk by chunk, to Parquet tables."""
