"""Makes `halves.json`: what eager `transformers` computes in f64 of texts and sound.

It is run by hand, in an environment with torch and transformers: python make_halves.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)
from transformers.generation.logits_process import (
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    WhisperTimeStampLogitsProcessor,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(Path(__file__).parent))
from halves_files import (
    EN,
    END,
    FIRST_TIME,
    KEPT,
    LANGUAGES,
    PREPARES,
    PROMPTS,
    SAYS,
    SOUNDS,
    START,
    TRANSCRIBE,
    UNTIMED,
    WORDS,
    sound,
    text_tokenizer,
    weights,
)

Made = dict[str, Any]

T5 = {
    "vocab_size": 96,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
WHISPER = {
    "vocab_size": 108,
    "num_mel_bins": 16,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_source_positions": 50,
    "max_target_positions": 32,
}
MOST = 12
"""Tokens of an answer."""


def filled(model: torch.nn.Module) -> tuple[torch.nn.Module, dict[str, list[int]]]:
    """A model with the weights of its names, in f64, and the shapes of these."""
    model = model.eval()
    with torch.no_grad():
        for name, one in model.named_parameters():
            one.copy_(torch.from_numpy(weights(name, one.shape)))
    return model.double(), {name: list(one.shape) for name, one in model.named_parameters()}


def said(config: Any) -> Made:
    kept = json.loads(config.to_json_string(use_diff=False))
    dropped = ("_", "id2label", "label2id", "return_", "output_", "chunk_", "initializer", "dropout", "mask_")
    return {key: value for key, value in kept.items() if value is not None and not key.startswith(dropped)}


def rounded(tensor: torch.Tensor) -> list[Any]:
    return tensor.numpy().round(9).tolist()


def texts(kind: str = "t5", **more: object) -> Made:
    config = CONFIG_MAPPING[kind](**T5, **more)
    config._attn_implementation = "eager"
    model, shapes = filled(AutoModelForSeq2SeqLM.from_config(config))
    answers = []
    for prompt in PROMPTS:
        tokens = torch.tensor([text_tokenizer().encode(prompt).ids])
        with torch.no_grad():
            written = model.generate(
                tokens, decoder_start_token_id=0, do_sample=False, max_new_tokens=MOST, use_cache=False
            )
            found = model(input_ids=tokens, decoder_input_ids=written[:, :5], use_cache=False)
        answers.append(
            {
                "tokens": written[0, 1:].tolist(),
                "encoded": rounded(found.encoder_last_hidden_state[0, :, :8]),
                "logits": rounded(found.logits[0, :, :8]),
            }
        )
    return {"config": said(config), "shapes": shapes, "answers": answers}


def speech() -> Made:
    config = WhisperConfig(**WHISPER, **{k: SAYS[k] for k in NAMED}, attn_implementation="eager")
    model, shapes = filled(WhisperForConditionalGeneration(config))
    model.generation_config = GenerationConfig(**SAYS)
    prepare = WhisperFeatureExtractor(**PREPARES)
    found: Made = {"config": said(config), "shapes": shapes}

    def features(samples: np.ndarray, **more: object) -> torch.Tensor:
        made = prepare(samples, sampling_rate=16000, return_tensors="pt", **more)
        return made.input_features.double()

    short = features(sound(0.8))
    asked = torch.tensor([[START, EN, TRANSCRIBE, UNTIMED, 8, 9]])
    with torch.no_grad():
        run = model(input_features=short, decoder_input_ids=asked, use_cache=False)
        found["encoded"], found["logits"] = (
            rounded(run.encoder_last_hidden_state[0, ::7, :8]),
            rounded(run.logits[0, :, :8]),
        )
        model.generation_config.lang_to_id = LANGUAGES
        heard = [features(sound(0.5, seed)) for seed in range(12)]
        found["languages"] = [model.detect_language(one).item() for one in heard]
        model.generation_config.lang_to_id = SAYS["lang_to_id"]
        found["untimed"] = model.generate(short, do_sample=False, language="en", task="transcribe")[0].tolist()
        found["translated"] = model.generate(short, do_sample=False, language="de", task="translate")[0].tolist()
        found["timed"] = [timed(model, features(sound(1.0, seed))) for seed in range(1, 9)]
    found["windows"] = windows()
    return found


NAMED = ("decoder_start_token_id", "eos_token_id", "bos_token_id", "pad_token_id")


def timed(model: Any, features: torch.Tensor) -> list[int]:
    """The tokens of one window with times, by the processors of the package, until it ends or there is no more room."""
    asked = [START, EN, TRANSCRIBE]
    config = GenerationConfig(**SAYS)
    processors = (
        SuppressTokensLogitsProcessor(SAYS["suppress_tokens"]),
        SuppressTokensAtBeginLogitsProcessor(SAYS["begin_suppress_tokens"], begin_index=len(asked)),
        WhisperTimeStampLogitsProcessor(config, begin_index=len(asked)),
    )
    tokens = torch.tensor([asked])
    while tokens.shape[1] < WHISPER["max_target_positions"] and tokens[0, -1] != END:
        scores = model(input_features=features, decoder_input_ids=tokens, use_cache=False).logits[:, -1]
        for one in processors:
            scores = one(tokens, scores)
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], 1)
    return [one for one in tokens[0, len(asked) :].tolist() if one != END]


def windows() -> list[Made]:
    """Answers with times, the parts that the package cuts them into, and how far it goes on, in seconds."""
    random, found = np.random.default_rng(7), list[Made]()
    while len(found) < 40:
        tokens = [FIRST_TIME + int(random.integers(0, 5))]
        for _ in range(int(random.integers(1, 5))):
            tokens += random.integers(0, WORDS, random.integers(1, 4)).tolist()
            later = min(tokens[-1] if tokens[-1] >= FIRST_TIME else max(t for t in tokens if t >= FIRST_TIME), 100)
            end = later + int(random.integers(1, 8))
            tokens += [end, end + int(random.integers(0, 3))] if random.random() < 0.8 else [end]
            if len(tokens) > 1 and tokens[-2] < FIRST_TIME:
                break
        if random.random() < 0.4:
            tokens += random.integers(0, WORDS, 2).tolist() if tokens[-2] >= FIRST_TIME else []
        if not any(a >= FIRST_TIME and b >= FIRST_TIME for a, b in pairwise(tokens)):
            continue
        segments, offset = WhisperForConditionalGeneration._retrieve_segment(
            torch.tensor(tokens),
            [None],
            torch.tensor([2.0], dtype=torch.float64),
            FIRST_TIME,
            torch.tensor([100]),
            0.02,
            0.01,
            2,
            0,
            0,
            False,
            torch.zeros(1, 4),
        )
        parts = [
            [round(float(one["start"]), 2), round(float(one["end"]), 2), one["tokens"].tolist()] for one in segments
        ]
        found.append({"tokens": tokens, "parts": parts, "seconds": round(float(offset) * 0.01, 2)})
    return found


def spectra() -> Made:
    """What the front end of Whisper makes of sounds, at some bands and frames; and some of its bands."""
    found: Made = {}
    for bands in (80, 128):
        prepare = WhisperFeatureExtractor(feature_size=bands)
        for name, samples in SOUNDS.items():
            made = prepare(samples(), sampling_rate=16000, return_tensors="np").input_features[0]
            found[f"{name}, {bands}"] = made[::9, ::53].astype(np.float64).round(6).tolist()
    return found


CASES: dict[str, Callable[[], Made]] = {
    "t5": texts,
    "flan": lambda: texts(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "mt5": lambda: texts("mt5"),
    "umt5": lambda: texts("umt5"),
    "whisper": speech,
    "spectra": spectra,
}

if __name__ == "__main__":
    torch.manual_seed(0)
    kept = {name: make() for name, make in CASES.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case, sort_keys=True)}" for name, case in kept.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n")
