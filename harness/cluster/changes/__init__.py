"""Changes a cluster: sets single numbers in its manifests (knobs), applies patches, and scales it."""
