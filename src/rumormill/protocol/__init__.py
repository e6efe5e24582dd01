"""Messages, hop budget, flooding, de-duplication, and what the world does to them. No transport."""

from rumormill.protocol.channel import Carrier, Channel, PerfectCarrier, PerfectChannel
from rumormill.protocol.churn import Churn
from rumormill.protocol.falsehood import Byzantine, Corruption, Lie
from rumormill.protocol.gate import Gate
from rumormill.protocol.imperfect import Imperfect
from rumormill.protocol.message import Message, wire_size
from rumormill.protocol.relay import Relay
from rumormill.protocol.world import Conditions, World

__all__ = [
    "Byzantine",
    "Carrier",
    "Channel",
    "Churn",
    "Conditions",
    "Corruption",
    "Gate",
    "Imperfect",
    "Lie",
    "Message",
    "PerfectCarrier",
    "PerfectChannel",
    "Relay",
    "World",
    "wire_size",
]
