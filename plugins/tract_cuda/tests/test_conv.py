"""Convolutions in models: which kernels compute them, and what they compute, on the emulator, against NumPy."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "kernels"))  # models that the emulator executes

from executed import kernels_of, run

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec


@frozen
class Case:
    """``shape``: of the data, [batch, channels, spatial ...]; ``kernel``: of the kernel's spatial axes."""

    shape: tuple[int, ...]
    outputs: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    group: int = 1

    def spec(self) -> PoolSpec:
        zeros = (0,) * len(self.kernel)
        padding = Explicit(self.before or zeros, self.after or zeros)
        sizes = (self.shape[1], self.outputs)
        return PoolSpec(DataFormat.NCHW, self.kernel, padding, self.dilations, self.strides, *sizes)

    def arrays(self, kind: str) -> list[np.ndarray]:
        """Data, kernel and bias, of few numbers, so that no sum is rounded but the last one."""
        rng, dtype = np.random.default_rng(0), DatumType[kind.upper()].numpy
        shapes = [self.shape, (self.outputs, self.shape[1] // self.group, *self.kernel), (self.outputs,)]
        return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]

    def expected(self, data: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
        rank, zeros = len(self.kernel), (0,) * len(self.kernel)
        strides, dilations = self.strides or (1,) * rank, self.dilations or (1,) * rank
        pads = zip(self.before or zeros, self.after or zeros, strict=True)
        padded = np.pad(data.astype("f8"), [(0, 0), (0, 0), *pads])
        reach = [(size - 1) * step + 1 for size, step in zip(self.kernel, dilations, strict=True)]
        counts = [(size - far) // step + 1 for size, far, step in zip(padded.shape[2:], reach, strides, strict=True)]
        each, made = self.shape[1] // self.group, self.outputs // self.group
        result = np.zeros((len(data), self.outputs, *counts)) + bias.astype("f8").reshape(-1, *(1,) * rank)
        for tap in product(*map(range, self.kernel)):
            along = [
                slice(at * far, at * far + (count - 1) * step + 1, step)
                for at, far, count, step in zip(tap, dilations, counts, strides, strict=True)
            ]
            for group in range(self.group):
                outputs = slice(group * made, (group + 1) * made)
                seen = padded[(slice(None), slice(group * each, (group + 1) * each), *along)]
                weights = kernel[(outputs, slice(None), *tap)].astype("f8")
                result[:, outputs] += np.einsum("oi,ni...->no...", weights, seen)
        return result


CASES = {
    "plain": Case((2, 8, 9, 7), 12, (3, 3)),
    "padded": Case((1, 16, 8, 8), 16, (3, 3), before=(1, 1), after=(1, 1)),
    "uneven": Case((1, 8, 7, 9), 8, (2, 3), before=(1, 0), after=(0, 2)),
    "strided": Case((2, 8, 11, 10), 24, (3, 3), strides=(2, 2), before=(1, 1), after=(1, 1)),
    "dilated": Case((1, 8, 12, 11), 8, (3, 2), dilations=(2, 3), before=(2, 1), after=(2, 1)),
    "of one position": Case((2, 24, 5, 5), 40, (1, 1)),
    "of one position, strided": Case((1, 16, 8, 9), 8, (1, 1), strides=(2, 2)),
    "few channels": Case((1, 3, 15, 14), 16, (7, 7), strides=(2, 2), before=(3, 3), after=(3, 3)),
    "in one dimension": Case((2, 8, 21), 8, (5,), before=(2,), after=(2,)),
    "in three dimensions": Case((1, 8, 4, 5, 6), 8, (2, 3, 2), before=(0, 1, 1), after=(1, 1, 0)),
    "grouped": Case((2, 32, 6, 7), 48, (3, 3), before=(1, 1), after=(1, 1), group=2),
    "of each channel": Case((2, 12, 9, 8), 12, (3, 3), strides=(2, 1), before=(1, 1), after=(1, 1), group=12),
    "of each channel, odd": Case((1, 7, 6, 5), 7, (3, 3), dilations=(1, 2), before=(1, 2), after=(1, 2), group=7),
    "of each channel, to two": Case((1, 6, 6, 5), 12, (3, 3), group=6),
    "small and deep": Case((1, 128, 4, 4), 8, (3, 3), before=(1, 1), after=(1, 1)),
}


def model_of(case: Case, kind: str, *, batch: str | None = None, added: bool = False) -> TypedModel:
    """The convolution, and what is added to it, if that is wanted."""
    model, (_, kernel, bias) = TypedModel(), case.arrays(kind)
    shape = ",".join([batch or str(case.shape[0]), *map(str, case.shape[1:])])
    x = model.add_source("x", parse_typed_fact(f"{shape},{kind}", model.symbols))
    weights = [model.add_const("kernel", kernel), model.add_const("bias", bias)]
    (y,) = model.wire_node("conv", Conv(case.spec(), group=case.group), [x, *weights])
    if added:
        other = model.add_source("other", model.outlet_fact(y))
        (y,) = model.wire_node("sum", Add(), [y, other])
    model.set_outputs([y])
    return model


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("name", CASES)
def test_windows_of_any_kind(name: str, kind: str) -> None:
    case = CASES[name]
    data, kernel, bias = case.arrays(kind)
    (found,) = run(model_of(case, kind), data)
    wanted = case.expected(data, kernel, bias)
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=0 if kind == "f32" else 2**-10)


@pytest.mark.parametrize("name", ["padded", "of each channel", "few channels"])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_batch_of_any_size(name: str, batch: int) -> None:
    case = CASES[name]
    data, kernel, bias = case.arrays("f32")
    data = np.concatenate([data[:1] + number for number in range(batch)])
    found = run(model_of(case, "f32", batch="N"), data, symbols={"N": batch})[0]
    np.testing.assert_array_equal(found, case.expected(data, kernel, bias))


@pytest.mark.parametrize("name", ["strided", "of each channel", "of each channel, to two"])
def test_what_is_computed_behind_is_part_of_it(name: str) -> None:
    case = CASES[name]
    data, kernel, bias = case.arrays("f32")
    model, wanted = model_of(case, "f32", added=True), case.expected(data, kernel, bias)
    other = np.random.default_rng(1).integers(-5, 6, wanted.shape).astype("f4")
    np.testing.assert_array_equal(run(model, data, other)[0], wanted + other)


def test_halves_go_to_tensor_cores_and_small_deep_ones_in_parts() -> None:
    names = [[plan.name for plan in kernels_of(model_of(CASES[name], "f16"))] for name in ("padded", "small and deep")]
    assert ["mma" in one for one in names] == [True, True]
    assert "merge" in names[1]
    assert "depthwise" in [plan.name for plan in kernels_of(model_of(CASES["of each channel"], "f32"))]


STRETCHED = {
    "for all of the batch": (1, 12, 9, 7),
    "for all positions": (0, 12, 1, 1),
    "along one axis": (1, 1, 1, 7),
}
"""The sizes of operands that are stretched to those of the result; 0 stands for the batch."""


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("name", STRETCHED)
@pytest.mark.parametrize("batch", [1, 3])
def test_operands_that_are_stretched_are_not_copied(name: str, kernel: tuple[int, int], kind: str, batch: int) -> None:
    pads = tuple(size // 2 for size in kernel)
    case = Case((batch, 8, 9, 7), 12, kernel, before=pads, after=pads)
    data, weights, bias = case.arrays(kind)
    model = model_of(case, kind, batch="N")
    sizes = STRETCHED[name]
    if sizes[0]:
        other = np.random.default_rng(2).integers(-5, 6, sizes).astype(data.dtype)
        operand = model.add_const("other", other)
        arrays = [data]
    else:
        other = np.random.default_rng(2).integers(-5, 6, (batch, *sizes[1:])).astype(data.dtype)
        operand = model.add_source("other", parse_typed_fact(f"N,12,1,1,{kind}", model.symbols))
        arrays = [data, other]
    model.set_outputs(model.wire_node("sum", Add(), [model.outputs[0], operand]))
    alone = [plan.name for plan in kernels_of(model_of(case, kind, batch="N"))]
    copies = ["map"] if name == "along one axis" else []
    assert [plan.name for plan in kernels_of(model)] == [*copies, *alone]
    (found,) = run(model, *arrays, symbols={"N": batch})
    np.testing.assert_array_equal(found, (case.expected(data, weights, bias) + other).astype(data.dtype))
