"""The kinds of manifests: a reader for each kind, and the table of all kinds."""
