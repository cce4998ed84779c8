"""Changes the manifests of a cluster by knobs, patches and scale."""
