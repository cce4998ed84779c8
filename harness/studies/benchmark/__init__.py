"""A benchmark for policies, with tasks whose files are fixed by checksums, and with scores."""
