"""What readers of trace formats share: files and lines, tables, cells, gangs, names, how formats are known.

Each module is imported by itself: `sniff` without polars, the others with it.
"""
