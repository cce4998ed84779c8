"""The packages that `harness plugins new` writes: templates, and the code that fills them in."""
