"""Modules of WebAssembly, run by node: what they give is what the same kernels give here, to the bit."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_networks import WORKLOADS, Workload, small_network
from exact import exact_outputs
from portable_models import EXAMPLES
from test_dots import SHORT, values
from test_tile_conv import conv
from tract_cpu.ahead.npm import npm_name, npm_package, web_files
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.script import script_text
from tract_cpu.ahead.targets import SIMD128, WASM, target_named
from tract_cpu.ahead.wasm import module_of
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import portable

from tract_core.dims import evaluate
from tract_core.errors import InputError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, reference
from tract_core.ops.elementwise import Square
from tract_core.ops.gather import Gather

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="wants node")

RUN = """
import fs from "node:fs";
import { load, inputs } from "./model.mjs";
const model = await load();
const { outputs, turns, sizes } = JSON.parse(fs.readFileSync("turns.json"));
for (const [turn, names] of turns.entries()) {
  const given = {};
  for (const [name, file] of Object.entries(names)) {
    const { buffer, byteOffset, byteLength } = fs.readFileSync(file);
    given[name] = new inputs[name].array(buffer.slice(byteOffset, byteOffset + byteLength));
  }
  try {
    const gives = model.run(given, sizes[turn]);
    for (const [number, one] of outputs.map((name) => gives[name]).entries()) {
      fs.writeFileSync(`${turn}.${number}.out`, new Uint8Array(one.buffer, one.byteOffset, one.byteLength));
    }
  } catch (error) {
    fs.writeFileSync(`${turn}.error`, error.message);
  }
}
"""

Turn = Sequence[np.ndarray]
Sizes = Mapping[str, int]


RELAXED = "wasm32+relaxed-simd"
RELAXED_FLAG = "--experimental-wasm-relaxed-simd"
"""What versions of node before 21 want."""


def flags() -> list[str]:
    said = subprocess.run(["node", "--v8-options"], capture_output=True, text=True, check=True).stdout
    return [RELAXED_FLAG] if RELAXED_FLAG in said else []


def run(
    model: TypedModel, turns: Sequence[Turn], folder: Path, target: str = WASM, sizes: Sequence[Sizes] = ()
) -> list[list[np.ndarray] | str]:
    """What the module gives in each turn, or the message of its error. ``sizes``: of each turn, where they are open."""
    found = compile_model(model, target_named(target), "model")
    (folder / "model.wasm").write_bytes(web_files(found, "model")["model.wasm"])
    (folder / "model.mjs").write_text(script_text(found, "model.wasm"))
    (folder / "run.mjs").write_text(RUN)
    names = list[dict[str, str]]()
    for turn, arrays in enumerate(turns):
        given = dict(zip((name for name, _ in found.arrays), arrays, strict=False))
        names.append({name: f"{turn}.{number}.in" for number, name in enumerate(given)})
        for number, array in enumerate(arrays):
            (folder / f"{turn}.{number}.in").write_bytes(np.ascontiguousarray(array).tobytes())
    outputs = [name for name, _ in found.arrays[found.inputs :]]
    (folder / "turns.json").write_text(json.dumps({"outputs": outputs, "turns": names, "sizes": list(sizes)}))
    subprocess.run(["node", *(flags() if target == RELAXED else []), "run.mjs"], cwd=folder, check=True, timeout=120)
    facts = [fact for _, fact in found.arrays[found.inputs :]]
    given = zip(range(len(turns)), sizes or [{}] * len(turns), strict=True)
    return [_given(folder, turn, facts, known) for turn, known in given]


def _given(folder: Path, turn: int, facts: Sequence[Any], sizes: Sizes) -> list[np.ndarray] | str:
    error = folder / f"{turn}.error"
    if error.exists():
        return error.read_text()
    shapes = [([evaluate(size, sizes) for size in fact.shape], fact.datum_type.storage.numpy) for fact in facts]
    return [
        np.frombuffer((folder / f"{turn}.{number}.out").read_bytes(), kind).reshape(shape)
        for number, (shape, kind) in enumerate(shapes)
    ]


def check(model: TypedModel, turns: Sequence[Turn], folder: Path, sizes: Sequence[Sizes] = ()) -> None:
    """The module gives what kernels for its instruction set give, written out for this machine."""
    state = CpuPlan(model, portable(SIMD128)).spawn()
    for found, given in zip(run(model, turns, folder, sizes=sizes), turns, strict=True):
        for one, wanted in zip(found, state.run(list(given)), strict=True):
            assert not isinstance(one, str), found
            is_number = wanted == wanted  # noqa: PLR0124 (bits of what is none differ)
            np.testing.assert_array_equal(one == one, is_number)  # noqa: PLR0124 (the same)
            assert one[is_number].tobytes() == wanted[is_number].tobytes()


CHOSEN = ("MobileNetV2", "ResNet-50 int8", "BERT-base bf16", "LSTM", "ViT")
"""Networks with kernels of most kinds."""


@pytest.mark.parametrize("workload", [one for one in WORKLOADS if one.name in CHOSEN], ids=lambda one: one.name)
def test_networks(workload: Workload, tmp_path: Path) -> None:
    typed, given = small_network(workload)
    check(typed, [given, given], tmp_path)


KINDS = ("functions of f32", "casts from f16", "reductions of u8", "norms of bf16", "recurrent", "best", "quantised")


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_kernels(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    for number, sizes in enumerate((example.sizes[0], example.sizes[-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(example.model().substitute(sizes), [example.inputs(sizes)], folder)


@pytest.mark.parametrize("name", [*(one for one in KINDS if one != "recurrent"), "convolution of u8 by i8"])
def test_modules_whose_sizes_are_open(name: str, tmp_path: Path) -> None:
    """There and back, as memory grows and stays."""
    example = EXAMPLES[name]
    sizes = [*example.sizes, *reversed(example.sizes)]
    check(example.model(), [example.inputs(one) for one in sizes], tmp_path, sizes)


def test_sizes_that_cannot_be_are_errors(tmp_path: Path) -> None:
    model, x = TypedModel(), np.arange(4, dtype="f4")
    inputs = [model.add_source(name, parse_typed_fact(f"{name},f32", model.symbols)) for name in ("N", "M")]
    model.set_outputs(model.wire_node("y", Add(), inputs))
    sizes = [{"N": 4, "M": 3}, {"N": 4}, {"N": 4, "M": 1.5}, {"N": 1 << 40, "M": 1}, {"N": 3, "M": 1}, {"N": 4, "M": 1}]
    found = run(model, [(x, x[:1])] * len(sizes), tmp_path, sizes=sizes)
    lacks = "there is no size M, or it is no integer"
    assert found[:3] == ["sizes cannot be N=4, M=3", lacks, lacks]
    assert isinstance(found[3], str)
    assert found[4] == "N has 4 elements, wanted 3, [3]"
    np.testing.assert_array_equal(found[5][0], x)


def test_a_run_that_is_refused_is_an_error_and_the_next_one_is_right(tmp_path: Path) -> None:
    model = TypedModel()
    inputs = [
        model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in (("x", "4,f32"), ("i", "2,i64"))
    ]
    model.set_outputs(model.wire_node("y", Gather(0), inputs))
    x = np.arange(4, dtype="f4")
    found = run(model, [(x, np.array([1, 7])), (x, np.array([1, 3]))], tmp_path)
    assert found[0] == "the model could not be run, as an index is beyond its axis"
    np.testing.assert_array_equal(found[1][0], x[[1, 3]])


def test_names_may_be_numbers_and_whatever_objects_have(tmp_path: Path) -> None:
    """Objects of JavaScript have the former first, and some of the latter before anybody gives them."""
    model, x, y = TypedModel(), np.arange(4, dtype="f4"), np.array([2, 0, 1])
    inputs = [model.add_source(name, parse_typed_fact(fact)) for name, fact in (("b", "4,f32"), ("2", "3,i64"))]
    found = [model.wire_node(name, Gather(0), inputs)[0] for name in ("10", "toString", "__proto__")]
    model.set_outputs([*found, *model.wire_node("1", Square(), [inputs[0]])])
    (given,) = run(model, [[x, y]], tmp_path)
    for one in given[:3]:
        np.testing.assert_array_equal(one, x[y])
    np.testing.assert_array_equal(given[3], x * x)


def test_an_object_that_wants_a_function_is_told_by_name() -> None:
    imports = b"\x01\x03env\x06memset\x00\x00"
    code = b"\0asm\1\0\0\0" + bytes([2, len(imports)]) + imports
    with pytest.raises(Unsupported, match=r"the object wants a function env\.memset"):
        module_of(code, [])


@pytest.mark.parametrize("name", ["MobileNetV2", "BERT-base", "LSTM"])
def test_relaxed_instructions_are_near_float64(name: str, tmp_path: Path) -> None:
    workload = next(one for one in WORKLOADS if one.name == name)
    typed, given = small_network(workload)
    network = workload.build(**workload.small)
    (found,) = run(typed, [given], tmp_path, RELAXED)
    for one, other in zip(found, exact_outputs(network.model, network.inputs).values(), strict=True):
        assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


@pytest.mark.parametrize("target", [WASM, RELAXED])
def test_convolutions_of_bytes_are_exact(target: str, tmp_path: Path) -> None:
    for number, (left, right) in enumerate((("u1", "i1"), ("i1", "u1"))):
        weights, bias = values(right, (7, 9, 3, 3), 0), values("i4", (7,), 1) >> 4
        model = conv(f"1,9,6,6,{SHORT[left]}", weights, bias, stride=2)
        x, folder = values(left, (1, 9, 6, 6), 2), tmp_path / str(number)
        folder.mkdir()
        (found,) = run(model, [[x]], folder, target)
        op = next(node.op for node in model.nodes if isinstance(node.op, Conv))
        wanted = reference(op, x.astype("i8"), weights.astype("i8"), bias.astype("i8"))
        np.testing.assert_array_equal(found[0], wanted.astype("i4"))


def test_plain_modules_have_nothing_relaxed() -> None:
    typed, _ = small_network(next(one for one in WORKLOADS if one.name == "MobileNetV2"))
    relaxed_madd = b"\xfd\x85\x02"
    for target, has in ((WASM, False), (RELAXED, True)):
        found = compile_model(typed, target_named(target), "model")
        assert (relaxed_madd in module_of(found.code, [])) == has


@pytest.mark.skipif(shutil.which("npm") is None, reason="wants npm")
def test_what_npm_installs_is_found_by_its_name(tmp_path: Path) -> None:
    model = TypedModel()
    model.set_outputs(model.wire_node("y", Square(), [model.add_source("x", parse_typed_fact("3,f32"))]))
    found, file = compile_model(model, target_named(WASM), "my_net"), tmp_path / "my-net-2.0.1.tgz"
    file.write_bytes(npm_package(found, *npm_name(file)))
    assert file.read_bytes() == npm_package(found, "my-net", "2.0.1")
    (tmp_path / "package.json").write_text('{"private": true}')
    subprocess.run(["npm", "install", "--offline", "--no-audit", f"./{file.name}"], cwd=tmp_path, check=True)
    script = """
import { load } from "my-net";
const { y } = (await load()).run({ x: [1, 2, 3] });
const { default: said } = await import("./node_modules/my-net/package.json", { with: { type: "json" } });
console.log([...y], import.meta.resolve("my-net/my-net.wasm").endsWith("/my-net/my-net.wasm"), said.version);
"""
    (tmp_path / "main.mjs").write_text(script)
    done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[ 1, 4, 9 ] true 2.0.1"


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.tgz", ("a", "1.0.0")), ("my-net-2.0.1.tgz", ("my-net", "2.0.1")), ("n-1.2.3-rc.1.tgz", ("n", "1.2.3-rc.1"))],
)
def test_files_of_npm_say_names_and_versions(file: str, name: tuple[str, str]) -> None:
    assert npm_name(Path("x") / file) == name


@pytest.mark.parametrize("file", ["A.tgz", "a.nnef.tgz", "-a.tgz", ".tgz", "ä.tgz"])
def test_other_names_are_refused(file: str) -> None:
    with pytest.raises(InputError, match="names no package of npm"):
        npm_name(Path(file))


def test_profilers_see_the_names_of_kernels() -> None:
    model = TypedModel()
    model.set_outputs(model.wire_node("y", Square(), [model.add_source("x", parse_typed_fact("3,f32"))]))
    module = module_of(compile_model(model, target_named(WASM), "net").code, ["net_start", "net_run"])
    names = module[module.rindex(b"\x04name") :]
    assert b"\x07net_run" in names
    assert b"\x0cmap_" in names
