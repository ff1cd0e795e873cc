"""Models as object files whose sizes are open: for each, what they give is what the runtime gives, to the bit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from bench_networks import WORKLOADS, Workload, small
from linked_objects import UNFIT, OpenObject, same
from portable_models import EXAMPLES, Example
from tract_cpu.ahead.header import header_text
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

import tract_core as tract
from tract_core.data import DatumType
from tract_core.errors import InputError, Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather


def of_op(op: TypedOp, *facts: str) -> TypedModel:
    model = TypedModel()
    inputs = [model.add_source(f"x{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "recurrent"])
def test_one_object_is_for_all_sizes(name: str) -> None:
    """There and back, so that each comes after a smaller one and after a larger one."""
    example: Example = EXAMPLES[name]
    model = example.model()
    found, state = OpenObject(model), CpuPlan(model, chosen("")).spawn()
    for sizes in (*example.sizes, *reversed(example.sizes)):
        given = example.inputs(sizes)
        same(found.run(sizes, *given), state.run(given))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
@pytest.mark.filterwarnings("ignore::tract_core.errors.ModelWarning")
def test_networks_of_any_batch(workload: Workload) -> None:
    """Some files are for one batch, as they reshape to it: then runs of others are refused, as the runtime does."""
    network = small(workload)
    model = tract.onnx().load_bytes(network.model.SerializeToString())
    for name, array in network.inputs.items():
        kind = str(array.dtype).replace("float", "f").replace("int", "i")
        model.set_input_fact(name, ",".join(["B", *map(str, array.shape[1:]), kind]))
    typed = model.into_model().typed
    found, state = OpenObject(typed), CpuPlan(typed, chosen("")).spawn()
    arrays = [network.inputs[typed.outlet_name(one)] for one in typed.inputs]
    for batch in (len(arrays[0]), 0, 3, 2):
        given = [np.resize(one, (batch, *one.shape[1:])) for one in arrays]
        outputs = found.run({"B": batch}, *given)
        if outputs == UNFIT:
            with pytest.raises(InputError, match="B is"):
                state.run(given)
        else:
            same(outputs, state.run(given))


def test_a_run_that_is_refused_says_so_and_the_next_one_is_right() -> None:
    found, data = OpenObject(of_op(Gather(0), "N,3,f32", "I,i64")), np.arange(12, dtype="f4").reshape(4, 3)
    for indices in ([0, 3], [1, 9], [-1, 2], [3]):
        outputs = found.run({"N": 4, "I": len(indices)}, data, np.array(indices))
        if 9 in indices:
            assert outputs == 1
        else:
            same(outputs, [data[indices]])


def test_sizes_that_cannot_be_are_refused() -> None:
    """What operators want, what the model asserts, what is below 0, and what no memory has room for."""
    model = of_op(Add(), "N,A,f32", "M,B,f32")
    model.symbols.add_assertion("N<=5")
    found = OpenObject(model)
    sizes = {"N": 3, "A": 4, "M": 1, "B": 4}
    same(found.run(sizes, np.ones((3, 4), "f4"), np.ones((1, 4), "f4")), [np.full((3, 4), 2, "f4")])
    for name, value in (("N", 6), ("N", -1), ("M", 2), ("A", 3), ("B", -4), ("M", 1 << 41), ("M", -(1 << 63))):
        assert found.run({**sizes, name: value}) == UNFIT
    same(found.run(sizes, np.ones((3, 4), "f4"), np.ones((1, 4), "f4")), [np.full((3, 4), 2, "f4")])


def test_what_would_take_more_memory_than_there_is_is_refused() -> None:
    product = OpenObject(of_op(EinSum(AxesMapping.parse("bmk,bkn->bmn"), DatumType.F32), "B,M,K,f32", "B,K,N,f32"))
    values = dict.fromkeys(product.found.sizes, 1)
    assert product.bytes(*values.values()) > 0
    for size in (1 << 25, 1 << 40, (1 << 40) + 1):
        assert product.run(dict.fromkeys(values, size)) == UNFIT


def test_memory_grows_with_sizes_and_nothing_else_does() -> None:
    model = of_op(EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32), "M,K,f32", "K,N,f32")
    found = OpenObject(model)
    sizes = [found.bytes(*[size] * 3) for size in (1, 100, 200, 400)]
    assert sizes == sorted(sizes)
    assert sizes[-1] < 16 * sizes[1]


def test_inputs_of_which_a_size_follows_from_another_one() -> None:
    """Of 2*N+1 columns, N is given."""
    model = of_op(Add(), "B,2*N+1,f32", "B,2*N+1,f32")
    found = OpenObject(model)
    assert found.found.sizes == ("B", "N")
    x = np.arange(15, dtype="f4").reshape(3, 5)
    same(found.run({"B": 3, "N": 2}, x, x), [x + x])
    assert found.run({"B": 3, "N": -1}) == UNFIT


def test_what_stays_from_run_to_run_has_known_sizes() -> None:
    with pytest.raises(Unsupported) as error:
        compile_model(EXAMPLES["recurrent"].model(), target_named("native"), "model")
    wanted = ("what stays from run to run has open sizes: B", "fix them: --set B=...")
    assert (error.value.problem, error.value.hint) == wanted


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(void) {
  float a[12], b[4], y[12];
  int64_t shapes[MODEL_AXES];
  int64_t bytes = model_memory(3, 4);
  unsigned char *room = malloc((size_t)bytes + MODEL_ALIGNMENT);
  void *memory = room + (MODEL_ALIGNMENT - (uintptr_t)room % MODEL_ALIGNMENT);
  for (int i = 0; i < 12; i++) a[i] = (float)i;
  for (int i = 0; i < 4; i++) b[i] = (float)(100 * i);
  model_start(memory);
  for (int rows = 1; rows < 4; rows++) {
    if (model_shapes(rows, 4, shapes) || model_run(memory, rows, 4, a, b, y)) return 1;
    printf("%d %d %d %g\\n", (int)shapes[0], (int)shapes[4], (int)shapes[5], y[4 * rows - 1]);
  }
  if (model_run(memory, -1, 4, a, b, y) != 2 || model_memory(-1, 4)) return 2;
  free(room);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="wants a compiler for C")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_in_c_runs_it(threads: int, tmp_path: Path) -> None:
    found = compile_model(of_op(Add(), "N,A,f32", "1,A,f32"), target_named("native"), "model", threads=threads)
    (tmp_path / "model.h").write_text(header_text(found))
    (tmp_path / "model.o").write_bytes(found.code)
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["cc", *flags, "main.c", "model.o", "-o", "main"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["1 1 4 303", "2 2 4 307", "3 3 4 311"]
