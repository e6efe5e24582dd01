"""Real nodes on a simulated network, with simulated disks, applications and clocks. One seed, one schedule.

Faults happen while the schedule lasts; then everything is mended and time passes. The invariants I1 to I11
are checked all the time: from what nodes write down, from what they acknowledge, from their state.
"""

from live.simulation.parts import Broken
from live.simulation.schedule import World, run

__all__ = ["Broken", "World", "run"]
