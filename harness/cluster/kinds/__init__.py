"""The kinds of manifests: one reader for each kind, and the table of all kinds."""
