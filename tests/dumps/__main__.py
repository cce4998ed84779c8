"""Closes the loop of the worlds of a range of seeds; see the package."""

from __future__ import annotations

import argparse
import sys
import traceback

from dumps.loop import Loop
from dumps.worlds import PLUGINS, dump_world


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m dumps", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("end", type=int, nargs="?", help="the seed to stop before")
    parser.add_argument("--plugin", choices=PLUGINS, help="only this one")
    parser.add_argument("--brief", action="store_true", help="only say which worlds differ")
    given = parser.parse_args()
    loop, wrong, tried = Loop(), 0, 0
    end = given.first + 1 if given.end is None else given.end
    for plugin in [given.plugin] if given.plugin else PLUGINS:
        for seed in range(given.first, end):
            tried += 1
            world = dump_world(seed, plugin)
            try:
                ends = loop.ends(world)
                said = ends.told()
            except Exception:
                said = traceback.format_exc(limit=-2)
            if said:
                wrong += 1
                about = f"{plugin} {seed} at {world.at // 1_000_000} s, nodes {len(world.cluster.nodes)}"
                print(about, *([] if given.brief else [said]), sep="\n", flush=True)
    print(f"{wrong:,} of {tried:,} worlds differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
