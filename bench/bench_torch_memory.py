"""How much memory a module of PyTorch takes on its way to an archive, beyond the module itself.

``python bench/bench_torch_memory.py [--megabytes 1024] [--only NAME ...] [--steps STEP ...] [--most 1.3]``

Each network is measured in processes of their own: loaded and written as a tar (``folded``, and ``kept``, with its
parameters as they are), exported, exported and checked, which runs the archive beside the module, and prepared by
whoever gets the archive. What is printed is the peak from then on, less what there was before, over the bytes of the
weights as they are in the archive: 0 is the best, and the bound is 1.3, with which the script ends with an error where
``--most`` says so.

``peak`` is of the process's resident memory, as the kernel counts it, which is the pages of mapped files too, though
the system takes them back when it needs memory. ``private`` is what it cannot take back; it is looked at every few
milliseconds.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import torch

SIZE = 2048
"""Rows and columns of a matrix, which takes 16 MiB in f32."""

STEPS = ("folded", "kept", "exported", "checked", "prepared")


class Network(NamedTuple):
    """A module, and the arguments of an example."""

    module: torch.nn.Module
    example: tuple[torch.Tensor, ...]


def linear(count: int, dtype: torch.dtype = torch.float32, size: int = SIZE) -> torch.nn.Sequential:
    """Linear layers one after the other."""
    return torch.nn.Sequential(*(torch.nn.Linear(size, size, dtype=dtype) for _ in range(max(count, 1))))


class Tied(torch.nn.Module):
    """A language model, half of whose weights are the table at its beginning, which is the matrix at its end too."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(count // 2 * SIZE, SIZE)
        self.body = linear(count - count // 2)
        self.head = torch.nn.Linear(1, 1, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [batch, length] -> scores [batch, length, tokens]."""
        return self.head(self.body(self.table(tokens)))


class Stack(torch.nn.Module):
    """Layers of LSTM, of which the outputs are returned."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.LSTM(SIZE // 2, SIZE // 2, num_layers=count)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Signals [time, batch, channels] -> the same."""
        return self.layers(x)[0]


def convolutions(megabytes: int, window: int, channels: int, groups: int = 1, image: int = 4) -> Network:
    """Convolutions, with batch normalisation behind each."""
    each = 4 * channels * (channels // groups) * window**2
    layers = list[torch.nn.Module]()
    for index in range(max(2, (megabytes << 20) // each)):
        padding = window // 2 if window % 2 else index % 2
        layers.append(torch.nn.Conv2d(channels, channels, window, padding=padding, groups=groups))
        layers += [torch.nn.BatchNorm2d(channels), torch.nn.ReLU()]
    return Network(torch.nn.Sequential(*layers), (torch.ones(1, channels, image, image),))


def transformer(megabytes: int) -> Network:
    """Encoder layers, of 12 matrices of the size of one each."""
    one = torch.nn.TransformerEncoderLayer(SIZE // 2, 16, 2 * SIZE, batch_first=True)
    layers = torch.nn.TransformerEncoder(one, max(1, megabytes // 48), enable_nested_tensor=False)
    return Network(layers, (torch.ones(1, 8, SIZE // 2),))


def q4_0(megabytes: int) -> Network:
    """Linear layers whose weights have 4.5 bits in place of 32."""
    from tract_torch import DEFAULT_COMPRESSION

    network = linear(megabytes * 32 // 72)
    DEFAULT_COMPRESSION["min_max_q4_0"](network)
    return Network(network, (torch.ones(2, SIZE),))


def one_table(megabytes: int) -> Network:
    """One matrix that is all there is, and read as a table."""
    rows = (megabytes << 20) // (4 * SIZE)
    return Network(torch.nn.Embedding(rows, SIZE), (torch.ones(1, 3, dtype=torch.int64),))


NETWORKS: dict[str, Callable[[int], Network]] = {
    "linear": lambda size: Network(linear(size // 16), (torch.ones(2, SIZE),)),
    "tied": lambda size: Network(Tied(max(2, size // 16)), (torch.ones(1, 3, dtype=torch.int64),)),
    "conv 2x2": lambda size: convolutions(size, 2, SIZE // 2),
    "conv 3x3": lambda size: convolutions(size, 3, SIZE // 4, image=14),
    "conv 1x1": lambda size: convolutions(size, 1, SIZE // 2),
    "conv grouped": lambda size: convolutions(size, 3, SIZE, groups=32),
    "lstm": lambda size: Network(Stack(max(1, size // 32)), (torch.ones(3, 1, SIZE // 2),)),
    "transformer": transformer,
    "f16": lambda size: Network(linear(size // 8, torch.float16), (torch.ones(2, SIZE, dtype=torch.float16),)),
    "bf16": lambda size: Network(linear(size // 8, torch.bfloat16), (torch.ones(2, SIZE, dtype=torch.bfloat16),)),
    "q4_0": q4_0,
    "many small": lambda size: Network(linear(4 * size, size=256), (torch.ones(2, 256),)),
    "one matrix": lambda size: Network(torch.nn.Linear(SIZE, size * 128), (torch.ones(1, SIZE),)),
    "one table": one_table,
}


class Watch:
    """What memory a process takes more of, from the beginning of a block on."""

    def __enter__(self) -> Watch:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the most there was begins anew
        self._before, self._private = _status("VmRSS"), _status("RssAnon")
        self._most, self._done = self._private, Event()
        self._thread = Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.003):
            self._most = max(self._most, _status("RssAnon"))

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.peak, self.private = _status("VmHWM") - self._before, self._most - self._private


def _status(field: str) -> int:
    """Bytes that the kernel counts for this process."""
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def loaded(network: Network, target: Path, *, keep: bool) -> None:
    """Load and write a network."""
    import tract_torch

    import tract_core as tract

    tract.nnef().write_model_to_tar(tract_torch.load(*network, keep_parameters=keep), target)


def exported(network: Network, target: Path, *, check: bool) -> None:
    """What one call of the exporter takes."""
    from tract_torch import TractNNEF, export_model_to_nnef

    export_model_to_nnef(*network, target, TractNNEF(None, check_io=check), log_level=logging.WARNING)


def prepared(network: Network, target: Path) -> None:
    """What whoever gets the archive does."""
    from tract_torch.tensors import array_of

    import tract_core as tract

    runnable = tract.runtime_for_name("cpu").prepare(tract.load(target))
    runnable.run([array_of(one) for one in network.example])


def warm_up(target: Path) -> None:
    """Import what is imported on the way, with all of LLVM's library.

    Its pages count as memory of the process from their first use on, and how many come along with one that is used
    depends on what else the system holds: they were 0.05 to 0.3 of weights of 192 MiB.
    """
    from tract_llvm.llvm import binding

    binding()
    hold("llvmlite")
    exported(Network(linear(1, size=8), (torch.ones(2, 8),)), target, check=True)


def hold(library: str) -> None:
    """Have the system map all pages of a library that is loaded, as Linux from 5.14 on does."""
    populate_read = 22  # MADV_POPULATE_READ
    libc = ctypes.CDLL(None)
    for first, last in re.findall(rf"^(\w+)-(\w+) r.*{library}.*$", Path("/proc/self/maps").read_text(), re.MULTILINE):
        begin = int(first, 16)
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(int(last, 16) - begin), populate_read)


def measure(name: str, megabytes: int, step: str) -> dict[str, float]:
    """What one step takes, beyond what is there before it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.nnef.tar"
        warm_up(Path(folder) / "warm.nnef.tar")
        network = NETWORKS[name](megabytes)
        if step == "prepared":
            exported(network, target, check=False)
        start = time.perf_counter()
        with Watch() as watch:
            if step in {"folded", "kept"}:
                loaded(network, target, keep=step == "kept")
            elif step == "prepared":
                prepared(network, target)
            else:
                exported(network, target, check=step == "checked")
        seconds, size = time.perf_counter() - start, target.stat().st_size
    return {"weights": size, "peak": watch.peak / size, "private": watch.private / size, "seconds": seconds}


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--only", nargs="*", choices=[*NETWORKS], default=[*NETWORKS])
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=["exported", "checked", "prepared"])
    parser.add_argument("--most", type=float, default=float("inf"), help="end with an error where a peak is above")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(given.child[0], given.megabytes, given.child[1])))
        return
    print(f"{'network':<14} {'step':<9} {'MiB':>6} {'peak':>6} {'private':>8} {'seconds':>8}")
    above = 0
    for name in given.only:
        for step in given.steps:
            command = [sys.executable, __file__, "--megabytes", str(given.megabytes), "--child", name, step]
            one = json.loads(subprocess.check_output(command).splitlines()[-1])
            above += one["peak"] > given.most
            figures = f"{one['weights'] / 2**20:6.0f} {one['peak']:6.2f} {one['private']:8.2f} {one['seconds']:8.1f}"
            print(f"{name:<14} {step:<9} {figures}", flush=True)
    sys.exit(f"{above} peaks are above {given.most}" if above else 0)


if __name__ == "__main__":
    main()
