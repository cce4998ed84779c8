"""The tables of a run folder: their columns, their files, and the texts in them."""
