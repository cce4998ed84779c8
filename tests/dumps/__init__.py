"""A closed loop for dumps: what an API server shows of a replay, replayed, goes on as the replay does.

`worlds.py` random worlds in whole seconds, `kinds.py` what is to be in their dumps, `observed.py` what
happened in a replay, `restart.py` the replay whose scheduler restarts, `writer.py` what an API server shows
of it then, `loop.py` both ends compared.

python -m dumps 0 200 --plugin fairsharing      the worlds of these seeds, and what differs
"""
