"""T5 from folders, beside what `transformers` makes of the same weights; and what cannot be asked of it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tract_transformers
from click.testing import CliRunner
from halves_files import KEPT, PROMPTS, text_tokenizer, weights, write_folder
from tract_transformers import Engine, TextToText

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, InputError, Unsupported

tract_gguf = pytest.importorskip("tract_gguf")

CASES = json.loads(KEPT.read_text())
BOUND = 4e-6
"""How far numbers are from those in f64, of the largest of them."""


@pytest.fixture(scope="module", params=["t5", "flan", "mt5", "umt5"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp(request.param) / request.param, request.param)


def loaded(folder: Path, runtime: str = "reference", **options: Any) -> TextToText:
    model = tract_transformers.load(folder, runtime, **options)
    assert isinstance(model, TextToText)
    return model


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("number", range(len(PROMPTS)))
def test_both_halves_give_what_transformers_gives(runtime: str, number: int, folder: Path) -> None:
    """Several tokens of the answer at once, and then one by one."""
    wanted = CASES[folder.name]["answers"][number]
    encoder, decoder = (one.into_runnable(runtime) for one in tract_gguf.load_halves(folder))
    read = np.array([text_tokenizer().encode(PROMPTS[number]).ids])
    across = dict(zip(encoder.output_names(), (one.to_numpy() for one in encoder.run([read])), strict=True))
    close(across["encoded"][0, :, :8], wanted["encoded"])
    past = {name: np.zeros((1, 4, 0, 12), np.float32) for name in decoder.input_names() if name.startswith("past")}
    given = {name: across[name] for name in decoder.input_names() if name.startswith("cross")}
    assert len(past) == len(given) == 6
    found = []
    tokens = np.array([[0, *wanted["tokens"][:4]]])
    for first, last in ((0, 3), (3, 4), (4, 5)):
        run = decoder.run({"tokens": tokens[:, first:last], **past, **given})
        outputs = dict(zip(decoder.output_names(), (one.to_numpy() for one in run), strict=True))
        past = {name: outputs[name.replace("past", "present")] for name in past}
        found.append(outputs["logits"][0])
    close(np.concatenate(found)[:, :8], wanted["logits"])


def close(found: np.ndarray, wanted: Any) -> None:
    wanted = np.array(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < BOUND * np.abs(wanted).max()


def test_everything_is_native_on_cpu(folder: Path) -> None:
    """Attention too, which is one kernel each: twice in the encoder, and twice in each layer of the decoder."""
    for model, count in zip(tract_gguf.load_halves(folder), (2, 6), strict=True):
        text = str(model.into_runnable("cpu").explain())
        assert "host" not in text
        assert f"attention on cpu ({count} groups)" in text


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_answers_are_those_of_transformers(runtime: str, folder: Path) -> None:
    model = loaded(folder, runtime)
    for prompt, wanted in zip(PROMPTS, CASES[folder.name]["answers"], strict=True):
        answer = model.generate(prompt, temperature=0, max_tokens=12)
        assert list(answer.tokens) == wanted["tokens"]
        assert answer.text == text_tokenizer().decode(wanted["tokens"])
        assert answer.prompt_tokens == len(prompt.split()) + 1
        assert answer.finish_reason == "length"


def test_options_are_those_of_other_models(folder: Path) -> None:
    model = loaded(folder)
    first, second = (model.generate(PROMPTS[0], seed=3, max_tokens=9, temperature=3.0, min_p=0) for _ in range(2))
    assert first.tokens == second.tokens != model.generate(PROMPTS[1], seed=3, max_tokens=9, temperature=3.0).tokens
    writing = model.generate(PROMPTS[0], seed=3, max_tokens=9, temperature=3.0, min_p=0, stream=True, logprobs=2)
    assert "".join(writing) == first.text
    assert len(writing.answer.logprobs or ()) == 9
    word = first.text.split()[4]
    stopped = model.generate(PROMPTS[0], seed=3, max_tokens=9, temperature=3.0, min_p=0, stop=word)
    assert stopped.finish_reason == "stop"
    assert stopped.text == first.text[: first.text.index(word)]
    assert model.generate(PROMPTS[0], max_tokens=0).text == ""


def test_two_answers_at_once_do_not_mix(folder: Path) -> None:
    model = loaded(folder)
    writings = [model.generate(prompt, temperature=0, max_tokens=6, stream=True) for prompt in PROMPTS]
    for _ in range(6):
        for writing in writings:
            next(writing)
    found = [list(writing.answer.tokens) for writing in writings]
    assert found == [one["tokens"][:6] for one in CASES[folder.name]["answers"]]


def test_threads_write_what_one_writes(folder: Path) -> None:
    model = loaded(folder, "cpu", threads=1)

    def written(number: int) -> list[int]:
        return list(model.generate(PROMPTS[number % 2], temperature=0, max_tokens=8).tokens)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(written, range(12)))
    assert found == [CASES[folder.name]["answers"][number % 2]["tokens"][:8] for number in range(12)]


def test_the_encoder_runs_once_and_when_it_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, runs = loaded(folder), list[int]()
    before = type(model.encoder).run

    def run(self: Any, *given: Any) -> Any:
        if self is model.encoder:
            runs.append(1)
        return before(self, *given)

    monkeypatch.setattr(type(model.encoder), "run", run)
    writing = model.generate(PROMPTS[0], max_tokens=5, stream=True)
    assert not runs
    list(writing)
    assert len(runs) == 1


def test_what_is_not_for_it_is_said(folder: Path, tmp_path: Path) -> None:
    model = loaded(folder)
    for wanted, ask in (
        ("draft is not for a model with an encoder", lambda: model.generate("t5", draft="prompt")),
        ("prompt_cache is not for", lambda: model.generate("t5", prompt_cache="x")),
        ("no parameter 'beams'", lambda: model.generate("t5", beams=2)),
        ("has no chat template", lambda: model.generate([{"role": "user", "content": "t5"}])),
        ("the prompt has 4097 tokens, 4096 are allowed", lambda: model.generate("t5 " * 4096)),
        ("which is no character", lambda: model.generate("\ud800")),
        ("keeps no pages", lambda: Engine(model)),
        ("one answer at a time", lambda: model.save_prompt(tmp_path / "x", "t5")),
        ("one answer at a time", model.past),
        ("adapters of a model with an encoder", lambda: tract_transformers.load(folder, adapters=["x"])),
    ):
        with pytest.raises(InputError, match=wanted):
            ask()
    assert model.generate("", max_tokens=1).prompt_tokens == 1  # the end alone
    with pytest.raises(Unsupported, match="takes text, and not sound"):
        tract_transformers.load_speech(folder)
    with pytest.raises(Unsupported, match="an encoder and a decoder, which are two models"):
        tract.load(folder)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"decoder_start_token_id": 96}, "decoder_start_token_id .* is 96, wanted a token from 0 to 95"),
        ({"decoder_start_token_id": "0"}, "is '0', wanted a token"),
        ({"eos_token_id": -1}, "token -1, which begins or ends a text, is not in the vocabulary"),
        ({"pad_token_id": None}, "nobody says with which token answers begin"),
    ],
)
def test_tokens_that_make_no_sense(said: dict[str, Any], wanted: str, tmp_path: Path) -> None:
    """``generation_config.json`` is not there."""
    folder = write_folder(tmp_path / "model", "t5", **said)
    (folder / "generation_config.json").unlink()
    with pytest.raises((CorruptModel, Unsupported), match=wanted):
        tract_transformers.load(folder, "reference")


def test_the_command_writes_it_too(folder: Path) -> None:
    run = CliRunner().invoke(
        app, ["generate", str(folder), "-p", PROMPTS[0], "--temperature", "0", "-n", "4", "--threads", "1", "--json"]
    )
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert found["tokens"] == CASES[folder.name]["answers"][0]["tokens"][:4]
    assert found["runtime"] == "cpu"
    for flags, wanted in (
        (["--set", "B=1"], "flags that say of one model"),
        (["--pass", "load"], "flags that say of one model"),
    ):
        run = CliRunner().invoke(app, [str(folder), *flags, "generate", "-p", "t5"])
        assert run.exit_code != 0
        assert wanted in run.output


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("dump", "an encoder and a decoder, which are two models"),
        ("llm-bench", "an encoder and a decoder, which are two models"),
        ("chat", "has no chat template"),
        ("transcribe", "takes text, and not sound"),
    ],
)
def test_other_commands_say_what_it_is(command: str, wanted: str, folder: Path) -> None:
    more = [str(folder / "config.json")] if command == "transcribe" else []
    run = CliRunner().invoke(app, [command, str(folder), *more], input="t5\n")
    assert wanted in run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize("tokenizer", ["in the file", "beside it"])
def test_a_file_of_gguf_writes_the_same(tokenizer: str, tmp_path: Path) -> None:
    path, case = tmp_path / "t5.gguf", CASES["flan"]
    writer, config = gguf.GGUFWriter(path, "t5"), case["config"]
    for ours, theirs in NUMBERS.items():
        writer.add_uint32(f"t5.{ours}", config[theirs])
    writer.add_float32("t5.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_uint32("t5.decoder_start_token_id", 0)
    writer.add_uint32("tokenizer.ggml.eos_token_id", 1)
    if tokenizer == "beside it":
        text_tokenizer().save(str(tmp_path / "tokenizer.json"))
    else:
        writer.add_string("tokenizer.ggml.model", "t5")
        writer.add_array("tokenizer.ggml.tokens", ["<pad>", "</s>", "<unk>", *(f"▁t{n}" for n in range(3, 96))])
        writer.add_array("tokenizer.ggml.scores", [0.0, 0.0, 0.0, *(-1.0 for _ in range(3, 96))])
        writer.add_array("tokenizer.ggml.token_type", [3, 3, 2, *(1 for _ in range(3, 96))])
        writer.add_uint32("tokenizer.ggml.padding_token_id", 0)
        writer.add_uint32("tokenizer.ggml.unknown_token_id", 2)
        writer.add_bool("tokenizer.ggml.add_space_prefix", True)
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5, 3)
    for name, shape in case["shapes"].items():
        called = "output" if name == "shared.weight" else table.get_name(name.removesuffix(".weight"))
        writer.add_tensor(f"{called}.weight", weights(name, shape))
        if called == "output":  # logits are not scaled, so they have a matrix of their own there, which is the same
            writer.add_tensor("token_embd.weight", weights(name, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = loaded(path)
    for prompt, wanted in zip(PROMPTS, case["answers"], strict=True):
        answer = model.generate(prompt, temperature=0, max_tokens=12)
        assert list(answer.tokens) == wanted["tokens"]
        assert answer.prompt_tokens == len(prompt.split()) + 1


NUMBERS = {
    "embedding_length": "d_model",
    "feed_forward_length": "d_ff",
    "block_count": "num_layers",
    "decoder_block_count": "num_decoder_layers",
    "attention.head_count": "num_heads",
    "attention.key_length": "d_kv",
    "attention.value_length": "d_kv",
    "attention.relative_buckets_count": "relative_attention_num_buckets",
    "attention.relative_farthest": "relative_attention_max_distance",
}
