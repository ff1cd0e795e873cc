"""What `torch.export` refuses is told in few words: where, what, and what to change."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
import tract_torch
from torch.export import Dim
from torch.nn.attention.flex_attention import flex_attention
from torchvision_operators import operators

from tract_core.errors import InputError, ModelWarning, TractError, Unsupported


class Calling(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> Any:
        return self.function(x) if y is None else self.function(x, y)


def load(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> Any:
    return tract_torch.load(
        torch.nn.Sequential(Calling(function)) if len(inputs) < 2 else Calling(function), inputs, **options
    )


def refused(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> str:
    """The text of the error."""
    with pytest.raises(TractError) as caught:
        load(function, *inputs, **options)
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 60
    return str(caught.value)


def sizes(**axes: Any) -> dict[str, Any]:
    """Dynamic shapes of a sequence of one module."""
    return {"dynamic_shapes": {"input": {int(axis[1:]): size for axis, size in axes.items()}}}


X = torch.randn(8, 3)


def test_an_if_on_data(capsys: pytest.CaptureFixture[str]) -> None:
    def decide(x: torch.Tensor) -> torch.Tensor:
        sys.stderr.write("called\n")
        return x if x.sum() > 0 else x * 2

    text = refused(decide, X)
    assert set(capsys.readouterr().err.split()) == {"called"}
    assert text.startswith("module '0', ")
    assert "test_refusals.py" in text
    assert "in decide: the module decides by what only a run knows\n" in text
    assert "torch.cond or torch.where" in text
    assert "torch.jit.script" in text


def test_a_number_that_must_be_known() -> None:
    text = refused(lambda x: x[: int(x.sum().item())], X)
    assert "a number that only a run knows is used where the program must know it" in text
    assert "torch._check(n >= 0)" in text


def test_a_range_that_is_too_wide() -> None:
    text = refused(lambda x: x[1:] * 2, X, **sizes(_0=Dim("S", min=2, max=64)))
    assert "axis 0 of input (S): not all sizes S hold that ((-1) + S) != 1" in text
    assert "hint: give Dim('S', min=3, max=64)" in text
    text = refused(lambda x: x + 1 if x.shape[0] <= 10 else x, X, **sizes(_0=Dim("S", min=2)))
    assert "S <= 10" in text
    assert "give Dim('S', min=2, max=10)" in text
    assert "test_refusals.py" in text


def test_sizes_of_a_multiple() -> None:
    text = refused(lambda x: x.reshape(-1, 4, 3), X, **sizes(_0=Dim("S", min=2, max=64)))
    assert "give the size as S = 4*_S" in text


def test_a_size_that_is_a_constant_after_all() -> None:
    text = refused(lambda x: (x + 1).reshape(24), X, **sizes(_0=Dim("S")))
    assert "axis 0 of input (S) was specialised to 8 because of module '0'" in text
    assert "test_refusals.py" in text
    text = refused(lambda x: x * 2, torch.randn(1, 3), **sizes(_0=Dim("S")))
    assert "take an example whose axis 0 of input (S) is 2 or more" in text


def test_sizes_that_must_be_equal() -> None:
    shapes = {"x": {0: Dim("S", min=2)}, "y": {0: Dim("T", min=2)}}
    text = refused(lambda x, y: x + y, X, X.clone(), dynamic_shapes=shapes)
    assert "must always be equal" in text
    assert "use the same Dim for both" in text


def test_an_example_out_of_its_range() -> None:
    text = refused(lambda x: x * 2, X, **sizes(_0=Dim("S", max=4)))
    assert "not in the range that its Dim has: 8 not in range" in text


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"inputs": {0: "S"}}, r"names 'inputs', which the module is not called with.*did you mean 'input'"),
        ({"input": {2: "S"}}, r"argument 'input': has 2 axes, dynamic_shapes has an axis 2"),
        ({"input": {0: "2 S"}}, r"axis 0 of input \(2 S\): .*'2 S' is no size"),
        ({"input": {0: 1.5}}, r"dynamic_shapes: Unexpected dimension.*1.5"),
    ],
)
def test_dynamic_shapes_that_do_not_fit(shapes: Any, says: str) -> None:
    with pytest.raises(InputError, match=f"(?s){says}"):
        load(lambda x: x * 2, X, dynamic_shapes=shapes)


def test_an_example_that_does_not_fit() -> None:
    with pytest.raises(
        InputError, match=r"(?s)does not fit Linear: missing a required argument: 'input'.*forward\(input"
    ):
        tract_torch.load(torch.nn.Linear(3, 4), ())
    with pytest.raises(Unsupported, match=r"calling the module gave RuntimeError: .*\[2, 5\] X \[3, 4\]"):
        tract_torch.load(torch.nn.Linear(3, 4), torch.randn(2, 5))


def test_what_the_module_raises_itself() -> None:
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise KeyError(f"no {x.dim()}")

    assert "in fail: calling the module gave KeyError: 'no 2'" in refused(fail, X)
    assert "dynamo=False" in refused(lambda x: torch.from_numpy(x.numpy()), X)


def test_an_operator_of_which_no_shapes_are_known() -> None:
    library = torch.library.Library("tract_refusals", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    text = refused(torch.ops.tract_refusals.twice, X)
    assert "nothing tells the shapes that the operator tract_refusals.twice.default gives" in text
    assert "torch.library.register_fake" in text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: _with(torch.eye(3).to_sparse()), "buffer 'held': is a sparse tensor"),
        (lambda: _with(torch.quantize_per_tensor(torch.eye(3), 0.1, 3, torch.quint8)), "buffer 'held': is a quantised"),
    ],
)
def test_weights_that_are_no_plain_tensors(make: Callable[[], torch.nn.Module], says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        tract_torch.load(make(), torch.randn(2, 3))


def test_inputs_that_are_no_plain_tensors() -> None:
    with pytest.raises(Unsupported, match="the example: is a sparse tensor"):
        load(lambda x: x * 2, torch.eye(3).to_sparse())


def _with(held: torch.Tensor) -> torch.nn.Module:
    module = torch.nn.Identity()
    module.register_buffer("held", held)
    return module


def test_the_module_is_as_it_was_after_a_refusal() -> None:
    layer = torch.nn.LSTM(3, 4).train()
    held = dict(layer.__dict__)
    with pytest.raises(TractError):
        tract_torch.load(layer, torch.randn(5, 2, 7))
    assert layer.__dict__.keys() == held.keys()
    assert all(layer.__dict__[name] is value for name, value in held.items())


def test_sizes_that_were_left_to_pytorch_and_are_constants() -> None:
    with pytest.warns(ModelWarning, match="axis 1 of input was specialised to 3: other sizes are refused"):
        model = tract_torch.load(torch.nn.Linear(3, 4), X, dynamic_shapes={"input": {0: Dim.AUTO, 1: Dim.AUTO}})
    assert [str(fact) for fact in model.input_facts()] == ["input_0,3,f32"]


def test_tied_weights_are_one_constant() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x).relu())

    module = Tied()
    model = tract_torch.load(module, torch.randn(2, 3))
    weights = module.a.weight.data_ptr()
    held = [outlet.fact.constant for node in model.typed.live_nodes() for outlet in node.outputs]
    assert sum(array is not None and array.ctypes.data == weights for array in held) == 1


def test_an_example_that_was_refused_is_as_it_was() -> None:
    x = torch.randn(8, 3)
    text = refused(lambda x: x * torch.arange(8.0)[:, None], x, **sizes(_0=Dim("S")))
    assert "(S) was specialised to 8" in text
    model = load(lambda x: x * torch.arange(8.0)[:, None], x)
    assert [str(fact) for fact in model.input_facts()] == ["8,3,f32"]


def test_the_graph_of_a_refused_module_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    refused(lambda x: x if x.sum() > 0 else x * 2, X)
    assert "def forward" not in capsys.readouterr().err


def test_sizes_that_a_model_cannot_say() -> None:
    text = refused(lambda x: x.new_zeros(x.shape[0] // x.shape[1]), torch.randn(9, 3), **sizes(_0="S", _1="T"))
    assert "a model cannot say the size S//(T): the divisor is no number" in text
    assert "hint: leave the sizes that it is made of out of dynamic_shapes" in text


def test_objects_that_are_no_tensors() -> None:
    text = refused(lambda x: x + torch.randn(3, generator=torch.Generator()), X)
    assert "is CustomObjArgument, wanted a tensor" in text
    assert "no generator or other object of PyTorch" in text


def test_element_types_that_models_have_not() -> None:
    text = refused(lambda x: x.to(torch.float8_e4m3fn), X)
    assert "tensors of torch.float8_e4m3fn are not supported\n  hint: convert it to one of torch.bool" in text


@pytest.mark.parametrize(
    "function", [torch.linalg.svdvals, torch.linalg.eigvalsh, torch.linalg.eigvals, torch.pinverse]
)
def test_singular_values_and_eigenvalues_are_refused(function: Any) -> None:
    with pytest.raises(Unsupported, match=r"(?s)iterations, which are not written here.*hint: compute them outside"):
        tract_torch.load(Calling(function), (torch.eye(3),))


def test_regions_whose_means_are_of_whole_pixels_are_refused() -> None:
    pool = operators().ps_roi_pool
    with pytest.raises(Unsupported, match=r"(?s)ps_roi_pool.*take torchvision.ops.ps_roi_align"):
        tract_torch.load(Calling(lambda x, r: pool(x, r, 1.0, 2, 2)[0]), (torch.ones(1, 4, 3, 3), torch.zeros(1, 5)))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x / math.sqrt(x.shape[0]), r"write n \*\* 0.5 in place of math.sqrt\(n\)"),
        (lambda x: x * math.log2(x.shape[0]), r"compute it of torch.tensor\(n\)"),
        (lambda x: x.reshape(x.shape.numel()), r"write x.numel\(\), or math.prod\(x.shape\)"),
        (lambda x: x * float(x.shape[0]), r"write torch.sym_float\(n\)"),
        (lambda x: sum(x * n for n in range(x.shape[0])), r"write torch.arange\(n\)"),
        (lambda x: x * len(x), r"compute with x.shape\[...\] there"),
    ],
)
def test_a_line_that_makes_a_size_a_number_tells_what_to_write(function: Any, says: str) -> None:
    with pytest.raises(Unsupported, match=f"(?s)specialised to 8 because of .*test_refusals.py.*hint: {says}"):
        load(function, X, **sizes(_0=Dim("S", min=2)))


def test_a_comparison_of_whole_tensors_is_no_number() -> None:
    text = refused(lambda x: x * torch.equal(x, x.abs()), X)
    assert "take (a == b).all(), a tensor, and torch.cond" in text


def test_attention_by_functions_of_places() -> None:
    text = refused(
        lambda x: flex_attention(x, x, x, score_mod=lambda score, b, h, i, j: score + b + h + i - j), X[None, None]
    )
    assert "flex_attention: its functions of places (score_mod, mask_mod) are not wired" in text
    assert "scaled_dot_product_attention, with attn_mask=create_mask(mask_mod, ...)" in text
