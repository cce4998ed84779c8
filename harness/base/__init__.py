"""The base of all other packages: errors, units, options, names, files and tables."""
