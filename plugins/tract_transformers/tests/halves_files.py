"""Folders of small networks with an encoder and a decoder: a T5, and a Whisper that hears windows of a second.

Weights only depend on names; `halves.json` has the configurations, the shapes of tensors, and what `transformers` makes
of them; `make_halves.py` makes it.
"""

from __future__ import annotations

import json
import wave
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from tokenizers.decoders import Fuse

KEPT = Path(__file__).with_name("halves.json")

PROMPTS = ("t5 t17 t3 t40 t41 t8 t60 t21", "t9")
"""What T5 is given."""

WORDS = 50
"""Of the vocabulary of Whisper, before its special tokens."""

SPECIAL = ("endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "notimestamps")
TIMES = 51
"""From 0 to a second."""

END, START, EN, DE, TRANSLATE, TRANSCRIBE, UNTIMED = range(WORDS, WORDS + len(SPECIAL))
FIRST_TIME = UNTIMED + 1

SAYS = {
    "decoder_start_token_id": START,
    "eos_token_id": END,
    "bos_token_id": END,
    "pad_token_id": END,
    "no_timestamps_token_id": UNTIMED,
    "lang_to_id": {"<|en|>": EN, "<|de|>": DE},
    "task_to_id": {"translate": TRANSLATE, "transcribe": TRANSCRIBE},
    "is_multilingual": True,
    "suppress_tokens": [3, 4, START, EN, DE, TRANSLATE, TRANSCRIBE, 7],
    "begin_suppress_tokens": [5, END],
    "max_initial_timestamp_index": 20,
    "max_length": 32,
}
"""The ``generation_config.json`` of Whisper."""

LANGUAGES = {f"<|l{number}|>": number for number in range(WORDS)}
"""Words that stand for languages, of which a model of random weights hears more than one."""

SMALL = {".q.": 0.05, "shared": 0.1, "embed_tokens": 0.1, "encoder_attn": 0.8}

PREPARES = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 16,
    "sampling_rate": 16000,
    "n_fft": 400,
    "hop_length": 160,
    "chunk_length": 1,
}
"""Its ``preprocessor_config.json``."""


def sound(seconds: float, seed: int = 1) -> np.ndarray:
    """Tones that come and go, at 16,000 samples a second."""
    random = np.random.default_rng(seed)
    time = np.arange(int(seconds * 16000)) / 16000
    tones = [np.sin(2 * np.pi * (f + 40 * np.sin(3 * time)) * time) for f in random.uniform(100, 4000, 5)]
    beats = [np.clip(np.sin(2 * np.pi * f * time + p), 0, 1) for f, p in random.uniform(0.5, 4, (5, 2))]
    noise = random.standard_normal(len(time)) * 0.01
    return (0.1 * np.sum(np.multiply(tones, beats), 0) + noise).astype(np.float32)


SOUNDS: Mapping[str, Callable[[], np.ndarray]] = {
    "whole": lambda: sound(30.0),
    "short": lambda: sound(4.321),
    "one sample": lambda: np.ones(1, np.float32),
    "nothing heard": lambda: np.zeros(7000, np.float32),
    "too long": lambda: sound(31.0),
}
"""For whose spectra the front end is asked."""


def weights(name: str, shape: Sequence[int]) -> np.ndarray:
    """In f32: matrices around 0, and so are biases; scales around 1.

    What T5 asks with is small, as nothing scales it; tokens are, as else each is followed by itself.
    """
    found = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if "embed_tokens" in name:
        found[FIRST_TIME:] *= np.float32(0.7)  # else there are few words between times
    if len(shape) > 1:
        small = next((scale for part, scale in SMALL.items() if part in name), 0.3)
        return found * np.float32(small)
    return found * np.float32(0.1) + np.float32(name.endswith("t"))


def safetensors(tensors: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file of tensors."""
    header, data = dict[str, Any](), b""
    for name, array in tensors.items():
        ends = [len(data), len(data) + array.nbytes]
        kind = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_folder(folder: Path, name: str, kind: Any = np.float32, **said: object) -> Path:
    """The folder of a network of `halves.json`, with weights of a kind. ``said``: what else ``config.json`` says."""
    case = json.loads(KEPT.read_text())[name]
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(case["config"] | said))
    held = {name: weights(name, shape).astype(kind) for name, shape in case["shapes"].items()}
    (folder / "model.safetensors").write_bytes(safetensors(held))
    if name == "whisper":
        speech_tokenizer().save(str(folder / "tokenizer.json"))
        (folder / "generation_config.json").write_text(json.dumps(SAYS))
        (folder / "preprocessor_config.json").write_text(json.dumps(PREPARES))
    else:
        text_tokenizer().save(str(folder / "tokenizer.json"))
        (folder / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 0, "eos_token_id": 1}))
    return folder


def text_tokenizer() -> Tokenizer:
    """Words t0 to t95, of which the first are those that T5 has in front."""
    words = ["<pad>", "</s>", *(f"t{number}" for number in range(2, 96))]
    found = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="t2"))
    found.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    found.add_special_tokens([AddedToken(word, special=True) for word in words[:2]])
    return found


def speech_tokenizer() -> Tokenizer:
    """Words " w0" to " w49", and the special tokens of Whisper without its times, as in old folders."""
    words = {f" w{number}": number for number in range(WORDS)}
    found = Tokenizer(models.WordLevel(words, unk_token=" w0"))
    found.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    found.decoder = Fuse()
    found.add_special_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False) for name in SPECIAL])
    return found


def write_wave(path: Path, samples: np.ndarray, rate: int = 16000) -> Path:
    """A file of waves of 16 bits, of samples, or samples,channels."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], 2, rate, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return path
