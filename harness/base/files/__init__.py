"""Files and folders that are whole or absent, whatever ends the process that writes them."""
