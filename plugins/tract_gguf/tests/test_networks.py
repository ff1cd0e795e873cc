"""Networks of files beside the same in NumPy and f64: all positions at once, then one by one with the past."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tract_gguf
from gguf import GGMLQuantizationType as Type
from plainly import Plain
from tract_transformers.language_model.keep import description_of, keep_past
from tract_transformers.language_model.paged import PagedTexts, TextPart
from written import EXPERTS, OF, VOCABULARY, write_network

import tract_core as tract
from tract_core.errors import CorruptModel, ModelError, Unsupported

BOUND = 1e-5
"""How far logits are from those in f64, of the largest of them: f32 sums some hundred products a layer."""

ALL = """
    F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL MXFP4 NVFP4 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS
    IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S TQ1_0 TQ2_0
"""
KINDS = [Type[name] for name in ALL.split()]

WIDE = {"embedding_length": 256, "feed_forward_length": 256}
"""Rows of whole blocks of 256 elements."""


def past_of(model: tract.Model, batch: int) -> list[np.ndarray]:
    """No past."""
    graph = model.typed
    shapes = [graph.outlet_fact(outlet).shape for outlet in graph.inputs[1:]]
    return [np.zeros((batch, int(shape[1]), 0, int(shape[3])), np.float32) for shape in shapes]


def check(path: Path, runtime: str, batch: int = 1, count: int = 9, bound: float = BOUND) -> None:
    """The logits of some tokens at once, and of more tokens behind them, in a step of two and steps of one."""
    tokens = np.random.default_rng(batch).integers(0, VOCABULARY, (batch, count))
    wanted = Plain(path).logits(tokens)
    model = tract_gguf.load(path)
    past = past_of(model, batch)
    runnable = tract.runtime_for_name(runtime).prepare(model)
    found = []
    for first, last in [(0, count - 4), (count - 4, count - 2), (count - 2, count - 1), (count - 1, count)]:
        logits, *past = [one.to_numpy() for one in runnable.run([tokens[:, first:last], *past])]
        found.append(logits)
    assert past[0].shape[2] == count
    error = np.abs(np.concatenate(found, 1) - wanted).max()
    assert error < bound * np.abs(wanted).max()


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("architecture", OF)
def test_each_architecture(architecture, runtime, tmp_path) -> None:
    path = write_network(tmp_path / "m.gguf", architecture)
    check(path, runtime)
    check(path, runtime, batch=3)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("architecture", OF)
def test_texts_of_different_lengths_side_by_side(architecture, runtime, tmp_path) -> None:
    """Three texts in pages, which grow by turns and together: each as if it were alone, in f64."""
    path = write_network(tmp_path / "m.gguf", architecture)
    tokens = np.random.default_rng(3).integers(0, VOCABULARY, (3, 9)).tolist()
    wanted = Plain(path).logits(np.array(tokens))
    model = tract_gguf.load(path)
    keep_past(model)
    runnable = tract.runtime_for_name(runtime).prepare(model)
    texts = PagedTexts(runnable, description_of(runnable))
    several = [texts.text() for _ in tokens]
    for step in ([(0, 5)], [(1, 3), (0, 6)], [(2, 1), (0, 8), (1, 8)], [(1, 9), (2, 9), (0, 9)]):
        parts = [TextPart(several[text], tokens[text][len(several[text].tokens) : end], True) for text, end in step]
        for (text, end), part, rows in zip(step, parts, texts.extend(parts), strict=True):
            assert np.abs(rows - wanted[text, end - len(part.tokens) : end]).max() < BOUND * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("runtime", "kinds"), [("reference", KINDS), ("cpu", [Type.Q4_0, Type.Q4_K, Type.F16, Type.IQ1_M])]
)
def test_each_format_of_weights(runtime, kinds, tmp_path) -> None:
    """Each matrix of a network has another one. What `cpu` makes of each is tested there."""
    path = write_network(tmp_path / "m.gguf", kinds=kinds, said={**WIDE, "block_count": 4})
    assert {one.kind.upper() for one in tract_gguf.read(path).tensors.values()} == {"F32", *(one.name for one in kinds)}
    check(path, runtime)


def test_scales_beside_matrices_are_not_overlooked(tmp_path) -> None:
    """As networks in NVFP4 may have them."""
    scale = {"blk.0.attn_q.scale": np.full(1, 0.5, np.float32)}
    path = write_network(tmp_path / "m.gguf", kinds=[Type.NVFP4], said=WIDE, beside=scale)
    with pytest.raises(Unsupported, match=r"nothing reads the weights blk\.0\.attn_q\.scale"):
        tract_gguf.load(path)


SCALINGS = {
    "linear": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    "yarn": {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64,
    },
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_each_scaling_of_positions(architecture, scaling, tmp_path) -> None:
    check(write_network(tmp_path / "m.gguf", architecture, said=SCALINGS[scaling]), "reference", count=20)


def test_each_pair_may_have_a_factor_of_its_own(tmp_path) -> None:
    factors = {"rope_freqs.weight": np.linspace(1, 8, 8, dtype=np.float32)}
    check(write_network(tmp_path / "m.gguf", beside=factors), "reference", count=20)


@pytest.mark.parametrize("count", [5, 9])
def test_factors_depend_on_how_long_a_text_is(count, tmp_path) -> None:
    """Not with a past of the other kind, of which the keys have turned by other angles."""
    beside = {f"rope_factors_{name}.weight": np.linspace(1, far, 8, dtype=np.float32) for name, far in FAR.items()}
    said = {
        "rope.scaling.type": "longrope",
        "rope.scaling.attn_factor": 1.2,
        "rope.scaling.original_context_length": 6,
    }
    path = write_network(tmp_path / "m.gguf", "phi3", said=said, beside=beside)
    tokens = np.random.default_rng(count).integers(0, VOCABULARY, (1, count))
    model = tract_gguf.load(path)
    logits = model.clone().into_runnable().run([tokens, *past_of(model, 1)])[0].to_numpy()
    wanted = Plain(path).logits(tokens)
    assert np.abs(logits - wanted).max() < BOUND * np.abs(wanted).max()


def test_llama_with_experts_is_mixtral(tmp_path) -> None:
    """Experts of several formats stay packed."""
    said = {**EXPERTS, **WIDE, "expert_feed_forward_length": 256}
    path = write_network(tmp_path / "m.gguf", kinds=[Type.Q4_0, Type.Q6_K, Type.F16], said=said)
    for runtime in ("reference", "cpu"):
        check(path, runtime, batch=2)
    graph = tract_gguf.load(path).typed
    held = [node.outputs[0].fact.constant for node in graph.live_nodes() if node.op.name == "Const"]
    assert sum(one.nbytes for one in held if one is not None) < path.stat().st_size


def test_other_experts_are_refused(tmp_path) -> None:
    def refused(said, match, architecture="qwen3moe") -> None:
        with pytest.raises(ModelError, match=match):
            tract_gguf.load(write_network(tmp_path / "m.gguf", architecture, said=said))

    refused({"expert_gating_func": 2}, "chosen by sigmoids, which is not built")
    refused({"expert_used_count": 6}, "expert_used_count is 6, wanted an integer from 1 to 5")
    refused({"expert_used_count": 0}, "expert_used_count is 0")
    path = write_network(tmp_path / "m.gguf", "qwen3moe")
    path.write_bytes(path.read_bytes().replace(b"blk.1.ffn_up_exps", b"blk.1.ffn_up_else"))
    with pytest.raises(ModelError, match=r"there is no tensor 'blk.1.ffn_up_exps.weight'"):
        tract_gguf.load(path)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0"])
def test_experts_may_be_a_tensor_each(kind, tmp_path) -> None:
    """As in old files."""
    whole, apart = (
        write_network(tmp_path / f"{one}.gguf", kinds=[Type[kind]], said=EXPERTS, apart=one) for one in (False, True)
    )
    assert "blk.1.ffn_down.4.weight" in tract_gguf.read(apart).tensors
    tokens = np.arange(6)[None]
    found, wanted = (
        model.clone().into_runnable().run([tokens, *past_of(model, 1)])[0].to_numpy()
        for model in map(tract_gguf.load, (apart, whole))
    )
    np.testing.assert_array_equal(found, wanted)


def test_experts_that_are_a_tensor_each_are_all_there_and_alike(tmp_path) -> None:
    path = write_network(tmp_path / "m.gguf", kinds=[Type.F16, Type.F32], said=EXPERTS, apart=True)
    with pytest.raises(Unsupported, match=r"make 'blk.0.ffn_gate_exps.weight' are not all held in the same way"):
        tract_gguf.load(path)
    path = write_network(tmp_path / "m.gguf", said=EXPERTS, apart=True)
    path.write_bytes(path.read_bytes().replace(b"blk.0.ffn_gate.3", b"blk.0.ffn_gate.7"))
    with pytest.raises(CorruptModel, match=r"there is no tensor 'blk.0.ffn_gate.3.weight'"):
        tract_gguf.load(path)


FAR = {"short": 1.5, "long": 6.0}


def test_half_of_a_head_may_turn(tmp_path) -> None:
    check(write_network(tmp_path / "m.gguf", said={"rope.dimension_count": 8}), "cpu")


@pytest.mark.parametrize("kind", ["Q4_0", "Q6_K", "Q8_0", "F16", "BF16"])
def test_weights_stay_packed(kind, tmp_path) -> None:
    path = write_network(tmp_path / "m.gguf", kinds=[Type[kind]], tied=True, said=WIDE)
    graph = tract_gguf.load(path).typed
    names = [node.op.name for node in graph.live_nodes()]
    assert names.count("UnpackBlocks") == 1 + 2 * 7  # one for both ends of the network
    held = [node.outputs[0].fact.constant for node in graph.live_nodes() if node.op.name == "Const"]
    assert sum(one.nbytes for one in held if one is not None) < path.stat().st_size


def test_nothing_is_left_to_the_host_but_blocks_and_attention_is_one_kernel(tmp_path) -> None:
    for architecture in OF:
        model = tract_gguf.load(write_network(tmp_path / f"{architecture}.gguf", architecture))
        shown = str(tract.runtime_for_name("cpu").prepare(model).explain())
        layers = 6 if architecture == "gemma3" else 2
        assert (f"by attention on cpu ({layers} groups)" in shown) == (architecture != "gpt-oss"), architecture
        assert "host" not in shown, architecture
