"""Changes to the manifests of a cluster: knobs, patches and scale."""
