"""The built-in plugins of `harness`: one package a component, written against public names only."""
