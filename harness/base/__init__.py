"""The base of all other rooms: errors, units, options, names, files and tables."""
