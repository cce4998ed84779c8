"""Mutated inputs through the command line: a command ends well, or says what is wrong with them.

A number, the seed, makes a case: files of which something was changed, and commands to read them. A command
ends with 0, 1 or 2, says nothing of a defect or of a failure of a built-in plugin, leaves nothing behind
after an error, takes less than 20 CPU-seconds and 2 GB, and what a replay measured adds up.

    PYTHONPATH=tests python -m fuzz 0 100000 --log fuzz.jsonl    # goes on where the log ends
    PYTHONPATH=tests python -m fuzz 4711 --show                  # one case: files, commands and verdict
"""
