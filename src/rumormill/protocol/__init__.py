"""Messages, hop budget, flooding, de-duplication, and the fault model. No transport."""

from rumormill.protocol.adversary import Byzantine, Corruption, FalseReport
from rumormill.protocol.channel import Carrier, Channel, Imperfect, PerfectCarrier, PerfectChannel
from rumormill.protocol.faults import Churn, Conditions, World
from rumormill.protocol.message import Message, MessageValidator, wire_size
from rumormill.protocol.relay import Relay

__all__ = [
    "Byzantine",
    "Carrier",
    "Channel",
    "Churn",
    "Conditions",
    "Corruption",
    "MessageValidator",
    "Imperfect",
    "FalseReport",
    "Message",
    "PerfectCarrier",
    "PerfectChannel",
    "Relay",
    "World",
    "wire_size",
]
