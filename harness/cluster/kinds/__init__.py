"""Reads the kinds of manifests. There is one reader for each kind, and a table of all kinds."""
