"""The packages that `harness plugins new` writes: templates, and what fills them in."""
