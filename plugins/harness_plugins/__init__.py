"""Contains the built-in plugins of `harness`, one package per component, which use only public names."""
