"""Which groups names tell."""

from __future__ import annotations

import pytest
from tract_view.entries import Entry, ReadConstant
from tract_view.names import DEEPEST, path_of, paths_of


def node(name: str, *read: int, weight: str = "") -> Entry:
    constants = (ReadConstant(1, weight, "4,f32", 0),) if weight else ()
    return Entry("node", name, "Op", tuple((one, 0, slot) for slot, one in enumerate(read)), constants=constants)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/layer1/layer1.0/conv1/Conv_output_0", ("layer1", "0", "conv1")),
        ("/encoder/layer.11/attention/self/MatMul", ("encoder", "layer", "11", "attention", "self")),
        ("encoder.layers.0.self_attn.weight", ("encoder", "layers", "0", "self_attn")),
        ("/layer1/relu.1", ("layer1",)),
        ("model/block[2]/add", ("model", "block[2]")),
        ("conv1", ()),
        ("", ()),
        ("/", ()),
        ("...", ()),
        ("a b.c", ()),  # no words
        ("<img src=x>.y", ()),
    ],
)
def test_groups_of_a_name(name: str, path: tuple[str, ...]) -> None:
    assert path_of(name, {name}) == path


def test_a_suffix_behind_a_name_that_is_there_is_no_group() -> None:
    names = {"relu", "relu.1", "features.0", "features.0.einsum"}
    assert path_of("relu.1", names) == ()
    assert path_of("features.0.einsum", names) == ("features",)


def test_groups_are_only_so_deep() -> None:
    path = path_of("/".join(f"g{number}" for number in range(10_000)), ())
    assert len(path) == DEEPEST
    assert path[-1].startswith("g11.g12.")


def test_names_of_weights_tell_where_names_of_nodes_do_not() -> None:
    """As of NNEF and of newer exporters: the sum of two branches is in the module around the one that is inside it."""
    entries = [
        Entry("input", "x", "source"),
        node("conv2d", 0, weight="layer1.0.conv1.weight"),
        node("relu", 1),
        node("conv2d_1", 2, weight="layer1.0.conv2.weight"),
        node("conv2d_2", 0, weight="layer1.0.downsample.0.weight"),
        node("add", 3, 4),
        node("linear", 5, weight="fc.weight"),
        node("cos", 6, weight="onnx::Cos_12"),
    ]
    assert paths_of(dict(enumerate(entries))) == [
        (),
        ("layer1", "0", "conv1"),
        ("layer1", "0"),
        ("layer1", "0", "conv2"),
        ("layer1", "0", "downsample", "0"),
        ("layer1", "0"),
        ("fc",),
        (),
    ]


def test_words_tell_where_they_stand_together() -> None:
    names = [f"layer{layer}_{part}_op" for layer in range(3) for part in ("a", "b", "c", "d", "e", "f")]
    paths = paths_of({number: node(name) for number, name in enumerate(names)})
    assert paths[0] == ("layer0", "a")
    assert paths[-1] == ("layer2", "f")


def test_words_that_alternate_tell_nothing() -> None:
    names = [f"{op}_{number}" for number in range(10) for op in ("conv", "relu")]
    assert set(paths_of({number: node(name) for number, name in enumerate(names)})) == {()}


def test_what_reads_nothing_is_where_it_is_read() -> None:
    entries = [node("onnx::Identity"), node("/a/b/add", 0), node("/a/c/mul", 0, 1)]
    assert paths_of(dict(enumerate(entries))) == [("a",), ("a", "b"), ("a", "c")]


def test_no_entries() -> None:
    assert paths_of({}) == []
