"""Objects for processors of another kind, run by QEMU: they give what the same kernels give here, to the bit.

But for subnormal f32 on 32-bit ARM: vectors there have zeros in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from bench_networks import WORKLOADS, small_network
from emulated_program import MACHINES, build_emulated, run_built, run_emulated
from object_program import Work
from portable_models import EXAMPLES
from tract_cpu.ahead.arm import FUNCTIONS
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import target_named
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import portable
from tract_llvm.objects.target import machine_for, parsed

from tract_core.errors import Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.cumsum import CumSum
from tract_core.ops.reduce import Reduce, Reducer

KINDS = ("functions of f32", "casts from f16", "reductions of u8", "norms of bf16", "recurrent", "best", "quantised")
NETWORKS = ("MobileNetV2", "ResNet-50 int8", "LSTM")

Model = tuple[TypedModel, Sequence[np.ndarray], Mapping[str, int]]
"""A model, what it is given, and its open sizes."""


def skip_without(target: str) -> None:
    if lacks := MACHINES[target].lacks:
        pytest.skip(f"wants {lacks}, of Debian: make test-objects")


def check(models: Sequence[Model], target: str, folder: Path) -> None:
    chosen = target_named(target)
    given = [[_zeroed(one) for one in arrays] if chosen.isa.flushes else arrays for _, arrays, _ in models]
    works = [
        Work(compile_model(model, chosen, f"model_{number}", threads=2), arrays, sizes)
        for number, ((model, _, sizes), arrays) in enumerate(zip(models, given, strict=True))
    ]
    for (model, _, _), arrays, found in zip(models, given, run_emulated(works, target, folder), strict=True):
        state = CpuPlan(model, portable(chosen.isa)).spawn()
        for one, wanted in zip(found, state.run(arrays), strict=True):
            _same(one, np.where(one == wanted, wanted, _zeroed(wanted)) if chosen.isa.flushes else wanted)


def _zeroed(array: np.ndarray) -> np.ndarray:
    """With zeros in the place of what no f32 holds without being subnormal. Numbers of f16 are not that small."""
    if array.dtype.name not in {"float32", "bfloat16"}:
        return array
    small = np.abs(array.astype("f8")) < 2.0**-126
    return np.where(small, np.copysign(array.dtype.type(0), array), array)


def _same(found: np.ndarray, wanted: np.ndarray) -> None:
    """The same bits, but for those of what is no number."""
    is_number = wanted == wanted  # noqa: PLR0124 (bits of what is none differ)
    np.testing.assert_array_equal(found == found, is_number)  # noqa: PLR0124 (the same)
    assert found[is_number].tobytes() == wanted[is_number].tobytes()


def example(name: str) -> Model:
    found = EXAMPLES[name]
    return found.model().substitute(found.sizes[-1]), found.inputs(found.sizes[-1]), {}


def open_example(name: str) -> Model:
    found = EXAMPLES[name]
    return found.model(), found.inputs(found.sizes[-1]), found.sizes[-1]


OPEN = [name for name in EXAMPLES if name != "recurrent"]
"""Those that keep nothing of open sizes."""


@pytest.mark.parametrize("target", MACHINES)
def test_kinds_of_kernels(target: str, tmp_path: Path) -> None:
    skip_without(target)
    check([*map(example, KINDS), *(open_example(name) for name in KINDS if name in OPEN)], target, tmp_path)


@pytest.mark.emulated
@pytest.mark.parametrize("target", MACHINES)
def test_all_kinds_of_kernels_and_networks(target: str, tmp_path: Path) -> None:
    skip_without(target)
    networks = [(*small_network(one), {}) for one in WORKLOADS if one.name in NETWORKS]
    check([*map(example, EXAMPLES), *map(open_example, OPEN), *networks], target, tmp_path)


_DIVISIONS = "".join(
    f"define i{bits} @{name}{bits}(i{bits} %a, i{bits} %b) {{\n %c = {name} i{bits} %a, %b\n ret i{bits} %c\n}}\n"
    for bits in (32, 64)
    for name in ("sdiv", "udiv", "srem", "urem")
)
_CONVERSIONS = "".join(
    f"define {there} @{short}_{there}({here} %a) {{\n %c = {name} {here} %a to {there}\n ret {there} %c\n}}\n"
    f"define {here} @{there}_{short}({there} %a) {{\n %c = {back} {there} %a to {here}\n ret {here} %c\n}}\n"
    for there in ("float", "double")
    for short, here, name, back in (("i64", "i64", "sitofp", "fptosi"), ("u64", "i64", "uitofp", "fptoui"))
)
_COMPARES = """
#include <stdint.h>
#define TYPED(bits) \\
  int##bits##_t sdiv##bits(int##bits##_t, int##bits##_t), srem##bits(int##bits##_t, int##bits##_t); \\
  uint##bits##_t udiv##bits(uint##bits##_t, uint##bits##_t), urem##bits(uint##bits##_t, uint##bits##_t); \\
  static int wrong##bits(int##bits##_t a, int##bits##_t b) { \\
    uint##bits##_t c = (uint##bits##_t)a, d = (uint##bits##_t)b; \\
    if (!b) return 0; \\
    if (udiv##bits(c, d) != c / d || urem##bits(c, d) != c % d) return 1; \\
    return !(b == -1 && a == INT##bits##_MIN) && (sdiv##bits(a, b) != a / b || srem##bits(a, b) != a % b); \\
  }
TYPED(32)
TYPED(64)
float i64_float(int64_t), u64_float(uint64_t);
double i64_double(int64_t), u64_double(uint64_t);
int64_t float_i64(float), double_i64(double);
uint64_t float_u64(float), double_u64(double);
static const int64_t ends[] = {0, 1, 3, 10, INT64_C(1) << 24, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 53,
                               INT64_C(1) << 62, INT64_MIN, INT64_C(0x2000004000001)};
enum { ENDS = sizeof ends / sizeof *ends };
static int64_t number(int i) {
  return (int64_t)((uint64_t)ends[i / 6 % ENDS] * (i % 2 ? UINT64_MAX : 1) + (uint64_t)(i / 2 % 3) - 1);
}
int main(void) {
  int wrong = 0;
  for (int i = 0; i < 6 * ENDS; i++) {
    int64_t a = number(i);
    uint64_t u = (uint64_t)a;
    float f = (float)a * 0.75f, g = (float)u * 0.75f;
    double d = (double)a * 0.75, e = (double)u * 0.75;
    for (int j = 0; j < 6 * ENDS; j++) wrong += wrong64(a, number(j)) + wrong32((int32_t)a, (int32_t)number(j));
    wrong += i64_float(a) != (float)a || u64_float(u) != (float)u;
    wrong += i64_double(a) != (double)a || u64_double(u) != (double)u;
    wrong += float_i64(f) != (int64_t)f || double_i64(d) != (int64_t)d;
    wrong += float_u64(g) != (uint64_t)g || double_u64(e) != (uint64_t)e;
  }
  return wrong > 100 ? 100 : wrong;
}
"""


@pytest.mark.parametrize("target", [one for one in MACHINES if one.startswith("armv7")])
def test_what_arm_has_no_instruction_for(target: str, tmp_path: Path) -> None:
    """The library of the compiler says what is right."""
    skip_without(target)
    chosen = target_named(target)
    machine = machine_for(chosen.isa, chosen.triple)
    module = parsed(_DIVISIONS + _CONVERSIONS, machine)
    module.link_in(parsed(FUNCTIONS, machine))
    for function in module.functions:
        if function.name.startswith("__aeabi_"):
            function.linkage = "internal"
    (tmp_path / "functions.o").write_bytes(machine.emit_object(module))
    (tmp_path / "main.c").write_text(_COMPARES)
    build_emulated(target, tmp_path, ["main.c", "functions.o"])
    said = run_built(target, tmp_path)
    assert said.returncode == 0, f"{said.returncode} numbers are wrong: {said.stderr}"


def test_memory_that_has_no_addresses_is_refused() -> None:
    model = TypedModel()
    inputs = [
        model.add_source(name, parse_typed_fact(fact)) for name, fact in (("x", "40000,1,f32"), ("y", "1,40000,f32"))
    ]
    table = model.wire_node("table", Add(), inputs)
    summed = model.wire_node("summed", CumSum(1), table)
    model.set_outputs(model.wire_node("least", Reduce((0,), Reducer.MIN), summed))
    compile_model(model, target_named("riscv64"), "model")
    with pytest.raises(Unsupported, match=r"a run works in [0-9,]+ bytes, and armv7 has addresses for 2,147,483,648"):
        compile_model(model, target_named("armv7"), "model")
