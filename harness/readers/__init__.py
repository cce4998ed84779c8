"""Parts that trace readers share: files and lines, tables, cells, gangs, names, and recognition of formats.

Each module is imported separately. Only `sniff` works without importing polars.
"""
