"""Measure which tiles compute the products of networks best, on the GPU of this machine.

``python tune_products.py NETWORK.onnx ... --out measured.json``

For each product of a network: all tiles, each with the depth in several numbers of parts. The best one is written down,
under the architecture, for `tract_cuda.products.measured` to be found by.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Iterator
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tract_cuda.binding import bind_launch
from tract_cuda.compile import compiled
from tract_cuda.driver.device import MULTIPROCESSORS, Device, device_of
from tract_cuda.language.arch import arch_for
from tract_cuda.lower import conv, einsum
from tract_cuda.lowering import Lowering, Target
from tract_cuda.products import choose
from tract_cuda.products import product as products
from tract_cuda.products.measured import key_of
from tract_cuda.ptx import ptx_for
from tract_llvm.program.views import Kind, Storage

import tract_core as tract
from tract_core.model.typed import TypedModel

REPEATS = 20
ROUNDS = 3


def products_of(model: TypedModel, target: Target) -> list[products.Product]:
    """All products of a model, each once."""
    found: dict[str, products.Product] = {}
    add = choose.add_product

    def noted(lowering: Lowering, product: products.Product, nodes: Any) -> None:
        key = key_of(product)
        if key is not None and product.result.shape[1] > choose.MOST_ROWS:
            found.setdefault(key, product)
        add(lowering, product, nodes)

    einsum.add_product = conv.add_product = noted
    compiled(model, target)
    einsum.add_product = conv.add_product = add
    return list(found.values())


def candidates(product: products.Product, multiprocessors: int) -> Iterator[tuple[products.Tile, int]]:
    """Tiles, with numbers of parts."""
    pairs, rows, columns = product.result.shape
    tiles, flat = products.tiles_for(product)
    others = products.OTHERS_MMA if isinstance(flat, products.MmaTile) else products.OTHERS
    for tile in (*tiles, flat, *others):
        if tile.rows >= 2 * rows + 16 or tile.columns >= 2 * columns + 32:
            continue
        blocks = products.blocks(tile, pairs, rows, columns)
        most = max(1, min(4 * multiprocessors // blocks, product.depth // 32, 64))
        parts = sorted({1, *(one for one in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if one <= most)})
        yield from ((tile, one) for one in parts)


def prepare(model: TypedModel, target: Target, every: list[products.Product]) -> None:
    """Have all kernels compiled, by as many processes as there are processors. We keep them, and so does the driver."""
    plans: dict[Any, None] = {}
    for product in every:
        for choice in candidates(product, target.multiprocessors):
            lowering = Lowering(model, target)
            products.add_tiles(lowering, product, choice, ())
            plans |= dict.fromkeys(step.kernel for step in lowering.steps)
    with get_context("spawn").Pool() as pool:
        pool.map(_loaded, [(plan, target.arch) for plan in plans], chunksize=4)


def _loaded(kernel: tuple[Any, Any]) -> None:
    plan, arch = kernel
    device_of(0).function(ptx_for(plan, arch))


class Bench:
    """A device with memory that products read and write."""

    def __init__(self, device: Device, target: Target) -> None:
        self.device, self.target, self.stream = device, target, device.stream()
        self.memory = {}

    def seconds(self, model: TypedModel, product: products.Product, tile: products.Tile, parts: int) -> float:
        """How long one product takes, of many one behind the other."""
        lowering = Lowering(model, self.target)
        products.add_tiles(lowering, product, (tile, parts), ())
        places = _Places(self)
        launches = [bind_launch(step, _Sizes(), places, {}) for step in lowering.steps]
        loaded = [self.device.function(ptx_for(one.step.kernel, self.target.arch)) for one in launches]
        with self.stream.capture() as capture:
            for _ in range(REPEATS):
                for one, function in zip(launches, loaded, strict=True):
                    kinds = [ctypes.c_uint64 if pointer else ctypes.c_int32 for pointer in one.pointers]
                    values = [kind(value) for kind, value in zip(kinds, one.values, strict=True)]
                    self.stream.launch(function, one.grid, values)
        least = float("inf")
        for _ in range(ROUNDS):
            begin = self.stream.event()
            capture.graph.launch(self.stream)
            end = self.stream.event()
            self.stream.synchronize()
            least = min(least, end.seconds_since(begin) / REPEATS)
        return least


class _Sizes:
    """A program whose storages are as large as any."""

    def __init__(self) -> None:
        self.arena = _Always(0)
        self.constants = _Always(type("Nothing", (), {"nbytes": 0}))


class _Always:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, number: int) -> Any:
        return self.value


class _Places(dict[Storage, int]):
    """An address for each storage: memory of 512 MiB, shared by what nobody reads."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench

    def __missing__(self, storage: Storage) -> int:
        memory = self.bench.memory
        key = (storage.kind is Kind.CONSTANT, len(self) % 6)
        if key not in memory:
            memory[key] = self.bench.device.allocate(512 << 20)
        self[storage] = memory[key].address
        return self[storage]


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
        prepare(model, target, every)
        for product in every:
            key = key_of(product)
            if key in found or time.monotonic() - begin > given.seconds:
                continue
            timed = {}
            for tile, parts in candidates(product, target.multiprocessors):
                timed[tile, parts] = bench.seconds(model, product, tile, parts)
            best = min(timed, key=lambda one: timed[one])
            rule = products.by_rule(product, target.multiprocessors)
            ruled = timed.get(rule)
            tile, parts = best
            found[key] = [*(getattr(tile, one.name) for one in fields(tile)), parts]
            flops = 2 * product.depth * product.result.shape[0] * product.result.shape[1] * product.result.shape[2]
            was = "" if ruled is None else f"rule {ruled * 1e6:.1f}"
            print(
                f"{Path(file).stem} {key} {found[key]} {timed[best] * 1e6:.1f} us {was}"
                f" {flops / timed[best] / 1e12:.1f} TFLOP/s of {len(timed)}",
                flush=True,
            )
        Path(given.out).write_text(json.dumps({arch.name.rstrip("a"): found}, indent=0))


if __name__ == "__main__":
    main()
