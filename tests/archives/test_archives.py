"""Archives that torch-to-nnef and the established engine write of many networks: they load, and agree with PyTorch.

`make test-archives` has them written, and runs this.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import established
import numpy as np
import pytest

import tract_core as tract
from tract_core.errors import ModelWarning

pytestmark = pytest.mark.archives

Array = np.ndarray[Any, Any]

FOLDER = Path(__file__).parents[2] / ".archives"
"""What `write.py` writes."""
SECONDS = 30
"""What the engine may take for one of these small networks."""
WANTED = 40
"""Of how many networks each writer's archives are read, at the least."""
RELATIVE = {np.float16: 1e-2, np.float32: 1e-4}

FROZEN = {"deeplab", "denoiser", "sdpa, mask", "separator", "sets", "super resolution", "wav2vec"}
"""Networks of which torch-to-nnef writes sizes of the example as numbers, though they are symbols elsewhere."""

REFUSED = {
    "alexnet": ("onnx.onnx", "onnx-sizes.onnx"),
    "cropped": ("torch-sizes.nnef.tgz",),
    "deeplab": ("onnx.onnx", "onnx-sizes.onnx", "torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "denoiser": ("torch-sizes.nnef.tgz",),
    "gpt": ("onnx-sizes.onnx", "torch-sizes.nnef.tgz"),
    "half": ("onnx.onnx",),
    "last state": ("torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "perceiver": ("onnx-sizes.onnx", "torch.nnef.tgz"),
    "pointer": ("onnx.onnx", "onnx-sizes.onnx"),
    "policy": ("torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "quantised images": ("onnx.onnx",),
    "quantised layers": ("onnx.onnx", "onnx-sizes.onnx"),
    "scattered": ("onnx.onnx",),
    "sdpa, causal": ("torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "sdpa, mask": ("torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "sdpa, plain": ("torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "separator": ("onnx-sizes.onnx", "torch-sizes.nnef.tgz"),
    "super resolution": ("torch-sizes.nnef.tgz",),
    "swin": ("torch-sizes.nnef.tgz",),
    "t5": ("onnx-sizes.onnx",),
    "transformer": ("onnx.onnx", "onnx-sizes.onnx", "torch.nnef.tgz", "torch-sizes.nnef.tgz"),
    "unet": ("onnx-sizes.onnx", "torch-sizes.nnef.tgz"),
    "wav2vec": ("torch-sizes.nnef.tgz",),
}
"""What the engine (0.23.9) does not read or cannot write: it refuses, aborts or does not come to an end."""

SPOILT = {
    "lstm, both ways": ("onnx-sizes.onnx",),
    "reader": ("onnx-sizes.onnx",),
    "stateful": ("onnx.onnx", "onnx-sizes.onnx"),
}
"""What it writes and does not read as it was: an axis of B elements is squeezed, or two tensors have one name."""


def cases(*sources: str) -> list[Any]:
    found = sorted(path for path in FOLDER.glob("*/*") if path.name in sources)
    return [pytest.param(path, id=f"{path.parent.name}-{path.name}".replace(" ", "-")) for path in found]


BY_TORCH_TO_NNEF = cases("torch.nnef.tgz", "torch-sizes.nnef.tgz")
BY_ENGINE = cases("onnx.onnx", "onnx-sizes.onnx", "torch.nnef.tgz", "torch-sizes.nnef.tgz")


def listed(path: Path, table: dict[str, tuple[str, ...]]) -> bool:
    return path.name in table.get(path.parent.name, ())


@pytest.mark.parametrize("path", BY_TORCH_TO_NNEF)
def test_what_torch_to_nnef_writes(path: Path, tmp_path: Path) -> None:
    assert problems(path, path.parent, tmp_path, every=any_size(path)) == []


@pytest.mark.parametrize("path", BY_ENGINE)
def test_what_the_engine_writes(path: Path, tmp_path: Path) -> None:
    if listed(path, REFUSED):
        with pytest.raises(established.Refused):
            established.write(path, tmp_path / "theirs", SECONDS)
        return
    established.write(path, tmp_path / "theirs", SECONDS)
    if listed(path, SPOILT):
        with pytest.raises((established.Refused, AssertionError)):
            agrees_there(tmp_path / "theirs", path.parent)
        return
    assert problems(tmp_path / "theirs", path.parent, tmp_path, every=any_size(path)) == []


def test_there_are_enough_of_them() -> None:
    by_exporter = {path.parent for case in BY_TORCH_TO_NNEF for path in case.values}
    taken = [path for case in BY_ENGINE for path in case.values if not listed(path, REFUSED) | listed(path, SPOILT)]
    assert len(by_exporter) >= WANTED
    assert len({path.parent for path in taken}) >= WANTED
    assert len({path.parent for path in taken if path.suffix == ".onnx"}) >= WANTED


def any_size(path: Path) -> bool:
    return "-sizes" in path.name and path.parent.name not in FROZEN


def problems(path: Path, folder: Path, aside: Path, *, every: bool) -> list[str]:
    """What is wrong with an archive, and with what is written of it again.

    ``every``: whether it has to take every size, or that of the example alone.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        model = tract.load(path)
    assert all("\n" not in str(one.message) for one in caught)
    model.save(aside / "again.nnef.tar")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)  # what is written is as it should be
        again = tract.load(aside / "again.nnef.tar")
    names = [model.input_name(place) for place in range(model.input_count())]
    runnables = model.into_runnable(), again.into_runnable()
    found: list[str] = []
    for what, inputs, outputs in list(examples(folder))[: None if every else 1]:
        for runnable in runnables:
            results = [np.asarray(one.to_numpy()) for one in runnable.run([inputs[name] for name in names])]
            found += [f"{what}: {problem}" for problem in compared(results, outputs)]
    return found


def agrees_there(archive: Path, folder: Path) -> None:
    for _, inputs, outputs in examples(folder):
        assert compared(established.run(archive, list(inputs.values())), outputs) == []


def examples(folder: Path) -> Iterator[tuple[str, dict[str, Array], dict[str, Array]]]:
    """Inputs, in order, and what PyTorch computes of them; that which was exported with comes first."""
    for given in sorted(folder.glob("inputs-*.npz")):
        with np.load(given) as inputs, np.load(given.with_name(given.name.replace("in", "out", 1))) as outputs:
            yield given.stem, dict(inputs), dict(outputs)


def compared(found: list[Array], outputs: dict[str, Array]) -> list[str]:
    wrong: list[str] = []
    for one, (name, wanted) in zip(found, outputs.items(), strict=True):
        near = RELATIVE.get(wanted.dtype.type, 0) * np.abs(wanted.astype(np.float64)).max(initial=1e-3)
        if one.shape != wanted.shape:
            wrong.append(f"{name} has shape {one.shape}, wanted {wanted.shape}")
        elif not (np.abs(one.astype(np.float64) - wanted.astype(np.float64)) <= near).all():
            wrong.append(f"{name} differs")
    return wrong
