"""Faults on purpose: every call of a command fails once, or kills it, and what is left is checked.

Calls are those of the system: reads, writes, renames, syncs and locks of files, and memory; and the first
calls of our functions, for which there is no memory. After each fault the exit code and the message are as
documented, runs are whole or absent, files as before or as they should be, and the same command makes all of
it good.

    PYTHONPATH=tests python -m faults                                  # all of it, with figures
    PYTHONPATH=tests python -m faults --world replay --calls files --most 50 --seed 7
    PYTHONPATH=tests python -m faults --world replay --calls files --at 212 --error EIO     # one fault
    PYTHONPATH=tests python -m faults --race 600 --seed 7              # two writers, a reader, kills: seconds
"""
