"""Job traces: their schema, reading, validation, and conversion to jobs."""
