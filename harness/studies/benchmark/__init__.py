"""A benchmark for policies: named tasks whose files are fixed by checksums, scores, and their checks."""
