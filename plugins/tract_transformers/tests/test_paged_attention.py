"""Attention over pages beside a loop over positions in f64, for texts that grow side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gpus import ON_GPUS
from tract_transformers.ops.paged_attention import CONTROLS, PagedAttention

import tract_core as tract
from tract_core.api.model import Model
from tract_core.data import DatumType
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

pytestmark = pytest.mark.usefixtures("virtual_gpu", "mlx_at_once")

Array = np.ndarray[Any, np.dtype[Any]]

RUNTIMES = ["reference", "cpu", *ON_GPUS]
SHAPES = {"positions": "T,i64", "begins": "R+1,i64", "pages": "R,M,i64", "copies": "C,2,i64", "room": "N,i64"}


def model_of(op: PagedAttention, heads: int, shared: int, depth: int, width: int) -> Model:
    model = TypedModel()
    facts = {"q": f"T,{heads},{shared},{depth},f32", "k": f"T,{heads},{depth},f32", "v": f"T,{heads},{width},f32"}
    texts = {**facts, **{name: SHAPES[name] for name in CONTROLS}}
    texts |= {"sinks": f"{heads},{shared},f32"} if op.sinks else {}
    sources = [model.add_source(name, parse_typed_fact(text, model.symbols)) for name, text in texts.items()]
    model.set_outputs(model.wire_node("attention", op, sources))
    return Model.from_typed(model)


class Texts:
    """Texts with all their queries, keys and values, of which a state sees some in each step."""

    def __init__(self, op: PagedAttention, sizes: tuple[int, int, int, int], runtime: str, count: int = 3) -> None:
        self.op, self.sizes, self.count = op, sizes, count
        heads, shared, depth, width = sizes
        draw = np.random.default_rng(sum(sizes))
        self.length = 2 * op.page + 3
        self.sinks = draw.normal(size=(heads, shared)).astype(np.float32)
        shapes = {"q": (heads, shared, depth), "k": (heads, depth), "v": (heads, width)}
        self.whole = {
            name: draw.normal(size=(count, self.length, *shape)).astype(np.float32) for name, shape in shapes.items()
        }
        table = -(-self.length // op.page)
        self.pages = draw.permutation(count * table).reshape(count, table)
        self.state = tract.runtime_for_name(runtime).prepare(model_of(op, *sizes)).spawn_state()

    def step(self, parts: Sequence[tuple[int, int, int]], **others: Array) -> Array:
        """``parts``: of each, the number of the text, and from which position to before which."""
        cut = {name: np.concatenate([one[text, a:b] for text, a, b in parts]) for name, one in self.whole.items()}
        given = {
            **cut,
            "positions": np.concatenate([np.arange(a, b) for _, a, b in parts]),
            "begins": np.cumsum([0, *(b - a for _, a, b in parts)]),
            "pages": self.pages[[text for text, _, _ in parts]],
            "copies": np.zeros((0, 2), np.int64),
            "room": np.zeros(self.pages.size, np.int64),
            **({"sinks": self.sinks} if self.op.sinks else {}),
        }
        return self.state.run({**given, **others})[0].to_numpy()

    def wanted(self, text: int, first: int, last: int) -> Array:
        """By definition, in f64."""
        op, (heads, shared, _, width) = self.op, self.sizes
        found = np.zeros((last - first, heads, shared, width))
        q, k, v = (self.whole[name][text].astype(np.float64) for name in "qkv")
        for place in range(first, last):
            low = 0 if op.window is None else max(place - op.window + 1, 0)
            for head in range(heads):
                scores = q[place, head] @ k[low : place + 1, head].T * op.scale
                if op.cap is not None:
                    scores = np.tanh(scores / op.cap) * op.cap
                if op.sinks:
                    scores = np.concatenate([scores, self.sinks[head][:, None].astype(np.float64)], -1)
                powers = np.exp(scores - scores.max(-1, keepdims=True))
                shares = (powers / powers.sum(-1, keepdims=True))[:, : place + 1 - low]
                found[place - first, head] = shares @ v[low : place + 1, head]
        return found


OPS = [
    PagedAttention(0.3, page=8),
    PagedAttention(0.5, cap=2.0, page=8),
    PagedAttention(0.3, window=1, page=8),
    PagedAttention(1.0, window=5, page=16),
    PagedAttention(0.2, window=40, cap=3.0),
    PagedAttention(0.3, window=3, page=8, sinks=True),
    PagedAttention(0.3, page=8, kept=DatumType.F16),
    PagedAttention(0.3, page=8, kept=DatumType.BF16),
    PagedAttention(0.3, page=8, kept=DatumType.I8),
    PagedAttention(0.2, window=9, cap=3.0, kept=DatumType.I8, sinks=True),
]
ERRORS = {DatumType.F32: 2e-6, DatumType.F16: 2e-3, DatumType.BF16: 2e-2, DatumType.I8: 3e-2}
"""Values are about 1, as are sums of shares of them; narrow floats have errors of 2**-11 and 2**-8.

Bytes have those of 2**-8 of the largest number of a value, which is up to 4.
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("op", OPS, ids=str)
def test_texts_that_grow_side_by_side(op: PagedAttention, runtime: str) -> None:
    texts, end = Texts(op, (2, 3, 8, 5), runtime), 2 * op.page + 3
    for parts in (
        [(0, 0, op.page + 2)],
        [(1, 0, 1), (0, op.page + 2, op.page + 3), (2, 0, 7)],
        [(1, 1, end - 1), (2, 7, 7), (0, op.page + 3, end)],
        [(1, end - 1, end)],
    ):
        found = texts.step(parts)
        wanted = np.concatenate([texts.wanted(*part) for part in parts])
        assert np.abs(found - wanted).max() < ERRORS[op.kept]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 7, 5, 16), (3, 1, 33, 20), (1, 2, 64, 64), (5, 4, 16, 3)])
def test_each_size(sizes: tuple[int, int, int, int], runtime: str) -> None:
    texts = Texts(PagedAttention(0.4), sizes, runtime, 2)
    parts = [(0, 0, 50), (1, 0, texts.length)]
    assert np.abs(texts.step(parts) - np.concatenate([texts.wanted(*one) for one in parts])).max() < 4e-6


def test_a_token_has_the_same_bits_in_any_company() -> None:
    """Alone, in a piece of a prompt, beside others, and with two threads."""
    op, sizes = PagedAttention(0.3, page=16), (2, 3, 24, 20)
    found = []
    for runtime, cuts in (("cpu(threads=1)", (35,)), ("cpu(threads=2)", (1,) * 35), ("cpu", (7, 13, 1, 14))):
        texts, place, rows = Texts(op, sizes, runtime), 0, []
        for count in cuts:
            others = [(1, 0, 1 + place % 5), (2, 0, 3)] if place % 3 else []
            rows.append(texts.step([(0, place, place + count), *others])[:count])
            place += count
        found.append(np.concatenate(rows))
    assert all(np.array_equal(one, found[0]) for one in found)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_pages_are_copied_before(runtime: str) -> None:
    """A second text begins as the first one does, in pages of its own, and goes another way."""
    texts = Texts(PagedAttention(0.3, page=8), (1, 2, 4, 4), runtime)
    texts.step([(0, 0, 12)])
    first, second = texts.pages[0], texts.pages[1]
    copies = np.array([[first[0], second[0]], [first[1], second[1]]])
    for one in texts.whole.values():
        one[1, :12] = one[0, :12]
    found = texts.step([(1, 12, 14), (0, 12, 13)], copies=copies)
    assert np.abs(found - np.concatenate([texts.wanted(1, 12, 14), texts.wanted(0, 12, 13)])).max() < 2e-6


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_copies_are_done_one_after_the_other(runtime: str) -> None:
    """A copy reads what one before it wrote; of several to one page, the last one counts."""
    texts = Texts(PagedAttention(0.3, page=4), (1, 2, 4, 4), runtime, 3)
    texts.pages = np.arange(9).reshape(3, 3)
    texts.step([(0, 0, 4), (1, 0, 4)])
    copies = np.array([[3, 6], [0, 6], [6, 7], [7, 8], [3, 7], [6, 6]])
    for text, page in ((0, 6), (1, 7), (0, 8)):  # what these begin with in the end
        texts.pages[2, 0] = page
        for one in texts.whole.values():
            one[2, :4] = one[text, :4]
        found = texts.step([(2, 4, 5)], copies=copies, pages=np.array([[page, 2, 5]]))
        assert np.abs(found - texts.wanted(2, 4, 5)).max() < 2e-6
        copies = np.zeros((0, 2), np.int64)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_kept_stays_as_room_grows_and_snapshots_are_taken(runtime: str) -> None:
    texts = Texts(PagedAttention(0.3, page=8), (1, 2, 4, 5), runtime, 1)
    texts.pages = np.array([[1, 0, 2]])
    texts.step([(0, 0, 9)], room=np.zeros(2, np.int64), pages=texts.pages[:, :2])
    frozen = texts.state.freeze()
    for _ in range(2):
        found = texts.step([(0, 9, 19)])
        assert np.abs(found - texts.wanted(0, 9, 19)).max() < 2e-6
        texts.state = frozen.unfreeze()
    (kept,) = frozen.kept.values()
    assert [one.shape for one in kept] == [(2, 1, 4, 8), (2, 1, 8, 5)]
    with pytest.raises(RunError, match="were kept in pages, this turn wants"):
        texts.step([(0, 0, 1)], room=np.zeros(1, np.int64), pages=np.array([[0]]))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_state_that_goes_on_from_a_snapshot_does_not_change_it(runtime: str) -> None:
    texts = Texts(PagedAttention(0.3, page=8), (1, 2, 4, 5), runtime, 1)
    texts.step([(0, 0, 9)])
    frozen = texts.state.freeze()
    texts.state = frozen.unfreeze()
    texts.step([(0, 0, 9)], k=-texts.whole["k"][0, :9], v=-texts.whole["v"][0, :9])
    texts.state = frozen.unfreeze()
    assert np.abs(texts.step([(0, 9, 19)]) - texts.wanted(0, 9, 19)).max() < 2e-6


@pytest.mark.parametrize("runtime", ["cpu", *ON_GPUS])
@pytest.mark.parametrize("kept", [DatumType.F32, DatumType.F16, DatumType.BF16, DatumType.I8], ids=str)
def test_snapshots_are_those_of_the_reference_and_go_on_there(kept: DatumType, runtime: str) -> None:
    op, sizes, found = PagedAttention(0.3, page=8, kept=kept), (2, 2, 4, 5), []
    texts, other = (Texts(op, sizes, one, 2) for one in (runtime, "reference"))
    for one in (texts, other):
        one.step([(0, 0, 9), (1, 0, 3)])
        found.append(one.state.freeze())
    (ours,), (right,) = (one.kept.values() for one in found)
    for a, b in zip(ours, right, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.astype("f8"), b.astype("f8"), rtol=1e-6)
    other.state = found[1].with_kept(found[0].kept).unfreeze()
    assert np.abs(other.step([(0, 9, 19)]) - texts.step([(0, 9, 19)])).max() < 2e-6


@pytest.mark.parametrize("runtime", ["cpu", *ON_GPUS])
def test_what_integers_of_8_bits_hold_of_strange_numbers(runtime: str) -> None:
    """Zeros, numbers that are too small, ties, and those that are not finite: the same integers everywhere."""
    op, sizes, found = PagedAttention(0.3, page=8, kept=DatumType.I8), (1, 1, 5, 4), []
    for one in (runtime, "reference"):
        texts = Texts(op, sizes, one, 1)
        keys, values = (texts.whole[name][0, :, 0] for name in "kv")
        keys[0], keys[1], keys[2] = 0, 2.0**-110, [127, -127, 0.5, 1.5, -2.5]
        keys[3, 2], keys[4, 0], values[1, 3], values[2] = np.nan, -np.inf, np.inf, -0.0
        texts.step([(0, 0, 6)])
        found.append(next(iter(texts.state.freeze().kept.values())))
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype
        finite = [np.where(np.isfinite(one), one.astype("f8"), np.nan) for one in (a, b)]
        np.testing.assert_allclose(*finite, rtol=1e-6, atol=1e-6)
    first = texts.pages[0, 0]
    assert found[0][0][first, 0, :, 2].tolist() == [127, -127, 0, 2, -2]
    assert not found[0][0][first, 0][:, [0, 1, 3, 4]].any()


WRONG = [
    ({"pages": np.array([[0, 1, 9]])}, "pages 0 to 9 were named, there is room for 9"),
    ({"pages": np.array([[0, -1, 2]])}, "pages -1 to 2 were named, there is room for 9"),
    ({"copies": np.array([[0, 9]])}, "copies 0 to 9 were named, there is room for 9"),
    ({"copies": np.array([[-(2**63), 2**63 - 1]])}, "were named, there is room for 9"),
    ({"positions": np.array([3, 24])}, "1 texts have pages for 24 positions"),
    ({"positions": np.array([-1, 2])}, "1 texts have pages for 24 positions"),
    ({"begins": np.array([0, 1])}, "2 tokens are not cut into texts"),
    ({"begins": np.array([1, 2])}, "2 tokens are not cut into texts"),
    ({"begins": np.array([0, 2**62])}, "2 tokens are not cut into texts"),
    ({"begins": np.array([0, 3, 2]), "pages": np.zeros((2, 3), np.int64)}, "2 tokens are not cut into texts"),
]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("others", "problem"), WRONG)
def test_what_does_not_exist_is_refused_and_nothing_is_lost(
    others: dict[str, Array], problem: str, runtime: str
) -> None:
    texts = Texts(PagedAttention(0.3, page=8), (1, 1, 4, 4), runtime)
    texts.step([(0, 0, 5)])
    with pytest.raises(RunError, match=problem) as caught:
        texts.step([(0, 5, 7)], **others)
    assert "attention" in str(caught.value)
    assert np.abs(texts.step([(0, 5, 7)]) - texts.wanted(0, 5, 7)).max() < 2e-6


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nothing_to_do(runtime: str) -> None:
    texts = Texts(PagedAttention(0.3, page=8), (1, 2, 4, 4), runtime)
    assert texts.step([(0, 0, 0)]).shape == (0, 1, 2, 4)
    empty = {"begins": np.array([0]), "pages": np.zeros((0, 3), np.int64)}
    assert texts.step([(0, 0, 0)], **empty).shape == (0, 1, 2, 4)
    texts.state.reset()
    assert texts.step([(0, 0, 0)], **empty, room=np.zeros(0, np.int64)).shape == (0, 1, 2, 4)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_no_number_stays_in_its_text(runtime: str) -> None:
    """What others left in pages, and scores that are not finite, are of no concern to a text that does not see them."""
    op = PagedAttention(0.3, page=8)
    texts = Texts(op, (1, 2, 4, 4), runtime)
    texts.pages[1] = texts.pages[0]
    texts.whole["v"][0], texts.whole["k"][0] = np.inf, np.nan
    assert np.isnan(texts.step([(0, 0, texts.length)])).all()
    assert (
        np.abs(
            texts.step([(1, 0, 3), (2, 0, 3)]) - np.concatenate([texts.wanted(1, 0, 3), texts.wanted(2, 0, 3)])
        ).max()
        < 2e-6
    )
    texts.whole["k"][2, 3:5], texts.whole["q"][2, 3:5] = 1e30, 1e30
    assert np.isnan(texts.step([(2, 3, 5)])).all()  # as of a softmax of infinities


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"q": "T,2,1,4,f16"}, "in f32, found"),
        ({"q": "T,2,4,f32"}, "wants queries T,H,G,D"),
        ({"q": "T,2,1,5,f32"}, "as many heads, of one size"),
        ({"v": "T,3,4,f32"}, "are no values for keys"),
        ({"pages": "R,i64"}, "wants pages of rank 2 in i64"),
        ({"positions": "T,f32"}, "wants positions of rank 1 in i64"),
    ],
)
def test_what_is_no_attention_is_refused(facts: dict[str, str], problem: str) -> None:
    whole = {"q": "T,2,1,4,f32", "k": "T,2,4,f32", "v": "T,2,4,f32", **{name: SHAPES[name] for name in CONTROLS}}
    model = TypedModel()
    inputs = [parse_typed_fact(text, model.symbols) for text in {**whole, **facts}.values()]
    with pytest.raises(FactError, match=problem):
        PagedAttention(0.3).output_facts(inputs)


WHOLE = 16
"""Positions of a page that are whole vectors on every processor."""


@pytest.mark.parametrize("runtime", ["cpu", *ON_GPUS])
def test_nothing_is_left_to_the_host(runtime: str) -> None:
    runnable = tract.runtime_for_name(runtime).prepare(model_of(replace(OPS[0], page=WHOLE), 2, 3, 8, 5))
    assert [one.how for one in runnable.explain().placements] != ["state"]
