"""Frames are decoded however the stream is cut, and nothing else is taken for a frame."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.measure.workers.protocol import Decoder, Message, ProtocolError, encode
from tests.budget import examples

messages = st.builds(
    Message,
    kind=st.text(max_size=8),
    fields=st.dictionaries(st.text(max_size=4), st.integers() | st.text() | st.none()),
    blobs=st.lists(st.binary(max_size=300), max_size=3).map(tuple),
)


@examples(60)
@given(sent=st.lists(messages, max_size=4), piece=st.integers(1, 70))
def test_messages_come_out_as_they_went_in_however_the_stream_is_cut(sent, piece):
    stream = b"".join(encode(message) for message in sent)
    decoder, got = Decoder(), []
    for start in range(0, len(stream), piece):
        decoder.feed(stream[start : start + piece])
        while (message := decoder.take()) is not None:
            got.append(message)
    assert got == sent
    assert decoder.is_empty


@pytest.mark.parametrize(
    "junk",
    [
        b"Traceback (most recent call last)",
        b"a",
        struct.pack("<4sI", b"answ", 2**31),
        struct.pack("<4sI", b"answ", 4) + b"nope",
        struct.pack("<4sI", b"answ", 2) + b"[]",
        struct.pack("<4sI", b"answ", 38) + b'{"kind": 3, "fields": {}, "blobs": []}',
        struct.pack("<4sI", b"answ", 42) + b'{"kind": "x", "fields": {}, "blobs": [-7]}',
    ],
)
def test_what_is_not_a_message_is_refused(junk):
    decoder = Decoder()
    decoder.feed(junk + b" " * 8)
    with pytest.raises(ProtocolError):
        for _ in range(2):
            decoder.take()


def test_half_a_message_is_waited_for():
    decoder = Decoder()
    decoder.feed(encode(Message("m", {}, (b"12345",)))[:-1])
    assert decoder.take() is None
    assert not decoder.is_empty
    decoder.feed(b"5")
    assert decoder.take() == Message("m", {}, (b"12345",))
