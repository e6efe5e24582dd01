"""Request heads against h11, an independent reader of RFC 9112: the same are accepted, and read the same.

Where the two differ on purpose, a rule of `STRICTER` or `LAXER` says why; any other difference is a failure.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from live.test_http import mutated
from rumormill.live.io.http import MOST_BODY, BadRequest, RequestHead, read_head

KNOWN = (
    *(
        "GET",
        "POST",
        "HEAD",
        "PUT",
        "DELETE",
        "CONNECT",
        "OPTIONS",
        "TRACE",
        "PATCH",
        "COPY",
        "LOCK",
        "MKCOL",
    ),
    *(
        "MOVE",
        "PROPFIND",
        "PROPPATCH",
        "SEARCH",
        "UNLOCK",
        "BIND",
        "REBIND",
        "UNBIND",
        "ACL",
        "REPORT",
        "LINK",
    ),
    *("MKACTIVITY", "CHECKOUT", "MERGE", "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE", "PURGE", "UNLINK"),
    *("MKCALENDAR", "SOURCE", "QUERY"),
)
RARE = (b"Expect: tea\r\n", b"Expect: 100-continue\r\n", b"Content-Length: 9999999\r\n")
"""Headers that no mutation makes."""
LINE = re.compile(rb"(?:\r\n)?([^ \r\n]+) ([^ \r\n]+) HTTP/(\d\.\d)\r?\n")


def _method(data: bytes) -> bool:
    found = LINE.match(data)
    return found is not None and found[1].decode("latin-1") not in KNOWN


def _target(data: bytes) -> bool:
    found = LINE.match(data)
    return found is not None and re.match(rb"/|\*$|[a-zA-Z]+://", found[2]) is None


def _version(data: bytes) -> bool:
    found = LINE.match(data)
    return found is not None and found[3] not in (b"1.0", b"1.1")


def _lengths(data: bytes) -> bool:
    found = re.findall(rb"(?im)^content-length:[ \t]*([^\r\n]*?)[ \t]*\r?$", data)
    return len(found) > 1 or any(b"," in each for each in found)


def _too_long(data: bytes) -> bool:
    found = re.search(rb"(?i)\r?\ncontent-length:[ \t]*(\d+)", data)
    return found is not None and int(found[1]) > MOST_BODY


# What we refuse and h11 takes.
STRICTER: dict[str, Any] = {
    "a folded line: obsolete, a server may refuse it (5.2)": re.compile(rb"\r?\n[ \t]").search,
    "a line feed alone: recipients may take it for a line end, proxies differ (2.2)": re.compile(
        rb"(?<!\r)\n"
    ).search,
    "a control character in a value: refused or replaced (RFC 9110, 5.5)": re.compile(
        rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
    ).search,
    "two equal lengths: may be refused (6.3)": _lengths,
    "a method that is not implemented: 501": _method,
    "a target that is neither a path nor a URL nor *": _target,
    "a version that is neither 1.0 nor 1.1": _version,
    "a coding of the body: none is implemented, 501": re.compile(rb"(?i)\ntransfer-encoding[ \t]*:").search,
    "an unknown expectation: 417": re.compile(rb"(?i)\nexpect:").search,
    "a body that is too large: 413": _too_long,
}
# What we take and h11 refuses.
LAXER: dict[str, Any] = {
    "an empty line before the request: servers should ignore it (2.2)": re.compile(rb"\r\n[A-Z]").match,
}


def ours(data: bytes) -> RequestHead | None:
    try:
        return read_head(data)
    except BadRequest:
        return None


def theirs(h11: Any, data: bytes) -> Any:
    connection = h11.Connection(h11.SERVER)
    try:
        connection.receive_data(data)
        event = connection.next_event()
        return event if isinstance(event, h11.Request) else None
    except h11.RemoteProtocolError:
        return None


def compare(h11: Any, count: int, seed: int) -> set[str]:
    """Read so many heads with both; the deliberate differences that occurred."""
    rng, met = random.Random(seed), set()
    for _ in range(count):
        data = mutated(rng)
        if rng.random() < 0.05:
            data = data.replace(b"\r\n", b"\r\n" + rng.choice(RARE), 1)
        mine, other = ours(data), theirs(h11, data)
        if mine is not None and other is not None:
            same_as(mine, other, data)
        elif (mine is None) != (other is None):
            rules = STRICTER if mine is None else LAXER
            why = [name for name, applies in rules.items() if applies(data)]
            assert why, (data, "refused" if mine is None else "accepted")
            met.update(why)
    return met


def same_as(mine: RequestHead, other: Any, data: bytes) -> None:
    """Method, length of the body and headers are those that h11 reads."""
    assert mine.method == other.method.decode()
    headers: dict[str, str] = {}
    for name, value in ((name.decode(), value.decode("latin-1")) for name, value in other.headers):
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    assert mine.headers == headers, data
    assert mine.length == int(headers.get("content-length", "0")), data
    assert mine.path.startswith("/") or other.target[:1] != b"/", data


def test_mutated_heads_are_judged_as_by_h11() -> None:
    h11 = pytest.importorskip("h11", reason="pip install 'rumormill[dev]'")
    assert len(compare(h11, 4_000, 3)) >= 6


@pytest.mark.slow
def test_a_hundred_thousand_heads_are_judged_as_by_h11() -> None:
    h11 = pytest.importorskip("h11", reason="pip install 'rumormill[dev]'")
    assert compare(h11, 100_000, 4) == {*STRICTER, *LAXER}
