"""The built-in sections, in words, tables and charts."""
