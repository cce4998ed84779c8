"""Code that trace readers share, such as files, tables, cells, gangs, names, and recognition of formats.

Each module is imported separately. Only `sniff` works without importing polars.
"""
