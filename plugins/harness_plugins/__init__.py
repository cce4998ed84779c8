"""Contains the built-in plugins of `harness`, with one package per component. They use only public names."""
