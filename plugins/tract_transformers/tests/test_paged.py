"""Texts in pages beside a network in f64 that sees each of them whole, whatever was cut off, forked or remembered."""

from __future__ import annotations

import random

import numpy as np
import pytest
from gpus import ON_GPUS
from tiny_llama import TinyLlama
from tract_transformers.language_model.keep import description_of, keep_past, pasts_of
from tract_transformers.language_model.paged import PagedPast, PagedTexts, TextPart
from tract_transformers.language_model.pages import Memory, PagePool, Text
from tract_transformers.transforms.masks import Masks
from tract_transformers.transforms.paged import PagedCache

from tract_core.api.model import Model
from tract_core.errors import CorruptModel, InputError, LimitExceeded, RunError, TransformError
from tract_core.limits import LoadLimits
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired

NETWORK = TinyLlama(vocabulary=16, layers=2, width=16, heads=2, groups=2, size=4, inner=16)
BOUND = 2e-5
"""Logits are about 3, in f32 through two layers."""


def texts_of(
    runtime: str, *, page: int = 8, kept: str = "f32", most: int | None = None, remembered: int = 8
) -> PagedTexts:
    """``remembered``: in pages."""
    model = NETWORK.model()
    model.transform(PagedCache(page=page, kept=kept))
    runnable = model.into_runnable(runtime)
    description = description_of(runnable)
    assert description.pages is not None
    return PagedTexts(runnable, description, most=most, remembered=remembered * description.pages[1])


class Story:
    """What happens to texts at random, each of which is compared with the network in f64."""

    def __init__(self, texts: PagedTexts, seed: int) -> None:
        self.texts, self.draw = texts, random.Random(seed)
        self.live = [PagedPast(texts)]
        self.exact: dict[tuple[int, ...], np.ndarray] = {}

    def wanted(self, tokens: list[int]) -> np.ndarray:
        key = tuple(tokens)
        if key not in self.exact:
            self.exact[key] = NETWORK.logits(list(tokens))
        return self.exact[key]

    def tokens(self, most: int) -> list[int]:
        """Few different ones, so that texts begin alike."""
        return [self.draw.randrange(2) for _ in range(self.draw.randint(1, most))]

    def step(self) -> None:
        past = self.draw.choice(self.live)
        what = self.draw.choice(["extend", "extend", "together", "truncate", "fork", "close", "recall", "freeze"])
        if what == "extend" and len(past.tokens) < 22:
            new = self.tokens(11)
            found = past.extend(new, every=True)
            assert np.abs(found - self.wanted(list(past.tokens))[-len(new) :]).max() < BOUND
        elif what == "together":
            parts = [TextPart(one._text, self.tokens(3)) for one in self.live if len(one.tokens) < 22]
            for part, rows in zip(parts, self.texts.extend(parts) if parts else [], strict=True):
                assert np.abs(rows - self.wanted(part.text.tokens)[-1:]).max() < BOUND
        elif what == "truncate":
            past.truncate(self.draw.randint(0, len(past.tokens)))
        elif what == "fork" and len(self.live) < 5:
            self.live.append(past.fork())
        elif what == "close" and len(self.live) > 1:
            self.live.remove(past)
            past.close()
        elif what == "recall":
            before, wanted = list(past.tokens), self.tokens(24)
            length = past.recall(wanted)
            assert list(past.tokens) == wanted[:length]
            assert length >= next(
                (at for at, two in enumerate(zip(before, wanted, strict=False)) if two[0] != two[1]), 0
            )
        elif what == "freeze":
            frozen, tokens = past.freeze(), list(past.tokens)
            past.truncate(0)
            past.thaw(tokens, frozen)


@pytest.mark.usefixtures("virtual_gpu", "mlx_at_once")
@pytest.mark.parametrize(
    ("runtime", "kept", "steps"),
    [("cpu", "f32", 1000), ("reference", "f32", 150), *((one, "f32", 50) for one in ON_GPUS)],
)
def test_whatever_happens_to_texts(runtime: str, kept: str, steps: int) -> None:
    texts = texts_of(runtime, kept=kept)
    story = Story(texts, steps)
    for _ in range(steps):
        story.step()
    for past in story.live:
        past.close()
    assert texts.pages.taken <= 8
    texts.memory.shrink(0)
    assert texts.pages.taken == 0


@pytest.mark.usefixtures("virtual_gpu")
@pytest.mark.parametrize("runtime", ON_GPUS)
def test_nothing_is_left_to_the_host(runtime: str) -> None:
    """A prompt in two pieces beside another text, a fork, and steps of all of them."""
    model = NETWORK.model()
    model.transform(PagedCache(page=8))
    assert not {one.how for one in model.into_runnable(runtime).explain().placements} & {"numpy", "state"}
    texts = texts_of(runtime)
    first, second = texts.past(), texts.past()
    for past, new in ((first, [1, 2, 3, 4, 5, 6, 7, 8, 9]), (second, [3, 1, 4]), (first, [10, 11])):
        found = past.extend(new, every=True)
        assert np.abs(found - NETWORK.logits(list(past.tokens))[-len(new) :]).max() < BOUND
    fork = first.fork()
    for tokens in ([1, 2, 3], [4, 5, 6], [15, 0, 15]):
        parts = [TextPart(past._text, [token]) for past, token in zip((first, second, fork), tokens, strict=True)]
        for part, rows in zip(parts, texts.extend(parts), strict=True):
            assert np.abs(rows - NETWORK.logits(part.text.tokens)[-1:]).max() < BOUND


def test_a_repeated_prompt_is_not_read_again() -> None:
    texts, prompt = texts_of("cpu", remembered=20), [n % 7 for n in range(100)]
    first = texts.past()
    first.extend(prompt)
    texts.give_back(first)
    again = texts.past()
    assert again.recall(prompt) == 100
    again.truncate(99)
    other = texts.past()
    assert other.recall([*prompt[:50], 9, 9]) == 50
    for past, new in ((again, prompt[99]), (other, 9)):
        assert np.abs(past.extend([new])[-1] - NETWORK.logits(list(past.tokens))[-1]).max() < BOUND


def test_pages_that_run_out_harm_no_text() -> None:
    texts = texts_of("cpu", most=4, remembered=4)
    one, other = texts.past(), texts.past()
    one.extend([1] * 20)
    with pytest.raises(LimitExceeded, match="all 4 pages of 8 positions are in use"):
        other.extend([2] * 9)
    other.extend([2] * 7)
    assert np.abs(one.extend([3])[-1] - NETWORK.logits([1] * 20 + [3])[-1]).max() < BOUND
    one.close()  # what is remembered goes where there is no room
    assert np.abs(other.extend([4] * 20)[-1] - NETWORK.logits([2] * 7 + [4] * 20)[-1]).max() < BOUND


def test_what_fails_was_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_of("cpu")
    past = texts.past()
    past.extend([1] * 9)
    fork = past.fork()
    with pytest.raises(InputError, match="token 16 is outside the model's vocabulary of 16"):
        fork.extend([16])
    with pytest.raises(InputError, match="there are no tokens"):
        fork.extend([])
    state = texts._state

    class Failing:
        def run(self, inputs: object) -> None:
            raise RunError("no")

    monkeypatch.setattr(texts, "_state", Failing())
    for _ in range(3):
        with pytest.raises(RunError):
            fork.extend([5])
    monkeypatch.setattr(texts, "_state", state)
    for one, token in ((fork, 6), (past, 7)):
        assert np.abs(one.extend([token])[-1] - NETWORK.logits([1] * 9 + [token])[-1]).max() < BOUND


def test_frozen_pasts_that_do_not_fit_are_refused() -> None:
    texts = texts_of("cpu")
    past = texts.past()
    past.extend([1, 2, 3])
    frozen = dict(past.freeze())
    assert {one.shape for one in frozen.values()} == {(2, 3, 4)}
    for wrong in ({**frozen, "past.0.key": frozen["past.0.key"][:, :2]}, {"past.0.key": frozen["past.0.key"]}):
        with pytest.raises(CorruptModel):
            past.thaw([1, 2, 3], wrong)
        assert list(past.tokens) == []
    with pytest.raises(CorruptModel, match="outside the model's vocabulary"):
        past.thaw([1, 2, 99], frozen)
    past.thaw([1, 2, 3], frozen)
    assert np.abs(past.extend([4])[-1] - NETWORK.logits([1, 2, 3, 4])[-1]).max() < BOUND


@pytest.mark.parametrize(("kept", "bound"), [("f16", 2e-2), ("bf16", 2e-1)])
def test_narrow_types_keep_less(kept: str, bound: float) -> None:
    texts = texts_of("cpu", kept=kept)
    past = texts.past()
    found = past.extend([1, 2, 3, 4, 5, 6, 7, 8, 9], every=True)
    error = np.abs(found - NETWORK.logits([1, 2, 3, 4, 5, 6, 7, 8, 9])).max()
    assert BOUND < error < bound
    assert {one.dtype.itemsize for one in past.freeze().values()} == {2}


# --- which models are made so ---


def test_a_model_without_a_past_is_left_as_it_is() -> None:
    model = NETWORK.model(past=False)
    keep_past(model, last=1)
    description = description_of(model)
    assert (description.pages, description.past) == (None, ())
    assert pasts_of(model.into_runnable("reference"), description).past().extend([1, 2]).shape == (1, 16)


def test_what_cannot_be_made_so_says_why() -> None:
    with pytest.raises(TransformError, match="no inputs with a past"):
        NETWORK.model(past=False).transform(PagedCache())
    for wrong in (PagedCache(page=0), PagedCache(kept="i4")):
        with pytest.raises(TransformError, match="are not known"):
            NETWORK.model().transform(wrong)
    with pytest.raises(TransformError, match="there is no output 'scores' of three axes"):
        NETWORK.model().transform(PagedCache(logits="scores"))
    paged = NETWORK.model()
    paged.transform(PagedCache())
    with pytest.raises(TransformError, match="no inputs with a past"):
        paged.transform(PagedCache())


def test_by_its_name() -> None:
    model = Model.from_typed(NETWORK.typed())
    model.transform('{"name": "paged_cache", "page": 16, "kept": "f16"}')
    assert model.input_names() == ["tokens", "positions", "begins", "pages", "copies", "room", "rows"]
    assert int(model.property("paged_cache.page").to_numpy()) == 16
    assert int(model.property("paged_cache.page_bytes").to_numpy()) == 16 * 2 * 2 * 2 * 4 * 2


def test_what_a_model_says_of_itself_stays() -> None:
    model = NETWORK.typed()
    model.limits = LoadLimits(run_deadline_s=7)
    model.properties["by"] = np.array("us")
    model.symbols.add_assertion("S<=64")
    paged = PagedCache().apply(model)
    assert paged.limits == model.limits
    assert paged.properties["by"] == "us"
    assert "S<=64" in [str(one) for one in paged.symbols]


@pytest.mark.parametrize("more", [np.inf, -np.inf, np.nan, 0.5])
def test_positions_that_are_no_whole_numbers_make_no_mask(more: float) -> None:
    model = TypedModel()
    wire = NodeWiring(model, "mask")
    x, y = (Wired(wire, model.add_source(name, parse_typed_fact("4,f32", model.symbols))) for name in "xy")
    chosen = ((x + more) > y).where(-np.inf, x)
    assert Masks(model, model.symbols.new_symbol("P")).unmasked(chosen.outlet) is None


# --- pages by themselves ---


def test_pages_are_given_back() -> None:
    pages = PagePool(4, most=6)
    text = Text(pages)
    assert text.make_room(9) == []
    text.tokens = list(range(9))
    other = text.fork()
    assert pages.taken == 3
    assert other.make_room(1) == [(text.pages[2], other.pages[2])]
    assert other.pages[:2] == text.pages[:2]
    other.truncate(0)
    assert pages.taken == 3
    with pytest.raises(LimitExceeded):
        text.make_room(30)
    assert pages.taken == 3
    text.truncate(0)
    assert pages.taken == 0


def test_the_oldest_leaves_are_forgotten_first() -> None:
    pages = PagePool(2)
    memory = Memory(pages, 4)

    def keep(*tokens: int) -> None:
        text = Text(pages)
        text.make_room(len(tokens))
        text.tokens = list(tokens)
        memory.keep(text.tokens, text.pages)
        text.truncate(0)

    def length(*tokens: int) -> int:
        text = Text(pages)
        found, count = memory.find(tokens)
        text.become(tokens[:count], found)
        text.truncate(0)
        return count

    keep(1, 2, 3, 4)
    keep(1, 2, 5)
    assert (length(1, 2, 3, 4, 5), length(1, 2, 5, 6), length(1, 3), length(2), length()) == (4, 3, 1, 0, 0)
    keep(7, 8, 9)
    assert length(1, 2, 3, 4) == 2  # but not what it begins with, which others need
    assert length(7, 8, 9) == 3
    assert pages.taken == 4
    memory.shrink(0)
    assert pages.taken == 0
