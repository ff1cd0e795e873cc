"""The check of an archive against its module: what it lets pass, and that it bites."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checked import AXES, TOKENS, Encoder, archive_of, encoder_archive
from torch._subclasses.fake_tensor import FakeTensor
from tract_torch.check.draw import drawn, larger_sizes, smallest_sizes
from tract_torch.check.in_process import check_io
from tract_torch.errors import CheckError
from tract_torch.tolerance import TractCheckTolerance, difference

import tract_core as tract
from tract_core.data import DatumType, QuantizedType
from tract_core.testing.tolerance import Tolerance

LEVELS = ["exact", "close", "approximate", "very", "super", "ultra"]


def test_levels_are_ordered_by_how_loose_they_are() -> None:
    assert [level.value for level in sorted(TractCheckTolerance)] == LEVELS
    assert TractCheckTolerance.CLOSE < TractCheckTolerance.APPROXIMATE
    assert TractCheckTolerance.ULTRA > "very"  # by letters, it is not
    assert TractCheckTolerance.VERY <= "very" >= TractCheckTolerance.CLOSE
    assert TractCheckTolerance.loosest(["close", "approximate"]) is TractCheckTolerance.APPROXIMATE
    assert isinstance(TractCheckTolerance.EXACT, str)
    for kind in (DatumType.F32, DatumType.F16, DatumType.I64):
        numbers = [level.numbers(kind) for level in TractCheckTolerance]
        for one in ("absolute", "relative", "outliers"):
            values = [getattr(each, one) for each in numbers]
            assert values == sorted(values)


def test_numbers_of_levels_go_by_the_element_type() -> None:
    level = TractCheckTolerance.APPROXIMATE
    assert level.numbers(DatumType.F32) == Tolerance(1e-4, 5e-4)
    assert level.numbers(DatumType.F16) == Tolerance(1e-3, 5e-3)
    assert level.numbers(QuantizedType(DatumType.U8, 5, 0.25)) == Tolerance(0.25, 0)
    assert level.numbers(DatumType.I64) == Tolerance(0, 0)
    assert TractCheckTolerance.ULTRA.numbers(DatumType.I64) == Tolerance(0, 0, 5e-4)


def test_a_quantised_output_may_be_a_step_off() -> None:
    kind = QuantizedType(DatumType.U8, 5, 0.25)
    wanted = np.array([5, 7, 200], np.uint8)
    for off, bad in ((1, 0), (2, 1)):
        found = difference("y", wanted + np.array([0, off, 0], np.uint8), wanted, TractCheckTolerance.APPROXIMATE, kind)
        assert (found.differing, found.largest) == (bad, 0.25 * off)


@pytest.mark.parametrize(
    ("found", "wanted", "problem"),
    [
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], None),
        ([np.nan, 1], [1, 1], r"1 of 2 elements differ; the worst, at \[0\]: nan, wanted 1.0"),
        ([np.inf], [-np.inf], r"at \[0\]: inf, wanted -inf"),
        ([1, 2, 4], [1, 2.5, 3], r"2 of 3 elements differ; the worst, at \[2\]: 4.0, wanted 3.0"),
        ([[1.0]], [1.0], r"its shape is \[1, 1\], wanted \[1\]"),
    ],
)
def test_differences_name_the_worst_element(found: Any, wanted: Any, problem: str | None) -> None:
    one = difference("y", np.array(found, np.float32), np.array(wanted, np.float32), TractCheckTolerance.CLOSE)
    assert (one.problem is None) == (problem is None)
    assert re.search(problem or "", one.problem or "")


def test_outliers_are_a_share() -> None:
    wanted = np.zeros(4000, np.float32)
    found = wanted.copy()
    found[:2] = 9
    assert difference("y", found, wanted, TractCheckTolerance.ULTRA).problem is None
    assert difference("y", found, wanted, TractCheckTolerance.SUPER).problem is not None
    found[2] = 9
    assert difference("y", found, wanted, TractCheckTolerance.ULTRA).differing == 3


def test_an_archive_that_is_right(tmp_path: Path) -> None:
    encoder = Encoder().train()
    archive = encoder_archive(encoder, tmp_path)
    state = torch.random.get_rng_state()
    report = check_io(
        encoder, archive, TOKENS, input_names=["tokens"], output_names=["logits", "mean"], dynamic_axes=AXES
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    assert encoder.training
    assert report.values_of("B") >= {1, 2}
    assert len(report.values_of("B")) >= 3
    assert len(report.values_of("S") - {5}) >= 2
    assert min(report.values_of("S")) == 2  # the smallest that the archive asserts
    assert [trial.inputs for trial in report.trials[:3]] == ["example", "seed 1", "seed 2"]
    assert not report.notes
    held = json.loads(json.dumps(report.to_json()))
    assert held["tolerance"] == "approximate"
    assert 0 < held["largest"] < 1e-5
    lines = str(report).splitlines()
    assert lines[0] == f"{archive} on cpu, approximate"
    assert lines[1].split() == ["inputs", "sizes", "output", "largest", "difference", "beyond"]
    assert "B=2, S=5" in lines[2]


def test_sizes_and_seeds_can_be_given(tmp_path: Path) -> None:
    encoder = Encoder()
    archive = encoder_archive(encoder, tmp_path)
    report = check_io(encoder, archive, TOKENS, seeds=(), sizes=[{"S": 9}], runtime="reference")
    assert [dict(trial.sizes) for trial in report.trials] == [{"B": 2, "S": 5}, {"B": 2, "S": 9}]
    with pytest.raises(CheckError, match=r"the module takes B=2, S=1, the archive does not: .*S>=2"):
        check_io(encoder, archive, TOKENS, seeds=(), sizes=[{"S": 1}])


def test_another_weight_is_seen(tmp_path: Path) -> None:
    encoder = Encoder()
    archive = encoder_archive(encoder, tmp_path)
    with torch.no_grad():
        encoder.head[2].bias[1] += 1e-2  # pyright: ignore[reportIndexIssue]: it is a layer
    text = (
        r"differs from the module beyond 'approximate', example at B=2, S=5: output 'logits': 10 of 30 elements differ"
    )
    with pytest.raises(CheckError, match=text) as raised:
        check_io(encoder, archive, TOKENS)
    report = raised.value.report
    assert report is not None
    assert report.largest == pytest.approx(1e-2, rel=1e-3)
    check_io(encoder, archive, TOKENS, tolerance="very")


class Baked(torch.nn.Module):
    """A mask of the length of the example, which stays the same whatever comes."""

    def __init__(self, good: bool) -> None:
        super().__init__()
        self.good = good

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        mask = places < (x.shape[1] - 1 if self.good else 4)
        return torch.where(mask, x, 0.0)


def test_a_mask_that_is_right_at_the_size_of_the_example_only(tmp_path: Path) -> None:
    x = torch.randn(2, 5)
    assert torch.equal(Baked(True)(x), Baked(False)(x))
    archive = archive_of(Baked(False), x, tmp_path, ({1: torch.export.Dim("S", min=2)},))
    with pytest.raises(CheckError, match=r"seed 0 at S=6: output 'output_0': 2 of 12 elements differ"):
        check_io(Baked(True), archive, x)
    check_io(Baked(True), archive, x, sizes=[])


def test_an_axis_that_was_to_be_dynamic(tmp_path: Path) -> None:
    archive = archive_of(torch.nn.ReLU(), torch.randn(2, 5), tmp_path)
    text = "axis -1 of input 'input' was declared as dynamic, and always has size 5"
    with pytest.raises(CheckError, match=text):
        check_io(torch.nn.ReLU(), archive, torch.randn(2, 5), dynamic_axes={"input": {-1: "S"}})


def test_outputs_that_are_others(tmp_path: Path) -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + 1, x + 2

    class Wide(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).double()

    x = torch.randn(3)
    archive = archive_of(Two(), x, tmp_path, outputs=["a", "b"])
    with pytest.raises(CheckError, match=r"it has 2 outputs \(a, b\), the module returns 1"):
        check_io(torch.nn.ReLU(), archive, x)
    with pytest.raises(CheckError, match=r"its outputs are a, b, wanted b, a"):
        check_io(Two(), archive, x, output_names=["b", "a"])
    archive = archive_of(Wide(), x, tmp_path)
    with pytest.raises(CheckError, match="its element type is float64, wanted float32"):
        check_io(torch.nn.ReLU(), archive, x)


def test_inputs_that_are_others(tmp_path: Path) -> None:
    archive = archive_of(Divide(), (torch.randn(3), torch.rand(3)), tmp_path)
    with pytest.raises(CheckError, match="its inputs are a, b, those of the example input_0"):
        check_io(torch.nn.ReLU(), archive, torch.randn(3))
    with pytest.raises(CheckError, match=r"'a': it does not take the example's inputs: .*size 4"):
        check_io(Divide(), archive, (torch.randn(4), torch.randn(4)))


class Divide(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a / b


def test_inputs_go_by_their_names(tmp_path: Path) -> None:
    class Swapped(torch.nn.Module):
        def forward(self, b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return a / b

    a, b = torch.rand(3) + 1, torch.rand(3) + 3
    archive = archive_of(Swapped(), (b, a), tmp_path)
    check_io(Divide(), archive, (a, b), input_names=["a", "b"])
    with pytest.raises(CheckError, match="3 of 3 elements differ"):
        check_io(Divide(), archive, (a, b))


class Forgetful(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        self.last = x.clone()
        x.mul_(2)
        return x + self.seen


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x + 1


def test_what_a_module_does_to_itself_and_to_its_inputs_is_undone(tmp_path: Path) -> None:
    x = torch.randn(2)
    archive = archive_of(Plain(), x, tmp_path)
    module, before = Forgetful(), x.clone()
    seen, last = module.seen, module.last
    with pytest.raises(CheckError, match="example, call 2: output 'output_0': 2 of 2 elements differ"):
        check_io(module, archive, x, find_module=False)
    assert module.seen is seen
    assert module.last is last
    assert not seen.any()
    assert not last.any()
    assert torch.equal(x, before)


def test_sizes_that_the_module_refuses_are_told(tmp_path: Path) -> None:
    class Even(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] % 4 != 0:
                raise ValueError("not four at a time")
            return x + 1

    archive = archive_of(Plus(), torch.rand(8), tmp_path, ({0: torch.export.Dim("S")},))
    report = check_io(Even(), archive, torch.rand(8))
    assert len(report.values_of("S") - {8}) >= 2
    assert all(value % 4 == 0 for value in report.values_of("S"))
    assert any(refusal.by == "module" and "not four at a time" in refusal.reason for refusal in report.refusals)
    assert "the module refuses: ValueError: not four at a time" in str(report)


class Plus(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def test_a_symbol_that_could_not_be_checked_is_noted(tmp_path: Path) -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] != 8:
                raise ValueError("eight")
            return x + 1

    archive = archive_of(Plus(), torch.rand(8), tmp_path, ({0: torch.export.Dim("S")},))
    report = check_io(Fixed(), archive, torch.rand(8))
    assert report.notes == ["S is 8 in the example, and was compared only at 8"]


def test_drawn_inputs_are_like_the_example() -> None:
    tokens = drawn(torch.tensor([3, 17, 9]), (4, 50), 1)
    assert tokens.dtype is torch.int64
    assert {int(tokens.min()), int(tokens.max())} <= set(range(3, 18))
    assert len(tokens.unique()) > 8
    mask = torch.tensor([[True, True, False, False], [True, False, False, False]])
    found = drawn(mask, (40, 3), 1)
    assert found.dtype is torch.bool
    assert found.any(-1).all()
    assert not found.all()
    added = drawn(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]]), (5, 5), 2)
    assert set(added.unique().tolist()) == {0.0, -torch.inf}
    floats = drawn(torch.rand(30).half() + 2, (100,), 1)
    assert floats.dtype is torch.float16
    assert floats.min() >= 2
    assert floats.max() <= 3
    assert drawn(torch.zeros(5), (100,), 1).std() > 0.5
    assert drawn(torch.randn(9, dtype=torch.complex64), (7,), 1).dtype is torch.complex64
    assert torch.equal(drawn(torch.arange(9), (6,), 3), drawn(torch.arange(9), (6,), 3))
    assert drawn(torch.zeros(0, 3), (2, 3), 0).shape == (2, 3)
    rising = drawn(torch.tensor([0, 4, 4, 9]), (6,), 1)
    assert (rising.diff() >= 0).all()
    assert (int(rising[0]), int(rising[-1])) == (0, 9)


def test_integers_that_the_module_refuses_stay_as_they_are(tmp_path: Path) -> None:
    class Paired(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            if not isinstance(i, FakeTensor) and i.sum() != 0:
                raise ValueError("pairs")
            return x + i

    inputs = torch.randn(6), torch.tensor([3, -3, 1, 5, -5, -1])
    report = check_io(Paired(), archive_of(Paired(), inputs, tmp_path), inputs)
    assert [one.inputs for one in report.trials] == ["example", "seed 1", "seed 2"]
    assert not report.notes


def test_random_inputs_that_the_module_refuses_are_noted(tmp_path: Path) -> None:
    class Positive(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not isinstance(x, FakeTensor) and x.sum() != 0:
                raise ValueError("zeros")
            return x + 1

    report = check_io(Positive(), archive_of(Positive(), torch.zeros(3), tmp_path), torch.zeros(3))
    assert report.notes[0] == "seed 1 was not compared: the module refuses it: ValueError: zeros"


def test_other_sizes_stay_inside_what_is_asserted() -> None:
    def allowed(values: Any) -> bool:
        return all(4 <= size <= 9 for size in values.values())

    for values in [*larger_sizes({"A": 5, "B": 6}, allowed), *smallest_sizes({"A": 5, "B": 6}, allowed)]:
        assert allowed(values)
    assert next(iter(larger_sizes({"A": 5, "B": 6}, allowed))) == {"A": 6, "B": 8}
    assert next(iter(smallest_sizes({"A": 5, "B": 6}, allowed))) == {"A": 4, "B": 4}


def test_half_precision_is_compared_as_such(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 4).half()
    x = torch.randn(2, 4).half()
    check_io(layer, archive_of(layer, x, tmp_path), x)
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.bias[0] += 0.1
    with pytest.raises(CheckError, match="beyond 'approximate'"):
        check_io(other, tmp_path / "m.nnef.tar", x)


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "m.nnef.tar").write_text("none")
    with pytest.raises(tract.errors.ModelError, match=r"m\.nnef\.tar"):
        check_io(torch.nn.ReLU(), tmp_path / "m.nnef.tar", torch.rand(3))
