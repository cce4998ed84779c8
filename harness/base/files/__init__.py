"""Files and folders that are whole or absent, however the writing process ends."""
