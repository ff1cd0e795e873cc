"""Write the networks of `catalogue` as other exporters do: ``python write.py FOLDER``, with torch and torch-to-nnef.

For each network a folder: ``torch.nnef.tgz`` and, with symbols for its sizes, ``torch-sizes.nnef.tgz`` by
torch-to-nnef; ``onnx.onnx`` and ``onnx-sizes.onnx`` by PyTorch, which the established engine makes archives of; and
what PyTorch computes, ``inputs-0.npz``, ``outputs-0.npz`` ... for each of its sizes. What an exporter refuses is in
``*.refused``.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from catalogue import NETWORKS, Network

ENGINE = "0.23.8"
"""The version of the engine that torch-to-nnef writes for."""


def write(network: Network, folder: Path, engine: Path) -> None:
    """All files of a network."""
    folder.mkdir(parents=True, exist_ok=True)
    module = network.module()
    for place, sizes in enumerate(network.sizes):
        given = network.given(sizes)
        with torch.no_grad():
            found = module(*given.values())
        outputs = found if isinstance(found, tuple) else (found,)
        save(folder / f"inputs-{place}.npz", dict(given))
        save(folder / f"outputs-{place}.npz", dict(zip(network.outputs, outputs, strict=True)))
    for suffix, axes in {"": {}, "-sizes": network.axes()}.items():
        if axes or not suffix:
            target = folder / f"torch{suffix}.nnef.tgz"
            attempt(target, lambda target=target, axes=axes: by_torch_to_nnef(network, target, axes, engine))
            target = folder / f"onnx{suffix}.onnx"
            attempt(target, lambda target=target, axes=axes: as_onnx(network, target, axes))


def save(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})


def attempt(target: Path, work: Callable[[], None]) -> None:
    """What exporters refuse is noted."""
    try:
        work()
    except Exception as error:
        target.unlink(missing_ok=True)
        target.with_name(f"{target.name}.refused").write_text(f"{type(error).__name__}: {error}"[:1000])


def by_torch_to_nnef(network: Network, target: Path, axes: dict[str, dict[int, str]], engine: Path) -> None:
    import torch_to_nnef

    given = network.given(network.sizes[0])
    inference = torch_to_nnef.TractNNEF(
        ENGINE, check_io=False, specific_tract_binary_path=engine, dynamic_axes=axes, dump_identity_properties=False
    )
    torch_to_nnef.export_model_to_nnef(
        network.module(),
        tuple(given.values()),
        target,
        inference_target=inference,
        input_names=list(given),
        output_names=list(network.outputs),
        compression_level=9,
    )


def as_onnx(network: Network, target: Path, axes: dict[str, dict[int, str]]) -> None:
    given = network.given(network.sizes[0])
    torch.onnx.export(
        network.module(),
        tuple(given.values()),
        str(target),
        input_names=list(given),
        output_names=list(network.outputs),
        dynamic_axes=axes or None,
        opset_version=17,
        dynamo=False,
    )


def stand_in(folder: Path) -> Path:
    """What says the version that archives are for, in place of the program that would be downloaded to check them."""
    path = folder / "tract"
    path.write_text(f"#!/bin/sh\necho 'tract {ENGINE}'\n")
    path.chmod(0o755)
    return path


def main(target: Path) -> None:
    """Write what is not there yet."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as aside:
        engine = stand_in(Path(aside))
        for network in NETWORKS:
            folder = target / network.name
            if not (folder / "done").exists():
                write(network, folder, engine)
                (folder / "done").touch()
                sys.stdout.write(f"{network.name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
