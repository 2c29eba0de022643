"""Every frame comes back byte for byte, and never spoils the line it is in."""

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hansard.errors import UsageError
from hansard.events import assistant_chunk
from hansard.events.codec import decode, encode
from hansard.events.originals import BASE64, MAX_DEPTH, MAX_DIGITS, TEXT, reference, unwrap, wrap

VERBATIM = {
    "an object": b'{"type":"x","text":" "}',
    "odd spelling": b'{"b":1.10000000000000000001,"a":1E5,"a":2}',
    "space inside": b'{ "a" : [ 1 , 2 ] }',
    "an array": b"[]",
    "a string": b'"hi"',
    "a number": b"-0.0",
    "false": b"false",
    "an emoji": '{"a":"😀"}'.encode(),
    "an escaped emoji": b'{"a":"\\ud83d\\ude00"}',
    "brackets in a string": b'{"a":"' + b"[" * 1000 + b'"}',
    "a wrapper further in": b'{"a":{"text":"x"}}',
    "wide but not deep": b"[" + b",".join([b"[]"] * 1000) + b"]",
    "as deep as allowed": b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1),
}
AS_TEXT = {
    "nothing": b"",
    "noise": b"npm WARN deprecated",
    "null": b"null",
    "cut short": b'{"a":',
    "two documents": b"{}{}",
    "NaN": b"NaN",
    "leading space": b' {"a":1}',
    "trailing space": b'{"a":1} ',
    "trailing CR": b'{"a":1}\r',
    "pretty": b'{\n"a":1}',
    "tab between": b'{\t"a":1}',
    "BOM": b"\xef\xbb\xbf{}",
    "DEL": b'{"a":"\x7f"}',
    "NUL": b"\x00",
    "U+2028": '{"a":"\u2028"}'.encode(),
    "U+2029": '{"a":"\u2029"}'.encode(),
    "U+0085": '{"a":"\x85"}'.encode(),
    "half an emoji": b'{"a":"\\ud83d"}',
    "infinite": b"1e400",
    "infinite inside": b'{"a":[-1e400]}',
    "5000 digits": b'{"a":' + b"1" * 5000 + b"}",
    "too deep": b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
    "abyss": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "like a text": b'{"text":"x"}',
    "like a text, spaced": b'{"text": "x"}',
    "like a base64": b'{"base64":"eA=="}',
    "like a blob": b'{"blob":"00","size":1}',
}
AS_BASE64 = {
    "not UTF-8": b'{"a":"\xff"}',
    "half a character": "é".encode()[:1],
    "an encoded surrogate": b'"\xed\xa0\x80"',
}
ALL = VERBATIM | AS_TEXT | AS_BASE64


def through_a_log(original: Raw) -> Raw:
    event = assistant_chunk(text="")
    event.original = original
    line = encode(event)
    assert line.decode().splitlines() == [line.decode()]
    assert "original" in json.loads(line)
    again = decode(line).original
    assert again is not None
    return again


def cases(table: dict[str, bytes]) -> Callable[..., object]:
    return pytest.mark.parametrize("data", table.values(), ids=table.keys())


@cases(VERBATIM)
def test_clean_json_is_embedded_as_it_is(data: bytes) -> None:
    assert bytes(wrap(data)) == data
    assert bytes(wrap(data, known_json=True)) == data


@cases(AS_TEXT)
def test_other_text_is_wrapped_as_text(data: bytes) -> None:
    assert bytes(wrap(data)).startswith(TEXT)


@cases(AS_BASE64)
def test_other_bytes_are_wrapped_as_base64(data: bytes) -> None:
    assert bytes(wrap(data)).startswith(BASE64)


@cases(ALL)
def test_every_frame_comes_back_through_a_log(data: bytes) -> None:
    assert unwrap(through_a_log(wrap(data))) == data


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029", "\x7f"])
def test_an_original_is_the_same_before_and_after_the_log(char: str) -> None:
    original = wrap(f'{{"a":"{char}"}}'.encode())
    assert bytes(through_a_log(original)) == bytes(original)


@pytest.mark.parametrize("broken", [b'"a":"', b'"a":"\\', b"[", b"]"])
def test_many_brackets_and_a_broken_end_are_text(broken: bytes) -> None:
    assert bytes(wrap(b'{"a":[' + b"[]," * 500 + broken)).startswith(TEXT)


class Skipping(msgspec.Struct):
    """A typed reader that looks at nothing."""


@given(
    st.sampled_from(sorted(ALL.values())) | st.binary() | st.text().map(str.encode) | st.from_type(dict[str, str]).map(msgspec.json.encode)
)
def test_what_a_typed_decode_accepted_comes_back_too(data: bytes) -> None:
    try:
        msgspec.json.decode(data, type=Skipping)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    assert unwrap(through_a_log(wrap(data, known_json=True))) == data


def test_a_blob_is_fetched_by_its_hash() -> None:
    original = Raw(b'{"blob":"abc","size":3,"head":"x"}')
    assert unwrap(original, {"abc": b"xyz"}.__getitem__) == b"xyz"
    assert (found := reference(original)) and (found.blob, found.size) == ("abc", 3)


def test_a_blob_without_a_store_is_an_error() -> None:
    with pytest.raises(UsageError, match="blob"):
        unwrap(Raw(b'{"blob":"abc","size":3}'))


@pytest.mark.parametrize("original", [b'{"text":1}', b'{"base64":"?"}', b'{"base64":1}', b'{"blob":1}'])
def test_a_wrapper_nobody_wrote_is_an_error(original: bytes) -> None:
    with pytest.raises(UsageError, match="original"):
        unwrap(Raw(original))
    assert reference(Raw(original)) is None
    assert reference(None) is None


@pytest.mark.parametrize("place", [0, 1, 4299, 4300, 4301, 8601, 8602, 20_000])
@pytest.mark.parametrize("digits", [MAX_DIGITS, MAX_DIGITS + 1, 3 * MAX_DIGITS])
def test_a_number_that_is_too_long_is_text_wherever_it_stands(place: int, digits: int) -> None:
    frame = b'{"pad":"' + b"x" * place + b'","n":' + b"7" * digits + b',"end":[1,22,333]}'
    assert bytes(wrap(frame)).startswith(TEXT) is (digits > MAX_DIGITS)
    assert unwrap(wrap(frame)) == frame
