"""Job traces: the schema, reading and validating them, and turning them into jobs."""
