"""A server of questions as tools of the Model Context Protocol (extra `mcp`), with a process for each."""
