"""Random worlds with every plugin, under every loss model and grace period, checked from outside.

python -m worlds 0 1000 --log worlds.jsonl      the worlds of these seeds; goes on where it was stopped
python -m worlds 7 --plugin kueue-classic       one of them, with what is wrong and the command that shows it
"""
