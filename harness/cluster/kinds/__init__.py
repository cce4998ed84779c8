"""The kinds of manifests: a reader a kind, and the table of them all."""
