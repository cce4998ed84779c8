"""A server of tools for the Model Context Protocol (extra `mcp`). Each question gets its own process."""
