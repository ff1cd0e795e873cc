"""Encoders that make vectors of texts and rank them, beside the same network in f64."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import onnx
import pytest
import tract_transformers
from model_files import folder_with_model
from onnx import TensorProto, helper, numpy_helper
from tiny_bert import PLACES, WIDTH, bert_file, bert_folder, score, states, trained_words
from tract_transformers.language_model.encoder import MOST_TOGETHER, batches, described
from vocabularies import CORPUS

from tract_core.errors import CorruptModel, InputError, MissingFile, ModelError, TractError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]

TEXTS = ["the quick fox", "x", "", "The lazy dog, and the other dogs. größer", "dog " * 50, "[SEP] the [MASK]", "日本"]
BOUND = 2e-6
"""How far numbers of vectors of length 1 are from those in f64; of texts alone from the same among others."""


def encoded(text: str, other: str | None = None) -> Any:
    tokenizer = trained_words()
    tokenizer.encode_special_tokens = True
    return tokenizer.encode(text, other)


def exact(text: str, pooling: str) -> Array:
    found = encoded(text)
    rows = states(found.ids, found.type_ids)
    one = {"mean": rows.mean(axis=0), "cls": rows[0], "last": rows[-1]}[pooling]
    return one / np.linalg.norm(one)


def of_sentences(mode: str | None = None, **said: Any) -> dict[str, Any]:
    """The files of sentence-transformers. ``mode``: the flag that is set; ``said``: of pooling, beside it."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "lasttoken")
    flags = {f"pooling_mode_{one}": one == mode for one in modes} if mode else {}
    return {"modules.json": modules, "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, **flags, **said}}


# --- vectors ---


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_vectors_are_those_of_f64_whatever_stands_beside_them(tmp_path: Path, runtime: str, pooling: Any) -> None:
    model = tract_transformers.load_embedder(bert_folder(tmp_path / "model"), runtime, pooling=pooling)
    found, wanted = model.embed(TEXTS), np.stack([exact(text, pooling) for text in TEXTS])
    assert (found.dtype, found.shape) == (np.float32, (len(TEXTS), WIDTH))
    assert np.abs(found - wanted).max() < BOUND
    for number, text in enumerate(TEXTS):
        alone = model.embed(text)
        assert np.abs(alone - wanted[number]).max() < BOUND
        assert np.abs(alone - found[number]).max() < BOUND
    assert len(model.embed([])) == 0
    assert model.embed(iter(TEXTS[:2])).shape == (2, WIDTH)


MODES = {
    "cls_token": "cls",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean",
    "lasttoken": "last",
}


@pytest.mark.parametrize("mode", [*MODES, None])
def test_folders_say_what_stands_for_a_text(tmp_path: Path, mode: str | None) -> None:
    """In either form of their files; one that says nothing has the mean."""
    said = of_sentences(mode) if mode else None
    model = tract_transformers.load_embedder(bert_folder(tmp_path / "model", modules=said))
    wanted = MODES[mode] if mode else "mean"
    assert model.pooling == wanted
    assert np.abs(model.embed(TEXTS[3])[0] - exact(TEXTS[3], wanted)).max() < BOUND
    if mode:
        newer = of_sentences(
            pooling_mode=mode.removesuffix("_token") if mode == "cls_token" else mode.removesuffix("_tokens")
        )
        newer = newer if mode != "mean_sqrt_len_tokens" else of_sentences(pooling_mode=mode)
        assert tract_transformers.load_embedder(bert_folder(tmp_path / "newer", modules=newer)).pooling == wanted
        other = "mean" if wanted == "cls" else "cls"
        model = tract_transformers.load_embedder(tmp_path / "model", pooling=other)
        assert np.abs(model.embed(TEXTS[3])[0] - exact(TEXTS[3], other)).max() < BOUND


KINDS = {
    gguf.PoolingType.NONE: "mean",
    gguf.PoolingType.MEAN: "mean",
    gguf.PoolingType.CLS: "cls",
    gguf.PoolingType.LAST: "last",
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_say_what_stands_for_a_text(tmp_path: Path, kind: gguf.PoolingType) -> None:
    model = tract_transformers.load_embedder(bert_file(tmp_path / "m.gguf", kind))
    assert model.pooling == KINDS[kind]
    wanted = np.stack([exact(text, KINDS[kind]) for text in TEXTS])
    assert np.abs(model.embed(TEXTS) - wanted).max() < BOUND
    assert tract_transformers.load_embedder(tmp_path / "m.gguf", pooling="last").pooling == "last"


def test_what_stands_in_front_of_texts_and_small_letters(tmp_path: Path) -> None:
    prompts = {"default_prompt_name": "query", "prompts": {"query": "the dog: ", "other": "x"}}
    said = of_sentences("cls_token") | {"config_sentence_transformers.json": prompts}
    folder = bert_folder(tmp_path / "model", modules=said | {"sentence_bert_config.json": {"do_lower_case": True}})
    model = tract_transformers.load_embedder(folder)
    assert np.abs(model.embed("QUICK")[0] - exact("the dog: quick", "cls")).max() < BOUND
    prompts["default_prompt_name"] = None
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    model = tract_transformers.load_embedder(folder)
    assert np.abs(model.embed("quick")[0] - exact("quick", "cls")).max() < BOUND


def test_texts_by_how_near_they_are(tmp_path: Path) -> None:
    model = tract_transformers.load_embedder(bert_folder(tmp_path / "model"))
    near = np.stack([exact(text, "mean") for text in TEXTS]) @ exact("the dog", "mean")
    found = model.rank("the dog", TEXTS)
    assert [place for place, _ in found] == np.argsort(-near).tolist()
    assert all(abs(cosine - near[place]) < BOUND for place, cosine in found)


def test_many_threads_may_use_one(tmp_path: Path) -> None:
    model = tract_transformers.load_embedder(bert_folder(tmp_path / "model"))
    wanted, found = model.embed(TEXTS), {}

    def ask(number: int) -> None:
        found[number] = [model.embed(TEXTS) for _ in range(5)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, wanted) for several in found.values() for one in several)
    assert len(found) == 3


@pytest.mark.parametrize("masked", [True, False])
def test_each_text_is_computed_once_beside_others_of_like_length(masked: bool) -> None:
    random = np.random.default_rng(5)
    lengths = [int(one) for one in (*random.integers(1, 600, 300), 5000, 1, 1)]
    found = list(batches(lengths, masked=masked))
    assert sorted(number for together in found for number in together) == list(range(len(lengths)))
    for together in found:
        own = [lengths[number] for number in together]
        assert len(own) * max(own) <= MOST_TOGETHER or len(own) == 1
        assert max(own) - min(own) <= (max(max(own) // 4, 8) if masked else 0)
    assert len(found) < (120 if masked else 300)
    assert list(batches([])) == []


# --- rerankers ---

QUERY, ANSWERS = "the quick dog", ["the lazy dog jumps", "", "x", "dogs " * 40, "größer geht's nicht", "[SEP] fox"]


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("form", ["folder", "file"])
def test_scores_of_pairs_are_those_of_f64(tmp_path: Path, runtime: str, form: str) -> None:
    if form == "folder":
        path = bert_folder(tmp_path / "model", head=True)
    else:
        path = bert_file(tmp_path / "m.gguf", gguf.PoolingType.RANK, head=True)
    model = tract_transformers.load_reranker(path, runtime)
    pairs = [encoded(QUERY, text) for text in ANSWERS]
    assert {*pairs[0].type_ids} == {0, 1}
    wanted = np.array([score(one.ids, one.type_ids) for one in pairs])
    found = model.scores(QUERY, ANSWERS)
    assert np.abs(found - wanted).max() < 1e-5
    assert [place for place, _ in model.rank(QUERY, ANSWERS)] == np.argsort(-wanted).tolist()
    assert all(abs(one - wanted[place]) < 1e-5 for place, one in model.rank(QUERY, ANSWERS))
    for number, text in enumerate(ANSWERS):
        assert abs(model.scores(QUERY, text)[0] - found[number]) < 1e-5
    assert model.rank(QUERY, []) == []
    assert model.scores(QUERY, []).shape == (0,)


def test_vectors_of_a_reranker_and_ranks_of_what_is_none(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "scores", head=True)
    model = tract_transformers.load_embedder(folder, pooling="cls")
    assert np.abs(model.embed("x")[0] - exact("x", "cls")).max() < BOUND
    path = bert_file(tmp_path / "m.gguf", gguf.PoolingType.RANK, head=True)
    with pytest.raises(Unsupported, match=r"gives pairs of texts scores, and no vectors\n  hint: .*load_reranker"):
        tract_transformers.load_embedder(path)
    with pytest.raises(Unsupported, match=r"gives no scores of texts.*\n  hint: .*load_embedder"):
        tract_transformers.load_reranker(bert_folder(tmp_path / "vectors"))
    with pytest.raises(Unsupported, match="gives 3 scores of each text; one that ranks texts gives 1"):
        tract_transformers.load_reranker(bert_folder(tmp_path / "labels", head=True, labels=3))
    with pytest.raises(Unsupported, match="gives no scores of texts"):
        tract_transformers.load_reranker(folder_with_model(tmp_path))


# --- as others export encoders ---


def exported(folder: Path, *, masked: bool = True, output: str = "last_hidden_state", strange: bool = False) -> Path:
    """A folder with a model of ONNX, whose vectors are rows of a table. What is masked is infinite, so it is seen."""
    folder.mkdir()
    table = np.random.default_rng(1).normal(size=(trained_words().get_vocab_size(), WIDTH)).astype(np.float32)
    names = ["input_ids", *(["attention_mask", "token_type_ids"] if masked else []), *(["speed"] if strange else [])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["0"])]
    for number, name in enumerate(names[1:]):
        nodes.append(helper.make_node("Cast", [name], [f"{name}.f32"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Unsqueeze", [f"{name}.f32", "axis"], [f"{name}.wide"]))
        kind = "Div" if name == "attention_mask" else "Add"
        nodes.append(helper.make_node(kind, [str(number), f"{name}.wide"], [str(number + 1)]))
    nodes.append(helper.make_node("Identity", [str(len(names) - 1)], [output]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"]) for name in names]
    given = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["B", "S", WIDTH])]
    held = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([2]), "axis")]
    graph = helper.make_graph(nodes, "graph", inputs, given, held)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "model.onnx")
    trained_words().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": PLACES}))
    return folder


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings"])
def test_a_model_of_onnx(tmp_path: Path, output: str, masked: bool) -> None:
    table = np.random.default_rng(1).normal(size=(trained_words().get_vocab_size(), WIDTH)).astype(np.float32)
    model = tract_transformers.load_embedder(exported(tmp_path / "model", output=output, masked=masked))
    wanted = np.stack([table.astype(np.float64)[encoded(text).ids].mean(axis=0) for text in TEXTS])
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    assert np.abs(model.embed(TEXTS) - wanted).max() < BOUND


def test_an_encoder_that_wants_something_else(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="the encoder wants 'speed', B,S,i64, and nobody knows"):
        tract_transformers.load_embedder(exported(tmp_path / "model", strange=True))
    facts = {"input_ids": "B,S,i64", "last_hidden_state": "B,S,8,f32", "logits": "B,S,9,f32", "scores": "B,S,8,f32"}
    typed = {name: parse_typed_fact(text, TypedModel().symbols) for name, text in facts.items()}
    for names in (["logits"], ["logits", "last_hidden_state"], ["scores"], []):
        assert described({"input_ids": typed["input_ids"]}, {name: typed[name] for name in names}) is None
    assert described({"image": typed["last_hidden_state"]}, typed) is None


# --- what is wrong ---


@pytest.mark.parametrize("form", ["folder", "file"])
def test_encoders_write_no_text(tmp_path: Path, form: str) -> None:
    path = bert_folder(tmp_path / "model") if form == "folder" else bert_file(tmp_path / "m.gguf")
    for load in (tract_transformers.load, lambda path: tract_transformers.load(path, cache="f16")):
        with pytest.raises(Unsupported, match=r"this is an encoder, which writes no text\n  hint: .*load_embedder"):
            load(path)


def test_texts_that_are_none(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model", head=True)
    embedder, reranker = tract_transformers.load_embedder(folder), tract_transformers.load_reranker(folder)
    too_long = "dog " * PLACES
    tokens = len(encoded(too_long).ids)
    cases = [([3], "a text is a int"), (too_long, f"a text has {tokens} tokens, and the model's context is {PLACES}")]
    for texts, problem in [*cases, ("\ud800", "which is no character")]:
        with pytest.raises(InputError, match=problem):
            embedder.embed(texts)
    pair = len(encoded(QUERY, too_long).ids)
    cases = [
        ([3], "a text is a int"),
        (too_long, f"both texts have {pair} tokens, and the model's context is {PLACES}"),
    ]
    for texts, problem in [*cases, ("\ud800", "which is no character")]:
        with pytest.raises(InputError, match=problem):
            reranker.scores(QUERY, texts)
    with pytest.raises(InputError, match="a text is a NoneType"):
        reranker.rank(None, ["x"])
    most = {"sentence_bert_config.json": {"max_seq_length": 8}}
    short = tract_transformers.load_embedder(bert_folder(tmp_path / "short", modules=most))
    with pytest.raises(InputError, match="the model's context is 8"):
        short.embed(" x" * 7)
    assert short.embed(" x" * 6).shape == (1, WIDTH)


def test_what_encoders_do_not_take(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model")
    for options, problem in (
        ({"end": True}, r"up to the encoder's tokenizer \(end=True\)"),
        ({"adapters": [tmp_path]}, "adapters of encoders are not known"),
        ({"adapters": str(tmp_path)}, "adapters of encoders are not known"),
        ({"pooling": "max"}, "pooling is 'max', wanted one of last, mean, cls"),
    ):
        with pytest.raises(InputError, match=problem):
            tract_transformers.load_embedder(folder, **options)
    with pytest.raises(InputError, match="the first token of a text says nothing of it"):
        tract_transformers.load_embedder(folder_with_model(tmp_path), pooling="cls")


OUTSIDE = [{"path": "../outside", "type": "x.Pooling"}]
WRONG: dict[str, tuple[dict[str, Any], type[TractError], str]] = {
    "max": (of_sentences("max_tokens"), Unsupported, "pooling_mode_max_tokens stands for a text, which is not built"),
    "two": (of_sentences("cls_token", pooling_mode_mean_tokens=True), Unsupported, "cls_token, .*mean_tokens stands"),
    "none": (of_sentences(), Unsupported, "says that nothing stands for a text"),
    "named": (of_sentences(pooling_mode="weightedmean"), Unsupported, "weightedmean stands for a text"),
    "dense": ({"modules.json": [{"path": "2_Dense", "type": "a.b.Dense"}]}, Unsupported, "type 'Dense' behind the"),
    "no list": ({"modules.json": {"a": 1}}, CorruptModel, "modules.json: it is no list of objects"),
    "no objects": ({"modules.json": [1]}, CorruptModel, "it is no list of objects"),
    "missing": ({"modules.json": [{"path": "1_P", "type": "x.Pooling"}]}, ModelError, r"1_P/config\.json"),
    "outside": ({"modules.json": OUTSIDE}, ModelError, r"outside/config\.json"),
    "number": ({"modules.json": [{"path": 3, "type": "x.Pooling"}]}, ModelError, r"3/config\.json"),
    "of no object": (of_sentences() | {"1_Pooling/config.json": [1]}, CorruptModel, "it holds a list, wanted an obj"),
    "prompt name": ({"config_sentence_transformers.json": {"default_prompt_name": [1]}}, CorruptModel, "wanted a text"),
    "prompt": (
        {"config_sentence_transformers.json": {"default_prompt_name": "a", "prompts": {"a": 3}}},
        CorruptModel,
        "3",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_of_sentence_transformers_that_are_wrong(tmp_path: Path, name: str) -> None:
    files, kind, problem = WRONG[name]
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    folder = bert_folder(tmp_path / "model", modules=files)
    with pytest.raises(kind, match=problem):
        tract_transformers.load_embedder(folder)


@pytest.mark.parametrize(("said", "problem"), [(5, "5"), ([2, 2], "array"), ("cls", "'cls'"), (-1, "-1")], ids=str)
def test_files_that_say_no_kind_of_pooling(tmp_path: Path, said: Any, problem: str) -> None:
    path = bert_file(tmp_path / "m.gguf", said)
    with pytest.raises(CorruptModel, match=f"have {problem}.* as pooling_type, wanted an integer from 0 to 4"):
        tract_transformers.load_embedder(path)
    assert tract_transformers.load_embedder(path, pooling="cls").pooling == "cls"


@pytest.mark.parametrize("content", ["{", "\x00", "[" * 100_000])
def test_modules_that_are_no_json(tmp_path: Path, content: str) -> None:
    folder = bert_folder(tmp_path / "model")
    (folder / "modules.json").write_text(content)
    with pytest.raises(CorruptModel, match=r"modules\.json: it is no JSON"):
        tract_transformers.load_embedder(folder)


def test_incomplete_folders(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model")
    with pytest.raises(MissingFile):
        tract_transformers.load_embedder(tmp_path / "nowhere")
    for name, kind in (("tokenizer.json", InputError), ("config.json", ModelError)):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        for load in (tract_transformers.load_embedder, tract_transformers.load_reranker):
            with pytest.raises(kind, match=name):
                load(folder)
        (folder / name).write_bytes(content)
    assert tract_transformers.load_embedder(folder).embed(CORPUS[0]).shape == (1, WIDTH)


def test_a_folder_of_links_as_in_the_cache(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model", modules=of_sentences("cls_token"))
    snapshot, blobs = tmp_path / "snapshots" / "main", tmp_path / "blobs"
    blobs.mkdir()
    for number, path in enumerate(one for one in sorted(folder.rglob("*")) if one.is_file()):
        path.rename(blobs / str(number))
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blobs / str(number))
    model = tract_transformers.load_embedder(snapshot)
    assert np.abs(model.embed("the dog")[0] - exact("the dog", "cls")).max() < BOUND


def test_language_models_say_it_too(tmp_path: Path) -> None:
    path = folder_with_model(tmp_path)
    assert tract_transformers.load_embedder(path).pooling == "last"
    (tmp_path / "1_Pooling").mkdir()
    for name, said in of_sentences("mean_tokens").items():
        (tmp_path / name).write_text(json.dumps(said))
    model = tract_transformers.load_embedder(path)
    assert model.pooling == "mean"
    wanted = tract_transformers.load_embedder(path, pooling="mean").embed(TEXTS[:2])
    assert np.array_equal(model.embed(TEXTS[:2]), wanted)
