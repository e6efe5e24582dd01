"""Messages, hop budget, flooding, de-duplication. No transport."""

from rumormill.protocol.channel import Channel, PerfectChannel
from rumormill.protocol.message import Message, wire_size
from rumormill.protocol.relay import Relay

__all__ = ["Channel", "Message", "PerfectChannel", "Relay", "wire_size"]
