"""The built-in plugins of `harness`: one package per component, written against public names only."""
