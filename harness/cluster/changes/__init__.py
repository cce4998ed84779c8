"""What is changed of the manifests of a cluster: knobs, patches and scale."""
