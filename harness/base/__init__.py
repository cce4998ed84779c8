"""What every other room builds on: errors, units, options, names, files and tables."""
