"""The protocol between driver and server: every message survives, damaged ones are refused, both sides agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_probe.errors import SimulationError
from tui_probe.simgpu import protocol
from tui_probe.simgpu.protocol import pack, unpack

HEADER = (Path(__file__).parents[2] / "hook" / "simgpu" / "server" / "protocol.h").read_text()

u32 = st.integers(0, 2**32 - 1)
i32 = st.integers(-(2**31), 2**31 - 1)
u64 = st.integers(0, 2**64 - 1)
dimensions = st.tuples(u32, u32, u32)
variables = st.builds(protocol.Variable, st.text(), u32, u64, u64, st.binary())
parameters = st.builds(protocol.Parameter, u32, u32)
messages = st.one_of(
    st.builds(protocol.LoadRequest, st.binary()),
    st.builds(protocol.PlaceRequest, u64, st.lists(u64).map(tuple)),
    st.builds(protocol.DescribeRequest, u64, u32),
    st.builds(
        protocol.LaunchRequest,
        u64,
        u32,
        dimensions,
        dimensions,
        u32,
        u64,
        dimensions,
        u64,
        st.binary(),
        st.lists(st.builds(protocol.MemoryChange, u32, u64, u64)).map(tuple),
    ),
    st.builds(protocol.UnloadRequest, u64),
    st.builds(protocol.LoadReply, u64, u32, st.lists(st.text()).map(tuple), st.lists(variables).map(tuple)),
    st.builds(protocol.DescribeReply, u32, u32, u32, i32, u32, dimensions, st.lists(parameters).map(tuple)),
    st.builds(protocol.LaunchReply, u64, u64),
    st.builds(protocol.Failure, st.text()),
    st.just(protocol.EmptyReply()),
)


@settings(deadline=None)
@given(messages)
def test_a_message_survives_the_wire(message: Any) -> None:
    assert unpack(type(message), pack(message)) == message


@settings(deadline=None)
@given(messages, st.data())
def test_a_message_cut_off_or_too_long_is_refused(message: Any, data: st.DataObject) -> None:
    content = pack(message)
    with pytest.raises(SimulationError, match="too long"):
        unpack(type(message), content + b"\0")
    if content:
        with pytest.raises(SimulationError, match="ends before"):
            unpack(type(message), content[: data.draw(st.integers(0, len(content) - 1))])


def test_the_bytes_of_a_launch() -> None:
    launch = protocol.LaunchRequest(1, 2, (3, 4, 5), (6, 7, 8), 9, 10, (11, 12, 13), 14, b"ab")
    numbers = [2, 3, 4, 5, 6, 7, 8, 9]
    expected = (1).to_bytes(8, "little") + b"".join(number.to_bytes(4, "little") for number in numbers)
    expected += (10).to_bytes(8, "little") + b"".join(number.to_bytes(4, "little") for number in (11, 12, 13))
    assert pack(launch) == expected + (14).to_bytes(8, "little") + b"\2\0\0\0ab" + bytes(4)


@settings(deadline=None)
@given(u32, st.binary())
def test_any_bytes_are_a_request_or_an_error(kind: int, body: bytes) -> None:
    try:
        request = protocol.decode_request(kind % 7, body)
    except SimulationError:
        return
    assert pack(request) == body


def header_constants(prefix: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(rf"\b{prefix}_?(\w+) = (\d+)", HEADER)}


def test_c_and_python_give_the_numbers_the_same_names() -> None:
    assert header_constants("STATUS") == {status.name: status.value for status in protocol.Status}
    requests = {kind.__name__.removesuffix("Request").upper(): number for number, kind in protocol.REQUESTS.items()}
    assert header_constants("REQUEST") == requests
    assert f"PROTOCOL_VERSION = {protocol.VERSION}," in HEADER
    assert f"SOCKET_DESCRIPTOR = {protocol.SOCKET_DESCRIPTOR}," in HEADER
    assert f"MEMORY_DESCRIPTOR = {protocol.MEMORY_DESCRIPTOR} " in HEADER
