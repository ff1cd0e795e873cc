"""How much memory a module of PyTorch takes on its way to an archive, beyond the module itself.

``python bench/bench_torch_memory.py [--megabytes 1024] [--only NAME ...]``

Each network is loaded and written as a tar in a process of its own, and exported in another one, without and with the
check, which runs the archive beside the module. What is printed is the peak of the process's
resident memory from then on (the kernel's, which counts mapped files too), less what was resident before, over the
bytes of the weights: 0 is the best, and the bound is 1.3.
"""

from __future__ import annotations

import argparse
import gc
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

SIZE = 2048
"""Rows and columns of a matrix, which takes 16 MiB in f32."""

Network = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def linear(count: int, dtype: torch.dtype) -> Network:
    """Linear layers one after the other."""
    layers = [torch.nn.Linear(SIZE, SIZE, dtype=dtype, device="meta").to_empty(device="cpu") for _ in range(count)]
    return torch.nn.Sequential(*layers), (torch.ones(2, SIZE, dtype=dtype),)


class Tied(torch.nn.Module):
    """A language model, half of whose weights are the table at its beginning, which is the matrix at its end too."""

    def __init__(self, count: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(count // 2 * SIZE, SIZE, dtype=dtype, device="meta").to_empty(device="cpu")
        self.body = linear(count - count // 2, dtype)[0]
        self.head = torch.nn.Linear(1, 1, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [batch, length] -> scores [batch, length, tokens]."""
        return self.head(self.body(self.table(tokens)))


def tied(count: int, dtype: torch.dtype) -> Network:
    """A table that is shared, and linear layers."""
    return Tied(count, dtype), (torch.ones(1, 3, dtype=torch.int64),)


def convolutions(count: int, dtype: torch.dtype) -> Network:
    """Convolutions, with batch normalisation behind each."""
    channels, layers = SIZE // 2, list[torch.nn.Module]()
    for index in range(count):
        place = torch.nn.Conv2d(channels, channels, 2, padding=index % 2, dtype=dtype, device="meta")
        layers += [place.to_empty(device="cpu"), torch.nn.BatchNorm2d(channels, dtype=dtype), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers), (torch.ones(1, channels, 4, 4, dtype=dtype),)


NETWORKS: dict[str, Callable[[int, torch.dtype], Network]] = {
    "linear": linear,
    "tied": tied,
    "convolutions": convolutions,
}


def resident(field: str) -> int:
    """Bytes of resident memory: now (``VmRSS``), or the most there was (``VmHWM``)."""
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def prepared(name: str, megabytes: int, dtype: torch.dtype) -> tuple[Network, int]:
    """A network with its weights, and their bytes; what is measured from now on begins here."""
    each = SIZE * SIZE * dtype.itemsize
    network, example = NETWORKS[name](max(2, (megabytes << 20) // each), dtype)
    with torch.no_grad():
        for index, weights in enumerate(network.parameters()):
            weights.fill_(1 / SIZE + index / (1024 * SIZE))
    export(linear(1, torch.float32), check=True)  # what is imported on the way
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return (network, example), sum(one.nbytes for one in network.parameters())


def measure(name: str, megabytes: int, dtype: torch.dtype, *, keep: bool) -> None:
    """Print what loading and writing one network takes."""
    import tract_torch

    import tract_core as tract

    (network, example), size = prepared(name, megabytes, dtype)
    before, start = resident("VmRSS"), time.perf_counter()
    model = tract_torch.load(network, example, keep_parameters=keep)
    loaded, middle = resident("VmHWM"), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tract.nnef().write_model_to_tar(model, Path(folder) / "model.tar")
        written = (Path(folder) / "model.tar").stat().st_size
    end = time.perf_counter()
    shares = [(peak - before) / size for peak in (loaded, resident("VmHWM"))]
    print(
        f"{name:13} {str(dtype).removeprefix('torch.'):9} {'kept' if keep else 'folded':8} {size >> 20:5} MiB, "
        f"archive {written >> 20:5} MiB; peak beyond the module: loaded {shares[0]:.2f}, written {shares[1]:.2f}; "
        f"{middle - start:.1f} s, {end - middle:.1f} s"
    )


def measure_export(name: str, megabytes: int, dtype: torch.dtype, *, check: bool) -> None:
    """Print what one call of the exporter takes."""
    network, size = prepared(name, megabytes, dtype)
    before, start = resident("VmRSS"), time.perf_counter()
    written = export(network, check=check)
    seconds, share = time.perf_counter() - start, (resident("VmHWM") - before) / size
    print(
        f"{name:13} {str(dtype).removeprefix('torch.'):9} {'checked' if check else 'exported':8} {size >> 20:5} MiB, "
        f"archive {written >> 20:5} MiB; peak beyond the module: {share:.2f}; {seconds:.1f} s"
    )


def export(network: Network, *, check: bool) -> int:
    """The bytes of the archive of a network."""
    from tract_torch.export import export_model_to_nnef
    from tract_torch.inference_target import TractNNEF

    with tempfile.TemporaryDirectory() as folder:
        path = export_model_to_nnef(
            *network, Path(folder) / "model.nnef.tar", TractNNEF(None, check_io=check), log_level=logging.WARNING
        )
        return path.stat().st_size


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--only", nargs="*", choices=[*NETWORKS], default=[*NETWORKS])
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        name, what = given.child
        dtype = getattr(torch, given.dtype)
        if what in ("folded", "kept"):
            measure(name, given.megabytes, dtype, keep=what == "kept")
        else:
            measure_export(name, given.megabytes, dtype, check=what == "checked")
        return
    for name in given.only:
        for what in ("folded", "kept", "exported", "checked"):
            flags = ["--megabytes", str(given.megabytes), "--dtype", given.dtype, "--child", name, what]
            subprocess.run([sys.executable, __file__, *flags], check=True)


if __name__ == "__main__":
    main()
