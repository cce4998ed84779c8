"""Files and folders that are complete or absent, however the writing process ends."""
