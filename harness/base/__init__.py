"""The code that all other packages use, such as errors, units, options, names, files and tables."""
