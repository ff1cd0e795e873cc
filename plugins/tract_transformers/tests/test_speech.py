"""Whisper from folders, beside what `transformers` makes of the same weights and of the same sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tract_transformers
from click.testing import CliRunner
from halves_files import (
    DE,
    EN,
    END,
    FIRST_TIME,
    KEPT,
    LANGUAGES,
    PREPARES,
    SAYS,
    START,
    TRANSCRIBE,
    UNTIMED,
    WORDS,
    sound,
    speech_tokenizer,
    write_folder,
    write_wave,
)
from tract_transformers import SpeechModel
from tract_transformers.audio.resampling import resampled
from tract_transformers.generation.speech.rules import Rules
from tract_transformers.generation.speech.tokens import SpeechTokens, TimedTokenizer, tokens_of
from tract_transformers.generation.speech.transcript import window_of
from tract_transformers.tokenizers.library import LibraryTokenizer

from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, InputError, ModelError, Unsupported

tract_gguf = pytest.importorskip("tract_gguf")

CASE = json.loads(KEPT.read_text())["whisper"]
BOUND = 8e-6
"""How far numbers are from those in f64, of the largest of them; spectra are in f32 there too, and are rounded."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("whisper") / "whisper", "whisper")


@pytest.fixture(scope="module")
def model(folder: Path) -> SpeechModel:
    return tract_transformers.load_speech(folder, "cpu")


def close(found: np.ndarray, wanted: Any) -> None:
    wanted = np.array(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < BOUND * np.abs(wanted).max()


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_both_halves_give_what_transformers_gives(runtime: str, folder: Path, model: SpeechModel) -> None:
    """Several tokens at once, and then one by one."""
    encoder, decoder = (one.into_runnable(runtime) for one in tract_gguf.load_halves(folder))
    run = encoder.run([model.front_end.features(sound(0.8))])
    across = dict(zip(encoder.output_names(), (one.to_numpy() for one in run), strict=True))
    close(across["encoded"][0, ::7, :8], CASE["encoded"])
    past = {name: np.zeros((1, 4, 0, 8), np.float32) for name in decoder.input_names() if name.startswith("past")}
    given = {name: across[name] for name in decoder.input_names() if name.startswith("cross")}
    found, tokens = [], np.array([[START, EN, TRANSCRIBE, UNTIMED, 8, 9]])
    for first, last in ((0, 4), (4, 5), (5, 6)):
        run = decoder.run({"tokens": tokens[:, first:last], **past, **given})
        outputs = dict(zip(decoder.output_names(), (one.to_numpy() for one in run), strict=True))
        past = {name: outputs[name.replace("past", "present")] for name in past}
        found.append(outputs["logits"][0])
    close(np.concatenate(found)[:, :8], CASE["logits"])
    if runtime == "cpu":
        assert "host" not in str(encoder.explain()) + str(decoder.explain())


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_transcripts_are_those_of_transformers(runtime: str, folder: Path) -> None:
    model = tract_transformers.load_speech(folder, runtime)
    heard = sound(0.8)
    found = model.transcribe(heard, rate=16000, language="en")
    assert list(found.segments[0].tokens) == CASE["untimed"]
    assert found.text == speech_tokenizer().decode(CASE["untimed"]).strip()
    assert (found.language, found.segments[0].start, found.segments[0].end) == ("en", 0.0, 0.8)
    translated = model.transcribe(heard, rate=16000, language="de", task="translate")
    assert list(translated.segments[0].tokens) == CASE["translated"]


def test_languages_are_those_that_transformers_hears(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", "whisper")
    (folder / "generation_config.json").write_text(json.dumps(SAYS | {"lang_to_id": LANGUAGES}))
    model = tract_transformers.load_speech(folder, "cpu")
    assert len({*CASE["languages"]}) > 1
    for seed, wanted in enumerate(CASE["languages"]):
        assert model.language_of(sound(0.5, seed), rate=16000) == f"l{wanted}"
        assert model.transcribe(sound(0.5, seed), rate=16000, max_tokens=1).language == f"l{wanted}"


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_weights_in_16_bits(kind: Any, tmp_path: Path) -> None:
    """They are rounded, so numbers are other ones; the runtime unpacks none of them to memory."""
    folder = write_folder(tmp_path / "model", "whisper", kind=kind)
    model = tract_transformers.load_speech(folder, "cpu")
    assert "by unpack" not in str(model.encoder.explain()) + str(model.runnable.explain())
    found = model.transcribe(sound(0.8), rate=16000, language="en").segments[0].tokens
    assert list(found) == CASE["untimed"]


@pytest.mark.parametrize("seed", range(1, 9))
def test_tokens_with_times_are_those_of_transformers(seed: int, model: SpeechModel) -> None:
    """Those of the first window: `Rules` beside the package's own."""
    wanted = CASE["timed"][seed - 1]
    tokens, asked = model.tokens, [START, EN, TRANSCRIBE]
    across = model.encoder.run([model.front_end.features(sound(1.0, seed))])
    given = dict(zip(model.encoder.output_names(), across, strict=True))
    names, rules, written = model.runnable.input_names(), Rules(tokens, 3, timed=True), list[int]()
    while len(asked) + len(written) < 32:
        past = {name: np.zeros((1, 4, 0, 8), np.float32) for name in names if name.startswith("past")}
        seen = [*asked, *written]
        run = model.runnable.run(
            {"tokens": np.array([seen]), **past, **{name: given[name] for name in names if name.startswith("cross")}}
        )
        token = int(rules(seen, run[0].to_numpy()[0, -1]).argmax())
        if token == END:
            break
        written.append(token)
    assert written == wanted
    found = model.transcribe(sound(1.0, seed), rate=16000, language="en", timestamps=True)
    first = window_of(wanted, 0.0, 1.0, tokens, model.tokenizer)
    assert found.segments[: len(first.segments)] == first.segments


@pytest.mark.parametrize("number", range(len(CASE["windows"])))
def test_answers_are_cut_as_transformers_cuts_them(number: int, model: SpeechModel) -> None:
    case = CASE["windows"][number]
    found = window_of(case["tokens"], 2.0, 1.0, model.tokens, model.tokenizer)
    wanted = [(start, end, tuple(one for one in tokens if one < FIRST_TIME)) for start, end, tokens in case["parts"]]
    assert [(one.start, one.end, one.tokens) for one in found.segments] == wanted
    assert found.seconds == pytest.approx(case["seconds"])


@pytest.mark.parametrize(
    ("written", "parts", "seconds"),
    [
        ([], [(0.0, 1.0, ())], 1.0),
        ([8], [(0.0, 1.0, (8,))], 1.0),
        ([FIRST_TIME + 5, 8], [(0.1, 1.0, (8,))], 1.0),
        ([FIRST_TIME + 5, 8, FIRST_TIME + 9], [(0.1, 0.18, (8,))], 1.0),
        ([FIRST_TIME, 8, FIRST_TIME + 60], [(0.0, 1.0, (8,))], 1.0),  # behind the end of the sound
        ([FIRST_TIME, 8, FIRST_TIME, FIRST_TIME, 9], [(0.0, 0.0, (8,))], 1.0),  # no step forward is none
        ([FIRST_TIME, FIRST_TIME + 1, 9], [(0.0, 0.02, (9,))], 1.0),
    ],
)
def test_answers_that_are_no_pairs_of_times(
    written: list[int], parts: list[Any], seconds: float, model: SpeechModel
) -> None:
    found = window_of(written, 0.0, 1.0, model.tokens, model.tokenizer)
    assert [(one.start, one.end, one.tokens) for one in found.segments] == parts
    assert found.seconds == seconds


# --- long sound ---


def test_long_sound_is_read_in_windows(model: SpeechModel) -> None:
    """Each begins where the last whole part ended, and has what that window alone has."""
    heard = sound(3.3, seed=5)
    found = model.transcribe(heard, rate=16000, language="en")
    starts = [one.start for one in found.segments]
    assert starts == sorted(starts)
    assert len(found.segments) > 3
    assert found.segments[-1].end <= 3.3
    assert found.text == "".join(one.text for one in found.segments).strip()
    assert list(model.segments(heard, rate=16000, language="en")) == list(found.segments)
    first = model.transcribe(heard[:16000], rate=16000, language="en", timestamps=True)
    assert found.segments[0] == first.segments[0]


def test_sound_of_one_window_without_times_has_one_part(model: SpeechModel) -> None:
    assert len(model.transcribe(sound(1.0), rate=16000).segments) == 1
    assert len(model.transcribe(sound(1.0, 8), rate=16000, timestamps=True, language="en").segments) > 1


def test_a_model_without_times_reads_long_sound_window_by_window(folder: Path, tmp_path: Path) -> None:
    """The vocabulary ends before them."""
    case = json.loads(KEPT.read_text())["whisper"]
    model = tract_transformers.load_speech(folder, "reference")
    model._vocabulary = FIRST_TIME  # pyright: ignore[reportPrivateUsage]: as of a model of fewer tokens
    found = model.transcribe(sound(2.5), rate=16000, language="en")
    assert [(one.start, one.end) for one in found.segments] == [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5)]
    assert case["config"]["vocab_size"] > FIRST_TIME


def test_more_of_what_is_asked(model: SpeechModel) -> None:
    heard = sound(0.9)
    two = [model.transcribe(heard, rate=16000, language="en", temperature=2.0, seed=s).segments for s in (4, 4)]
    assert two[0] == two[1] != model.transcribe(heard, rate=16000, language="en", temperature=2.0, seed=5).segments
    assert len(model.transcribe(heard, rate=16000, max_tokens=2).segments[0].tokens) <= 2
    assert model.transcribe(heard, rate=16000, max_tokens=0).text == ""


# --- files and arrays ---


def test_files_channels_and_rates_give_the_same(model: SpeechModel, tmp_path: Path) -> None:
    heard = sound(0.9)
    wanted = model.transcribe(np.round(heard * 32767) / np.float32(32768), rate=16000, language="en")
    assert model.transcribe(write_wave(tmp_path / "a.wav", heard), language="en") == wanted
    both = np.stack([heard, heard], 1)
    assert model.transcribe(write_wave(tmp_path / "b.wav", both), language="en") == wanted
    integers = np.round(heard * 32767).astype(np.int16)
    assert model.transcribe(integers, rate=16000, language="en") == wanted
    fast = resampled(heard, 16000, 48000)
    assert len(fast) == 3 * len(heard)
    assert model.transcribe(fast, rate=48000, language="en").segments[0].end == 0.9


@pytest.mark.parametrize("length", [1, 2, 399, 400, 401, 15999, 16000, 16001])
def test_sizes_at_the_edges(length: int, model: SpeechModel) -> None:
    found = model.transcribe(sound(2.0)[:length], rate=16000, language="en", max_tokens=3)
    assert found.segments[0].start == 0.0
    assert np.isfinite(found.segments[-1].end)


@pytest.mark.parametrize(
    ("audio", "asked", "wanted"),
    [
        (np.zeros(0, np.float32), {"rate": 16000}, "the sound is empty"),
        (np.zeros((5, 0)), {"rate": 16000}, "of shape 5x0, wanted numbers"),
        (np.zeros((2, 2, 2)), {"rate": 16000}, "of shape 2x2x2"),
        (np.zeros(3, bool), {"rate": 16000}, "the samples are bool"),
        (np.zeros(3, np.int64), {"rate": 16000}, "the samples are int64, wanted floats, u8, i16 or i32"),
        (np.array([0, np.nan, 0]), {"rate": 16000}, "sample 1 of the sound is nan"),
        (np.array([0, 0, -np.inf]), {"rate": 16000}, "sample 2 of the sound is -inf"),
        (np.zeros(3), {}, "an array of samples wants its rate"),
        (np.zeros(3), {"rate": 0}, "the rate is 0, wanted 1000 to 768000"),
        (np.zeros(3), {"rate": -5}, "the rate is -5"),
        (np.zeros(3), {"rate": 16000.0}, "the rate is 16000.0"),
        (np.zeros(3), {"rate": True}, "the rate is True"),
        ([[1.0], [1.0, 2.0]], {"rate": 16000}, "no array of numbers"),
        (
            np.broadcast_to(np.float32(0), (21_600_001, 1)),
            {"rate": 1000},
            "takes 21600 seconds of 1000 samples, 21600 are allowed",
        ),
        (np.zeros(3), {"rate": 16000, "language": "xx"}, "the language is 'xx'; the model knows de, en"),
        (np.zeros(3), {"rate": 16000, "task": "sing"}, "the task is 'sing', wanted transcribe or translate"),
        (np.zeros(3), {"rate": 16000, "beams": 2}, "no parameter 'beams'"),
        (np.zeros(3), {"rate": 16000, "temperature": -1}, "temperature"),
        ("missing.wav", {}, "there is no such file"),
        ("missing.wav", {"rate": 16000}, "a file says its rate itself"),
    ],
    ids=str,
)
def test_what_is_no_sound_is_said(audio: Any, asked: dict[str, Any], wanted: str, model: SpeechModel) -> None:
    with pytest.raises(InputError, match=wanted):
        model.transcribe(audio, **asked)


# --- what a folder says ---


@pytest.mark.parametrize(
    ("file", "said", "wanted"),
    [
        ("preprocessor_config.json", PREPARES | {"feature_size": 17}, "makes 17 bands of 100 frames"),
        ("preprocessor_config.json", PREPARES | {"chunk_length": 2}, "makes 16 bands of 200 frames"),
        ("preprocessor_config.json", PREPARES | {"n_fft": 0}, "has 0 as n_fft, wanted an integer from 1"),
        ("preprocessor_config.json", PREPARES | {"hop_length": "x"}, "has 'x' as hop_length"),
        ("preprocessor_config.json", PREPARES | {"chunk_length": 1 << 40}, "as chunk_length, wanted"),
        ("preprocessor_config.json", PREPARES | {"dither": 0.1}, r"noise is to be added"),
        ("preprocessor_config.json", {"feature_extractor_type": "X"}, "prepared by 'X'"),
        ("generation_config.json", SAYS | {"suppress_tokens": ["a"]}, "suppress_tokens holds 'a'"),
        ("generation_config.json", SAYS | {"lang_to_id": [1]}, r"lang_to_id is \[1\]"),
        (
            "generation_config.json",
            SAYS | {"no_timestamps_token_id": 400},
            "token 400 is outside the model's vocabulary",
        ),
        ("generation_config.json", SAYS | {"task_to_id": {"transcribe": -4}}, "task_to_id holds -4"),
    ],
)
def test_files_that_say_nonsense(file: str, said: dict[str, Any], wanted: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", "whisper")
    (folder / file).write_text(json.dumps(said))
    with pytest.raises(ModelError, match=wanted):
        tract_transformers.load_speech(folder, "reference")


def test_names_of_tokens_stand_in_for_files(folder: Path) -> None:
    tokenizer = LibraryTokenizer(speech_tokenizer())
    assert tokens_of(SAYS, tokenizer) == tract_transformers.load_speech(folder, "reference").tokens
    found = tokens_of({"lang_to_id": SAYS["lang_to_id"]}, tokenizer)
    assert (found.start, found.end, found.untimed, dict(found.tasks)) == (START, END, UNTIMED, SAYS["task_to_id"])
    assert found.never == found.not_first == ()
    assert dict(tokens_of({"is_multilingual": True}, tokenizer).languages) == {"en": EN, "de": DE}
    assert dict(tokens_of({"vocab_size": 51865}, tokenizer).languages) == {"en": EN, "de": DE}
    assert not tokens_of({"vocab_size": 51864}, tokenizer).languages
    english = tokens_of({**SAYS, "is_multilingual": False}, tokenizer)
    assert english.prompt(None, "transcribe", timed=False) == [START, UNTIMED]
    with pytest.raises(InputError, match="knows English alone"):
        english.prompt("de", "transcribe", timed=False)
    with pytest.raises(InputError, match="knows English alone"):
        english.prompt("en", "translate", timed=False)
    plain = speech_tokenizer()
    plain.add_tokens(["x"])
    empty = LibraryTokenizer(type(plain).from_str(plain.to_str().replace("<|notimestamps|>", "<|no|>")))
    with pytest.raises(CorruptModel, match=r"no token <\|notimestamps\|>"):
        tokens_of({}, empty)


def test_times_are_no_text(model: SpeechModel) -> None:
    tokenizer = TimedTokenizer(LibraryTokenizer(speech_tokenizer()), model.tokens, 108)
    assert tokenizer.size == 108
    assert tokenizer.decode([8, FIRST_TIME, 9, 107]) == " w8 w9"
    assert len(tokenizer.pieces()) == 108


def test_rules_leave_a_token_wherever_they_apply() -> None:
    """Also behind the last time, and for a model that gives not-a-number or nothing but minus infinity for times."""
    tokens = SpeechTokens(START, END, UNTIMED, {}, {}, latest=3)
    rules, logits = Rules(tokens, 1, timed=True), np.zeros(108, np.float32)
    last = FIRST_TIME + 50
    assert np.isfinite(rules([START, 8, last], logits)).any()
    assert np.flatnonzero(np.isfinite(rules([START, 8, last], logits))).tolist() == [
        END,
        *range(END + 1, UNTIMED),
        last,
    ]
    assert np.flatnonzero(np.isfinite(rules([START], logits))).tolist() == [*range(FIRST_TIME, FIRST_TIME + 4)]
    logits[FIRST_TIME:] = -np.inf
    assert np.isfinite(rules([START, FIRST_TIME, 8], logits)[:WORDS]).all()
    logits[:] = np.nan
    assert np.isnan(rules([START, FIRST_TIME, 8], logits)[:WORDS]).all()


# --- the command ---


def test_the_command_writes_it_too(folder: Path, model: SpeechModel, tmp_path: Path) -> None:
    file = write_wave(tmp_path / "a.wav", sound(2.2, 8))
    wanted = model.transcribe(file, language="en", timestamps=True)
    run = CliRunner().invoke(
        app, ["transcribe", str(folder), str(file), "--language", "en", "--timestamps", "--threads", "1"]
    )
    assert run.exit_code == 0, run.output
    lines = [f"[{one.start:.2f} - {one.end:.2f}] {one.text.strip()}" for one in wanted.segments]
    assert run.stdout.splitlines() == lines
    run = CliRunner().invoke(app, ["transcribe", str(folder), str(file), "--language", "en", "--json"])
    found = json.loads(run.stdout)
    assert found == {**wanted.to_json(), "runtime": "cpu"}


def test_the_command_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF\x04\x00\x00\x00WAVE")
    run = CliRunner().invoke(app, ["transcribe", str(folder), str(tmp_path / "a.wav")])
    assert "it is no file of waves that is known" in run.output
    assert "a.wav" in run.output
    run = CliRunner().invoke(app, ["generate", str(folder), "-p", "x"])
    assert "the model takes sound, and not text" in run.output
    with pytest.raises(Unsupported, match="it is no model of speech"):
        tract_transformers.load_speech(write_nothing(tmp_path))


def write_nothing(folder: Path) -> Path:
    """A folder of a model that has one half."""
    speech_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    return folder
