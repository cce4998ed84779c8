"""Templates for the packages that `harness plugins new` writes, and the code that fills in the templates."""
