"""Files of waves, other rates, and spectra, beside their definitions and what `transformers` computes."""

from __future__ import annotations

import json
import os
import re
import wave
from pathlib import Path

import numpy as np
import pytest
from halves_files import KEPT, SOUNDS, sound, write_wave
from tract_transformers.audio.resampling import resampled
from tract_transformers.audio.spectrum import FrontEnd, mel_bands
from tract_transformers.audio.waves import read_wave, sound_of

from tract_core.errors import InputError

SPECTRA = json.loads(KEPT.read_text())["spectra"]


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_are_those_of_transformers(name: str) -> None:
    """That computes some of it in f32."""
    kind, bands = name.rsplit(", ", 1)
    found = FrontEnd(bands=int(bands)).features(SOUNDS[kind]()[:480000])
    assert found.shape == (1, int(bands), 3000)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, ::9, ::53], SPECTRA[name], atol=5e-5)


def test_bands_are_triangles_of_one_area() -> None:
    """Of 1 in hertz, but for the lowest ones, which are narrower than the steps between frequencies."""
    bands = mel_bands(40, 16000, 16000)  # steps of a hertz
    np.testing.assert_allclose(bands.sum(0), 1, rtol=1e-3)
    tops = bands.argmax(0)
    assert (np.diff(tops) > 0).all()
    assert ((bands > 0).sum(1) <= 2).all()


# --- rates ---


def decibels(array: np.ndarray) -> float:
    """Of the loudest, where 0 is 1."""
    return float(20 * np.log10(np.abs(array).max() + 1e-12))


@pytest.mark.parametrize("rate", [8000, 11025, 12000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 192000])
def test_tones_that_both_rates_have_stay_what_they_are(rate: int) -> None:
    """Up to 0.9 of the half of the lower rate, 90 dB below them."""
    count, half = 2 * rate, min(rate, 16000) / 2
    for part in (0.01, 0.5, 0.9):
        tone = np.sin(2 * np.pi * part * half * np.arange(count) / rate).astype(np.float32)
        found = resampled(tone, rate, 16000)
        assert len(found) == 32000
        wanted = np.sin(2 * np.pi * part * half * np.arange(32000) / 16000)
        assert decibels((found - wanted)[2000:-2000]) < -90


@pytest.mark.parametrize("rate", [17000, 22050, 44100, 48000, 767000])
def test_what_only_the_old_rate_has_is_gone(rate: int) -> None:
    for tone_at in (8000, 8200, rate / 2 * 0.97):
        tone = np.sin(2 * np.pi * tone_at * np.arange(2 * rate) / rate + 1).astype(np.float32)
        if tone_at >= 8000:
            assert decibels(resampled(tone, rate, 16000)[2000:-2000]) < -90


@pytest.mark.parametrize("rate", [1000, 15999, 16001, 44101, 767999])
def test_rates_that_nobody_has_are_near_enough(rate: int) -> None:
    """As long as they were, within a sample in ten thousand."""
    found = resampled(np.ones(3 * rate, np.float32), rate, 16000)
    assert abs(len(found) - 48000) < 24
    assert decibels(found[2000:-2000] - 1) < -80


@pytest.mark.parametrize("count", [0, 1, 2, 3, 441, 442])
def test_short_sounds_have_as_many_seconds(count: int) -> None:
    for rate in (8000, 16000, 44100):
        found = resampled(np.ones(count, np.float32), rate, 16000)
        assert len(found) == -(-count * 16000 // rate)
        assert np.isfinite(found).all()


# --- files ---


@pytest.mark.parametrize(("width", "error"), [(1, 2**-7), (2, 2**-15), (3, 2**-23), (4, 2**-23)])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_each_width_is_read(width: int, error: float, channels: int, tmp_path: Path) -> None:
    heard = np.stack([sound(0.1, seed) for seed in range(channels)], 1)
    whole = np.round(heard.astype(np.float64) * 2 ** (8 * width - 1)).astype(np.int64) + (128 if width == 1 else 0)
    data = whole.astype("<i8").reshape(-1, 1).view(np.uint8)[:, :width].tobytes()
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((channels, width, 22050, 0, "NONE", ""))
        file.writeframes(data)
    found = read_wave(tmp_path / "a.wav")
    assert (found.rate, found.samples.dtype, len(found.samples)) == (22050, np.float32, 1600)
    np.testing.assert_allclose(found.samples, heard.mean(1), atol=error)
    assert found.seconds == 1600 / 22050


@pytest.mark.parametrize("bits", [32, 64])
def test_floats_are_read(bits: int, tmp_path: Path) -> None:
    heard = sound(0.1)
    data = np.stack([heard, heard], 1).astype(f"<f{bits // 8}").tobytes()
    (tmp_path / "a.wav").write_bytes(header(data, kind=3, bits=bits, channels=2, rate=16000))
    np.testing.assert_allclose(read_wave(tmp_path / "a.wav").samples, heard, atol=1e-7)
    (tmp_path / "b.wav").write_bytes(header(np.array([0, 1e300]).tobytes(), kind=3, bits=64))
    with pytest.raises(InputError, match=r"b\.wav: sample 1 of the sound is inf"):
        read_wave(tmp_path / "b.wav")


def test_the_added_form_and_other_pieces(tmp_path: Path) -> None:
    """As programs write them for 24 bits or many channels; a piece of odd length has a byte behind it."""
    data = np.array([1000, -2000], "<i2").tobytes()
    for added in (False, True):
        for length in (len(data), 0xFFFFFFFF):  # as when nobody knew how long it becomes
            content = header(data, added=added, size=length, before=b"LIST\x03\x00\x00\x00abc\x00")
            (tmp_path / "a.wav").write_bytes(content)
            assert (read_wave(tmp_path / "a.wav").samples * 32768).tolist() == [1000, -2000]


def header(data: bytes = bytes(8), *, added: bool = False, before: bytes = b"", **said: int) -> bytes:
    """A file of waves, of which something is said otherwise than it is. ``before``: pieces before the samples."""
    given = {"kind": 1, "channels": 1, "rate": 16000, "bits": 16, "size": len(data)} | said
    block = given["channels"] * given["bits"] // 8
    form = b"".join(
        value.to_bytes(size, "little")
        for value, size in (
            (0xFFFE if added else given["kind"], 2),
            (given["channels"], 2),
            (given["rate"], 4),
            (given["rate"] * block & 0xFFFFFFFF, 4),
            (block & 0xFFFF, 2),
            (given["bits"], 2),
        )
    )
    if added:
        guid = bytes.fromhex("000000001000800000aa00389b71")
        form += (
            b"\x16\x00" + given["bits"].to_bytes(2, "little") + bytes(4) + given["kind"].to_bytes(2, "little") + guid
        )
    body = b"WAVEfmt " + len(form).to_bytes(4, "little") + form + before
    body += b"data" + given["size"].to_bytes(4, "little") + data
    return b"RIFF" + (len(body) & 0xFFFFFFFF).to_bytes(4, "little") + body


KNOWN = "it is no file of waves that is known: "
WRONG = {
    "empty": (b"", KNOWN + "it begins with nothing"),
    "text": (b"once upon a time, there was no sound at all", KNOWN + "it begins with 6f 6e"),
    "cut": (header()[:30], KNOWN + "it ends before its samples"),
    "no samples": (header()[:36], KNOWN + "it ends before its samples"),
    "no form": (b"RIFF\x04\x00\x00\x00WAVEdata\x00\x00\x00\x00", KNOWN + "it does not say of what form"),
    "pieces": (header(before=b"junk\x00\x00\x00\x00" * 10_000), KNOWN + "it has more than 10000 pieces"),
    "law": (header(kind=7, bits=8), KNOWN + "its samples are of the form 7, wanted 1"),
    "channels": (header(channels=0), KNOWN + "it has 0 channels of 16 bits"),
    "bits": (header(bits=64), KNOWN + "it has 1 channels of 64 bits, wanted 8, 16, 24, 32 bits"),
    "no bits": (header(bits=0), KNOWN + "it has 1 channels of 0 bits"),
    "half": (header(kind=3), KNOWN + "it has 1 channels of 16 bits, wanted 32, 64 bits"),
    "rate": (header(rate=0), "the rate is 0, wanted 1000 to 768000"),
    "fast": (header(rate=4_000_000_000), "the rate is 4000000000"),
    "nothing": (header(b""), "the sound is empty"),
    "less than a sample": (header(bytes(7), channels=65535), "the sound is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_wrong(name: str, tmp_path: Path) -> None:
    content, wanted = WRONG[name]
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(wanted)) as raised:
        read_wave(tmp_path / "a.wav")
    assert "a.wav" in str(raised.value)


def test_a_file_that_is_too_long(tmp_path: Path) -> None:
    """It takes no room where nothing was written."""
    with (tmp_path / "a.wav").open("wb") as file:
        file.write(header(rate=1000, bits=8, size=21_600_001))
        file.truncate(44 + 21_600_001)
    with pytest.raises(InputError, match="takes 21600 seconds of 1000 samples, 21600 are allowed"):
        read_wave(tmp_path / "a.wav")


def test_a_file_that_ends_early_has_what_is_there(tmp_path: Path) -> None:
    whole = write_wave(tmp_path / "a.wav", np.stack([sound(0.1)] * 2, 1)).read_bytes()
    (tmp_path / "b.wav").write_bytes(whole[:-5])
    assert len(read_wave(tmp_path / "b.wav").samples) == 1598


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such files")
def test_folders_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(InputError, match="there is no such file"):
            read_wave(path)


def test_bytes_that_changed_give_a_sound_or_an_error_of_ours(tmp_path: Path) -> None:
    random, content = np.random.default_rng(3), header()
    for _ in range(300):
        other = bytearray(content)
        for place in random.integers(0, len(content), 2):
            other[place] = random.integers(0, 256)
        (tmp_path / "a.wav").write_bytes(bytes(other[: random.integers(1, len(content) + 1)]))
        try:
            read_wave(tmp_path / "a.wav")
        except InputError:
            continue


def test_lists_of_numbers_are_sound_too() -> None:
    found = sound_of([0.5, -0.5], 8000)
    assert found.samples.tolist() == [0.5, -0.5]
    assert found.seconds == 2 / 8000
    assert sound_of(np.array([0, 128, 255], np.uint8), 8000).samples.tolist() == [-1.0, 0.0, 127 / 128]
