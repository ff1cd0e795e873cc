"""Errors, what nodes lose, and the search for what has to stay in floats."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from quantize_models import turns
from tract_quantize import quantize
from tract_quantize.errors import errors_of
from tract_quantize.picture import svg_of_trials
from tract_quantize.quantizing import Quantizing, Settings, Trial, fewest
from tract_quantize.samples import ListedSamples

from tract_core.errors import InputError


def samples(name: str) -> ListedSamples:
    return ListedSamples([list(turn.values()) for turn in turns(name)])


class TestErrors:
    def test_they_are_norms_over_all_samples(self, network) -> None:
        model = network("mlp")
        found = quantize(model, samples("mlp"))
        pairs = [
            [
                one.into_runnable().run([turn["x"]])[0].to_numpy()
                for one in (model.clone(), model.from_typed(found.model.clone()))
            ]
            for turn in turns("mlp")
        ]
        wanted, other = (np.concatenate(one) for one in zip(*pairs, strict=True))
        (error,) = found.errors
        assert error.name == "y"
        assert error.error == pytest.approx(np.linalg.norm(wanted - other) / np.linalg.norm(wanted), rel=1e-4)
        assert error.largest == pytest.approx(np.abs(wanted - other).max(), rel=1e-4)
        assert error.agreement == (wanted.argmax(1) == other.argmax(1)).mean()

    def test_a_result_that_is_no_number_is_infinitely_wrong(self, network) -> None:
        model = network("mlp").typed

        class Nothing:
            def spawn(self):
                return self

            def run(self, inputs):
                return [np.full((16, 10), np.nan, np.float32)]

        quantizing = Quantizing(model, samples("mlp"))
        (error,) = errors_of(model, (quantizing._plan, Nothing()), samples("mlp"))
        assert error.error == error.largest == float("inf")


class TestLosses:
    def test_they_are_those_of_each_product_by_itself(self, network) -> None:
        model = network("shared")
        quantizing = Quantizing(model.typed, samples("shared"))
        found = {one.name: one for one in quantizing.losses(quantizing.transform(Settings(weights_only=4)))}
        w = next(
            one.op.value.array
            for one in model.typed.live_nodes()
            if one.op.name == "Const" and one.outputs[0].fact.rank == 2
        )
        from tract_quantize.steps import in_blocks

        part = in_blocks(w, 0, 4, 32)
        rounded = part.integers.astype(np.float64) * np.repeat(part.scale, 32, axis=0)[:48]
        x = np.concatenate([turn["x"] for turn in turns("shared")])
        for name, data in (("h", x), ("y", np.maximum(x @ w, 0))):
            wanted = np.linalg.norm(data @ rounded - data @ w) / np.linalg.norm(data @ w)
            assert found[name].loss == pytest.approx(wanted, rel=1e-3)
            assert (found[name].operator, found[name].weights) == ("EinSum", 48 * 48)

    def test_those_that_lose_most_come_first(self, network) -> None:
        found = quantize(network("residual"), samples("residual")).losses
        assert [one.loss for one in found] == sorted((one.loss for one in found), reverse=True)
        assert len(found) == 4


class TestSearch:
    @pytest.mark.parametrize("wanted", range(1, 13))
    def test_the_smallest_count_is_found(self, wanted: int) -> None:
        asked: list[int] = []

        def fits(count: int) -> bool:
            asked.append(count)
            return count >= wanted

        assert fewest(fits, 12) == wanted
        assert len(asked) <= 8
        assert len(set(asked)) == len(asked)

    @pytest.mark.parametrize("most", [0, 1, 5, 8])
    def test_there_may_be_none(self, most: int) -> None:
        assert fewest(lambda _: False, most) is None

    def test_the_error_is_below_what_is_allowed_and_not_with_a_node_less(self, network) -> None:
        model = network("residual")
        free = quantize(model, samples("residual"), Settings(by_output=True))
        allowed = 0.6 * free.error
        found = quantize(model, samples("residual"), Settings(max_error=allowed))
        floats = [one.name for one in found.losses if one.name in found.left]
        assert found.error <= allowed < free.error
        assert floats == [one.name for one in free.losses[: len(floats)]]
        assert set(found.left.values()) == {"it costs too much"}
        fewer = quantize(model, samples("residual"), Settings(exclude=floats[:-1]))
        assert fewer.error > allowed

    def test_an_error_that_nothing_keeps(self, network) -> None:
        with pytest.raises(InputError, match="the error is more than 1e-09 with any product quantised"):
            quantize(network("mlp"), samples("mlp"), Settings(max_error=1e-9))

    def test_nothing_is_left_to_quantise(self, network) -> None:
        with pytest.raises(InputError, match="no product is left to quantise"):
            quantize(network("mlp"), samples("mlp"), Settings(exclude=["*"]))


class TestPicture:
    TRIALS = (
        Trial("float", 0.0, 2e-3, 0),
        Trial("static minmax", 1e-2, 5e-4, 9),
        Trial("static <script>alert(1)</script>\x00\x1b", float("inf"), 1e-9, 9),
        Trial("weights int4", 1e-30, 1e3, 9),
    )

    @pytest.mark.parametrize("count", range(5))
    def test_it_is_xml_whatever_is_in_it(self, count: int) -> None:
        text = svg_of_trials("<b>&'\"", self.TRIALS[:count])
        root = ElementTree.fromstring(text)
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        assert len([one for one in root.iter() if one.tag.endswith("circle")]) == 2 * count
        numbers = [float(one.get(end)) for one in root.iter() if one.tag.endswith("circle") for end in ("cx", "cy")]
        assert all(0 <= number <= 900 for number in numbers)

    def test_better_is_lower_and_further_left(self) -> None:
        root = ElementTree.fromstring(svg_of_trials("t", self.TRIALS[:2]))
        (float_, _, static, _) = (one for one in root.iter() if one.tag.endswith("circle"))
        assert float(static.get("cx")) < float(float_.get("cx"))
        assert float(static.get("cy")) < float(float_.get("cy"))
