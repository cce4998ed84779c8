"""Makes tables of events from observations of a cluster."""
