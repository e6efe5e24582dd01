"""What can go wrong around the agents of an experiment, in plain words."""

from __future__ import annotations

from rumormill.experiments.spec.building import build_world
from rumormill.experiments.spec.own import own_names
from rumormill.experiments.spec.reading import points
from rumormill.experiments.spec.schema import Spec
from rumormill.protocol import Imperfect, World
from rumormill.text import plural, setting


def troubles_of(spec: Spec) -> list[str]:
    """What can go wrong at every sweep point; what differs between them is only named."""
    if own_names(spec):  # no class of the user's own is imported for a sentence
        return []
    found = [troubles(build_world(point.spec)) for point in points(spec)]
    if all(each == found[0] for each in found):
        return found[0]
    return ["What is lost, late or away differs between the points of the sweep."]


def troubles(world: World) -> list[str]:
    """What can go wrong, in plain words."""
    found, channel = [], world.channel
    if isinstance(channel, Imperfect):
        what = "bundle" if channel.per == "link" else "message"
        if channel.p < 1:
            found.append(f"Every {what} is lost with probability {setting(round(1 - channel.p, 12))}.")
        if channel.longest_delay:
            found.append(
                f"Bundles come up to {plural(channel.longest_delay, 'round')} late, "
                f"{setting(round(channel.mean_delay, 3))} in the mean."
            )
    elif not world.messages_arrive:
        found.append(f"What happens to messages is decided by {type(channel).__name__}.")
    if world.churn is not None:
        up, down = setting(world.churn.up), setting(world.churn.down)
        found.append(f"Agents stay for {up} rounds in the mean, then are away for {down}.")
    elif world.absences:
        found.append("Some agents are away for a while.")
    if world.outages:
        found.append("Some links are down for a while.")
    if world.corruption is not None and world.corruption.rate > 0:
        found.append(f"Of all messages a share of {setting(world.corruption.rate)} says something false.")
    if world.liars:
        found.append(f"{plural(len(world.liars), 'agent')} {'lies' if len(world.liars) == 1 else 'lie'}.")
    return found
