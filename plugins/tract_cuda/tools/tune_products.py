"""Measure which tiles compute the products of networks best, on the GPU of this machine.

``python tune_products.py NETWORK.onnx ... --out measured.json``

For each product of a network: all tiles, each with the depth in several numbers of parts. The best one is written down,
under the architecture, for `tract_cuda.products.measured` to be found by, together with what was measured before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tract_cuda.binding import bind_launch
from tract_cuda.compile import compiled
from tract_cuda.driver.device import MULTIPROCESSORS, Device, Graph, device_of
from tract_cuda.language.arch import Arch, arch_for
from tract_cuda.lower import conv, einsum
from tract_cuda.lowering import Lowering, Target
from tract_cuda.products import choose
from tract_cuda.products import product as products
from tract_cuda.products.measured import TABLE, key_of
from tract_cuda.program import CudaProgram
from tract_cuda.ptx import ptx_for
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View

import tract_core as tract
from tract_core.model.typed import TypedModel

REPEATS = 20
ROUNDS = 3


def products_of(model: TypedModel, target: Target) -> list[products.Product]:
    """All products of a model, each once."""
    found: dict[str, products.Product] = {}
    add = choose.add_product

    def noted(lowering: Lowering, product: products.Product, nodes: Any) -> None:
        read = choose.as_read(lowering, replace(product, tf32=target.tf32))
        key = key_of(read)
        if key is not None and product.result.shape[1] > choose.MOST_ROWS:
            found.setdefault(key, read)
        add(lowering, product, nodes)

    einsum.add_product = conv.add_product = noted
    compiled(model, target)
    einsum.add_product = conv.add_product = add
    return list(found.values())


def candidates(product: products.Product, multiprocessors: int) -> Iterator[products.Choice]:
    """Tiles, with numbers of parts."""
    pairs, rows, columns = product.result.shape
    tiles, flat = products.tiles_for(product)
    factors = products.factors_of(product)
    others = products.OTHERS if factors is None else [products.as_deep(one, factors) for one in products.OTHERS_MMA]
    for tile in (*tiles, flat, *others):
        if tile.rows >= 2 * rows + 16 or tile.columns >= 2 * columns + 32:
            continue
        blocks = products.blocks(tile, pairs, rows, columns)
        most = max(1, min(4 * multiprocessors // blocks, product.depth // 32, 64))
        parts = sorted({1, *(one for one in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if one <= most)})
        yield from ((tile, one) for one in parts)


def prepare(target: Target, every: list[products.Product]) -> None:
    """Have all kernels compiled, by as many processes as there are processors. We keep them, and so does the driver."""
    plans: dict[Any, None] = {}
    for product in every:
        for choice in candidates(product, target.multiprocessors):
            plans |= dict.fromkeys(step.kernel for step in program_of(product, target, choice).steps)
    with get_context("spawn").Pool() as pool:
        pool.map(_loaded, [(plan, target.arch) for plan in plans], chunksize=4)


def _loaded(kernel: tuple[Any, Any]) -> None:
    plan, arch = kernel
    device_of(0).function(ptx_for(plan, arch))


class Bench:
    """A device on which products are computed, of numbers that nobody reads."""

    def __init__(self, device: Device, target: Target) -> None:
        self.device, self.target, self.stream = device, target, device.stream()

    def seconds(self, product: products.Product, choice: products.Choice) -> float:
        """How long one product takes, of many one behind the other."""
        program = program_of(product, self.target, choice)
        memory = [self.device.allocate(int(size)) for size in program.arena]
        addresses = {Storage(Kind.ARENA, number): one.address for number, one in enumerate(memory)}
        launches = [bind_launch(step, program, addresses, {}) for step in program.steps]
        loaded = [self.device.function(ptx_for(one.step.kernel, self.target.arch, wide=one.wide)) for one in launches]
        with self.stream.capture() as capture:
            for _ in range(REPEATS):
                for one, function in zip(launches, loaded, strict=True):
                    self.stream.launch(function, one.grid, one.arguments())
        return min(self._seconds_of(capture.graph) for _ in range(ROUNDS)) / REPEATS

    def _seconds_of(self, graph: Graph) -> float:
        begin = self.stream.event()
        graph.launch(self.stream)
        end = self.stream.event()
        self.stream.synchronize()
        return end.seconds_since(begin)

    def best(
        self, product: products.Product, choices: Iterable[products.Choice]
    ) -> tuple[products.Choice, dict[products.Choice, float]]:
        """The choice that takes the least time, and how long each takes."""
        timed = {choice: self.seconds(product, choice) for choice in choices}
        return min(timed, key=lambda one: timed[one]), timed


def program_of(product: products.Product, target: Target, choice: products.Choice) -> CudaProgram:
    """A product that is all there is, with memory of its own for each tensor."""
    lowering = Lowering(TypedModel(), target)
    product = replace(
        product,
        left=placed(lowering, product.left),
        right=placed(lowering, product.right),
        operands=tuple(placed(lowering, one) for one in product.operands),
        result=placed(lowering, product.result),
    )
    products.add_tiles(lowering, product, choice, ())
    return lowering.program()


def placed(lowering: Lowering, view: View) -> View:
    """The same view on new memory, which reaches as far as it does."""
    reach = sum((size - 1) * max(stride, 0) for size, stride in zip(view.shape, view.strides, strict=True))
    return replace(view, storage=lowering.scratch(view.element, (view.offset + reach + 1,)).storage)


def report_of(product: products.Product, timed: dict[products.Choice, float], rule: products.Choice) -> str:
    """The least time, beside that of what the rule would choose."""
    least, pairs, rows, columns = min(timed.values()), *product.result.shape
    rate = 2 * product.depth * pairs * rows * columns / least / 1e12
    was = f"rule {timed[rule] * 1e6:.1f}" if rule in timed else ""
    return f"{least * 1e6:.1f} us {was} {rate:.1f} TFLOP/s of {len(timed)}"


def tune(bench: Bench, product: products.Product, most: int | None = None) -> tuple[list[int], str]:
    """The best tile and number of parts, as `measured.json` has them, and a report. ``most``: candidates to try."""
    every = islice(candidates(product, bench.target.multiprocessors), most)
    (tile, parts), timed = bench.best(product, every)
    numbers = [*(getattr(tile, one.name) for one in fields(tile)), parts]
    return numbers, report_of(product, timed, products.by_rule(product, bench.target.multiprocessors))


def merged(found: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The table that there is, with what was found for an architecture."""
    table: dict[str, Any] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    name = arch.name.rstrip("a")
    return table | {name: dict(sorted((table.get(name, {}) | dict(found)).items()))}


def written(table: Mapping[str, Any], file: Path) -> None:
    """A table, one product a line."""
    parts = [
        f' "{arch}": {{\n' + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()) + "\n }"
        for arch, rows in table.items()
    ]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> None:
    """Measure, and write what was found after each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=120)
    given = parser.parse_args()
    device, begin = device_of(0), time.monotonic()
    arch = arch_for(device.capability)
    assert arch is not None, "the GPU is too old"
    target = Target(arch, device.attribute(MULTIPROCESSORS))
    bench, found = Bench(device, target), {}
    for file in given.files:
        if time.monotonic() - begin > given.seconds:
            break
        model = tract.onnx().load(file).into_model().typed
        every = [one for one in products_of(model, target) if key_of(one) not in found]
        prepare(target, every)
        for product in every:
            key = key_of(product)
            if key in found or time.monotonic() - begin > given.seconds:
                continue
            found[key], report = tune(bench, product)
            print(f"{Path(file).stem} {key} {found[key]} {report}", flush=True)
        written(merged(found, arch), Path(given.out))


if __name__ == "__main__":
    main()
