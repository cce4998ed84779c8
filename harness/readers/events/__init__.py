"""Creates event tables from observations of a cluster."""
