"""The tables of a run folder, with their columns, their files, and the texts in them."""
