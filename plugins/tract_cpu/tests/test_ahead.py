"""Models as object files: what they give is what the runtime gives, to the bit."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from linked_objects import LinkedObject, linked_by_llvm, same
from portable_models import EXAMPLES, Example
from tract_cpu.ahead.header import header_text
from tract_cpu.ahead.object_file import CompiledModel, compile_model
from tract_cpu.ahead.targets import TARGETS, WASM, target_named
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

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="wants a compiler for C")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def of_onnx(text: str) -> TypedModel:
    """A model from what ONNX has as a text: inputs, outputs, nodes."""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {text}')
    typed: Any = tract.onnx().load_bytes(proto.SerializeToString()).into_model().typed
    return typed


def of_op(op: TypedOp, *facts: str) -> TypedModel:
    model = TypedModel()
    inputs = [model.add_source(f"x{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("op", op, inputs))
    return model


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_kinds_of_kernels_at_all_sizes(name: str) -> None:
    """With the smallest sizes, 0 mostly, and the largest ones; for this machine, and for the plainest processor."""
    example: Example = EXAMPLES[name]
    plainest = "x86-64" if chosen("").architecture == "x86_64" else "aarch64"
    for sizes, target in ((example.sizes[0], "native"), (example.sizes[-1], "native"), (example.sizes[-1], plainest)):
        model, given = example.model().substitute(sizes), example.inputs(sizes)
        plan = CpuPlan(model, target_named(target).isa)
        same(LinkedObject.of(model, target=target).run(*given), plan.spawn().run(given))


LOOP = """(float[3,4] x, int64 n, bool c) => (float[3,4] y) {
  y = Loop(n, c, x) <
    body = b (int64 i, bool d, float[3,4] s) => (bool e, float[3,4] t) { e = Identity(d) t = Add(s, s) }
  >
}"""
BRANCH = """(bool c, float[5] x) => (float[5] y) {
  y = If(c) <then_branch = a () => (float[5] p) { p = Neg(x) }, else_branch = b () => (float[5] q) { q = Exp(x) }>
}"""


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loops_go_round_as_often_as_the_run_says(count: int) -> None:
    model, x = of_onnx(LOOP), np.arange(12, dtype="f4").reshape(3, 4)
    linked = LinkedObject.of(model)
    for goes_on in (True, False):
        rounds = count if goes_on else 0
        same(linked.run(x, np.array(count), np.array(goes_on)), [x * np.float32(2**rounds)])


def test_branches_are_chosen_in_each_run() -> None:
    model, x = of_onnx(BRANCH), np.linspace(-1, 1, 5, dtype="f4")
    linked, state = LinkedObject.of(model), CpuPlan(model, chosen("")).spawn()
    for condition in (True, False, True):
        same(linked.run(np.array(condition), x), state.run([np.array(condition), x]))


def test_what_a_stream_keeps_stays_until_it_is_started_anew() -> None:
    """The inputs of one turn are seen in the next one."""
    graph = (
        "(float[1,3,S] x) => (float[1,5,T] y) <float[5,3,4] w = {"
        + ",".join(map(str, range(60)))
        + "}> { y = Conv(x, w) }"
    )
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {graph}')
    model = tract.onnx().load_bytes(proto.SerializeToString()).into_model()
    model.transform(tract.Pulse("4"))
    typed: Any = model.typed
    linked, plan = LinkedObject.of(typed), CpuPlan(typed, chosen(""))
    assert linked.found.kept > 0
    rng = np.random.default_rng(0)
    for _ in range(2):
        state = plan.spawn()
        for _ in range(7):
            x = rng.integers(-9, 9, (1, 3, 4)).astype("f4")
            same(linked.run(x), state.run([x]))
        linked.start()


def test_a_run_that_is_refused_says_so_and_the_next_one_is_right() -> None:
    model = of_op(Gather(0), "4,3,f32", "2,i64")
    linked, data = LinkedObject.of(model), np.arange(12, dtype="f4").reshape(4, 3)
    for indices in ([0, 3], [1, 9], [-1, 2]):
        found = linked.run(data, np.array(indices))
        assert (found is None) == (9 in indices)
        if found is not None:
            same(found, [data[indices]])


def test_two_models_in_one_process_do_not_meet() -> None:
    models = [of_op(Add(), f"{size},f32", f"{size},f32") for size in (3, 8)]
    linked = [LinkedObject.of(model, name) for model, name in zip(models, ("one", "other"), strict=True)]
    for size, one in zip((3, 8), linked, strict=True):
        same(one.run(np.ones(size, "f4"), np.full(size, 2, "f4")), [np.full(size, 3, "f4")])


def test_what_an_object_cannot_be_is_told_by_name() -> None:
    with pytest.raises(Unsupported) as error:
        compile_model(of_op(Add(), "B,3,f32", "B,3,f32"), target_named("native"), "model", apart=True)
    hint = "fix them: --set B=..., or write an object file"
    assert (error.value.problem, error.value.hint) == ("sizes are open: B", hint)
    host = of_onnx("(float[3] x) => (float[3] y) { n = RandomNormalLike(x) y = Add(n, x) }")
    with pytest.raises(Unsupported, match=r"an object has native code only\nnode 'n.*': "):
        compile_model(host, target_named("native"), "model")
    with pytest.raises(InputError, match="'1st' is no name in C"):
        compile_model(of_op(Add(), "3,f32", "3,f32"), target_named("native"), "1st")
    with pytest.raises(Unsupported, match="there is no target 'z80'"):
        target_named("z80")


def small(name: str = "model", target: str = "native") -> CompiledModel:
    """A convolution with an activation and a softmax."""
    weights = ",".join(str(n % 7 - 3) for n in range(8 * 3 * 9))
    model = of_onnx(
        f"(float[1,3,8,8] image) => (float[1,8] y) <float[8,3,3,3] w = {{{weights}}}> "
        "{ c = Conv(image, w) r = Relu(c) p = ReduceMean<axes=[2,3], keepdims=0>(r) y = Softmax(p) }"
    )
    return compile_model(model, target_named(target), name)


@pytest.mark.parametrize("target", TARGETS)
def test_an_object_of_every_target(target: str) -> None:
    found = small(target=target).code
    begins = {"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "web": b"\0asm"}
    machines = {"x86-64": b"\x64\x86", "aarch64": b"\x64\xaa"}
    if target.endswith("-windows"):
        assert found.startswith(machines[re.split(r"-v|\+|-windows", target)[0]])
    else:
        system = "web" if target.startswith(WASM) else "macos" if target.endswith("-macos") else "linux"
        assert found.startswith(begins[system])


def test_weights_are_in_it_once() -> None:
    """As kernels read them, and not as the model has them, too."""
    weights = np.random.default_rng(0).standard_normal((256, 256), "f4")
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,256,f32", model.symbols))
    product = EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.F32)
    model.set_outputs(model.wire_node("y", product, [x, model.add_const("w", weights)]))
    assert len(compile_model(model, target_named("native"), "model").code) < weights.nbytes * 1.1


def test_the_same_model_gives_the_same_bytes() -> None:
    assert small().code == small().code


@pytest.mark.skipif(shutil.which("nm") is None, reason="wants nm, of binutils")
@pytest.mark.parametrize(
    "target", [one for one in TARGETS if not one.endswith(("-windows", "-macos")) and not one.startswith(WASM)]
)
def test_objects_want_nothing_but_memset(target: str, tmp_path: Path) -> None:
    path = tmp_path / "model.o"
    path.write_bytes(small(target=target).code)
    found = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[1] for line in found if line.split()[0] == "U"} <= {"memset", "memcpy"}
    assert {line.split()[2] for line in found if " T " in line} == {"model_start", "model_run"}


PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static unsigned char room[MODEL_MEMORY + MODEL_ALIGNMENT];
int main(void) {
  float image[192], y[8];
  void *memory = room + (MODEL_ALIGNMENT - (uintptr_t)room % MODEL_ALIGNMENT);
  for (int i = 0; i < 192; i++) image[i] = (float)(i % 5);
  model_start(memory);
  if (model_run(memory, image, y)) return 1;
  for (int i = 0; i < 8; i++) printf("%.9g\\n", y[i]);
  return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("language", [["-std=c99"], ["-x", "c++"]], ids=["c", "c++"])
def test_a_program_in_c_runs_it(language: list[str], tmp_path: Path) -> None:
    if "c++" in language and shutil.which("c++") is None:
        pytest.skip("wants a compiler for C++")
    found = small()
    (tmp_path / "model.h").write_text(header_text(found))
    (tmp_path / "model.o").write_bytes(found.code)
    (tmp_path / "main.c").write_text(PROGRAM)
    compiler = "c++" if "c++" in language else "cc"
    subprocess.run([compiler, *language, *STRICT, "-c", "main.c", "-o", "main.o"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "main.o", "model.o", "-o", "main"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    image = (np.arange(192) % 5).astype("f4").reshape(1, 3, 8, 8)
    wanted = linked_by_llvm(found, target_named("native")).run(image)
    assert wanted is not None
    np.testing.assert_array_equal(np.float32(said.split()), wanted[0][0])


def test_names_become_names_in_c() -> None:
    model = TypedModel()
    outlets = [
        model.add_source(name, parse_typed_fact("2,f16", model.symbols))
        for name in ("a.b", "a/b", "1", "int", "memory")
    ]
    model.set_outputs(outlets)
    text = header_text(
        CompiledModel(b"", "net", tuple((model.outlet_name(one), model.outlet_fact(one)) for one in outlets), 4, 64, 0)
    )
    names = "const uint16_t *a_b, const uint16_t *a_b_2, const uint16_t *_1, const uint16_t *int_, uint16_t *memory_"
    assert f"int32_t net_run(void *memory, {names});" in text
    assert "a_b_2: input [2] f16, row by row, 'a/b' in the model" in text
