"""States of sequences in a store are signed, and hold nothing but arrays and what operators freeze."""

from __future__ import annotations

import os
import pickle
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sequence_models import (
    PULSE,
    pulsed,
    signal,
    smoothing,
)
from tract_serve.errors import BadRequest
from tract_serve.sequences.pickles import dumped, loaded
from tract_serve.sequences.signing import Head, Signer

from tract_core.errors import InputError, Unsupported
from tract_core.ops.scan import FrozenScan

KEY = bytes(range(40))
HEAD = Head("model", "1", "digest", "number 7", 3)


# Signatures


def test_what_is_signed_is_read_again() -> None:
    assert Signer(KEY).read(Signer(KEY).signed(HEAD, b"state")) == (HEAD, b"state")
    assert Signer(KEY).read(Signer(KEY).signed(HEAD, b"")) == (HEAD, b"")


@pytest.mark.parametrize("bit", [1, 0x80])
def test_no_byte_can_be_changed(bit: int) -> None:
    content = bytearray(Signer(KEY).signed(HEAD, b"state"))
    for place in range(len(content)):
        content[place] ^= bit
        with pytest.raises(BadRequest, match="not signed with the server's key"):
            Signer(KEY).read(bytes(content))
        content[place] ^= bit


def test_no_byte_can_be_left_out_or_added() -> None:
    content = Signer(KEY).signed(HEAD, b"state")
    for bad in [*(content[:count] for count in range(len(content))), content + b"\0", content * 2, b"\xff" * 1000]:
        with pytest.raises(BadRequest, match="not signed with the server's key"):
            Signer(KEY).read(bad)


def test_the_border_of_head_and_state_cannot_be_moved() -> None:
    content = bytearray(Signer(KEY).signed(HEAD, b"state"))
    place = len(b"tract sequence 1") + 32
    content[place : place + 4] = (int.from_bytes(content[place : place + 4], "little") + 1).to_bytes(4, "little")
    with pytest.raises(BadRequest, match="not signed"):
        Signer(KEY).read(bytes(content))


def test_keys() -> None:
    with pytest.raises(BadRequest, match="not signed"):
        Signer(KEY[1:]).read(Signer(KEY).signed(HEAD, b"state"))
    with pytest.raises(InputError, match="the key has 31 bytes, wanted at least 32"):
        Signer(KEY[:31])
    with pytest.raises(InputError, match="the key cannot be read"):
        Signer.of_file("/nowhere/key")


# Pickles


@pytest.fixture(scope="module")
def runnable() -> Any:
    return pulsed(smoothing())


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/should-not-be-there",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Evil()),
        pickle.dumps(os.path.join),
        pickle.dumps(SimpleNamespace(a=1)),
        b"cbuiltins\neval\n(V1+1\ntR.",
        b"cnumpy\nload\n(V/etc/passwd\ntR.",
        b"ctract_core.api.loading\nload\n(V/etc/passwd\ntR.",
        b"ctract_serve.sequences.signing\nSigner\n.",
        b"Pmodels\n.",
        b"cml_dtypes\n__loader__\n.",
        b"",
        b"\x80\x05.",
        b"nonsense",
    ],
    ids=range(12),
)
def test_pickles_of_anything_else_are_not_opened(runnable: Any, content: bytes) -> None:
    with pytest.raises(BadRequest, match="the state that was kept cannot be read: "):
        loaded(content, runnable)
    assert not os.path.exists("/tmp/should-not-be-there")


def test_a_pickle_holds_the_state_and_not_the_model(runnable: Any) -> None:
    state = runnable.spawn_state()
    state.run([signal(PULSE)])
    content = dumped(state.freeze())
    assert len(content) < 1000 < len(pickle.dumps(state.freeze()))
    assert b"Model" not in content
    assert b"Runnable" not in content
    again = loaded(content, runnable).unfreeze()
    x = signal(PULSE, 9)
    np.testing.assert_array_equal(np.asarray(again.run([x])[0]), np.asarray(state.run([x])[0]))


def test_what_operators_freeze_goes_through() -> None:
    arrays = [
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.arange(6)[::2],
        np.array(3.5),
        np.zeros((0, 2), np.int8),
        np.array(["a", "ü"], object),
        np.ones(3, ml_dtypes.bfloat16),
        np.float32(2),
    ]
    kept = {3: FrozenScan(2, tuple(arrays), {1: None}), 4: (1, None, "text", 2.5, [True])}
    again = loaded(dumped(kept), None)  # pyright: ignore[reportArgumentType]: there is no model in it
    assert again[4] == kept[4]
    for one, other in zip(again[3].state, arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("content", [Evil, Evil(), SimpleNamespace(a=1), open, os.path.join], ids=range(5))
def test_what_could_not_be_read_is_not_written(content: Any) -> None:
    with pytest.raises(Unsupported, match="the state cannot be kept"):
        dumped(content)


# Places
