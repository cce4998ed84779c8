"""Random worlds, which consist of a cluster, a trace and settings that are hard for policies.

from harness.testing.worlds import random_world

world = random_world(7)
run = world.replay(MyPolicy, tmp_path)
assert world.faults(run) == [], world.describe()
"""

from harness.testing.worlds.world import PLUGINS, World, random_world

__all__ = ["PLUGINS", "World", "random_world"]
