"""A replay that is to be made, how it is carried out, and the folder of tables that it becomes."""
