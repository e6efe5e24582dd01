"""Messages, hop budget, flooding, de-duplication, and what channels do to them. No transport."""

from rumormill.protocol.channel import Carrier, Channel, PerfectCarrier, PerfectChannel
from rumormill.protocol.message import Message, wire_size
from rumormill.protocol.relay import Relay

__all__ = [
    "Carrier",
    "Channel",
    "Message",
    "PerfectCarrier",
    "PerfectChannel",
    "Relay",
    "wire_size",
]
