"""A server of tools for the Model Context Protocol (extra `mcp`); each question gets its own process."""
