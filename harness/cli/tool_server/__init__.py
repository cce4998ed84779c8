"""Questions as tools of the Model Context Protocol (extra `mcp`), each answered by a process of its own."""
