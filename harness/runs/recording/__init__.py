"""Records a replay: converts the engine's reports to columns and writes them to Parquet tables."""
