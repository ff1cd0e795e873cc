"""Makes ``tflite_cases/FAMILY.npz``: files of TFLite of one operator, and what LiteRT computes with them.

    make .venv-litert/.installed
    .venv-litert/bin/python plugins/tract_tensorflow/tests/making/make.py [FAMILY ...]

Each module beside this one with a function ``cases`` is a family. It yields ``(name, content, inputs)``, and for what
keeps something between runs ``(name, content, inputs, runs)``; or ``(name, content, inputs, results)`` with what NumPy
computes, for operators of which LiteRT has no kernel, and which those that it has agree with. Where LiteRT lacks
operators, or has wrong ones, a function ``expected`` gives the outputs of a case, by its name. In the archive,
``NAME/model`` is the file, ``NAME/in0`` an input, and ``NAME/out0`` an output of the reference kernels;
``NAME/out0/1`` that of the second run.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from model import computed

HERE = Path(__file__).resolve().parent
MINE = {"make", "model", "refused", "single"}


def main() -> None:
    """Write the families that are named, or all."""
    found = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in MINE)
    for family in sys.argv[1:] or found:
        arrays: dict[str, Any] = {}
        draw = np.random.default_rng(crc32(family.encode()))
        names: set[str] = set()
        module = importlib.import_module(family)
        for name, content, inputs, *runs in module.cases(draw):
            assert name not in names, name
            assert "/" not in name, name
            names.add(name)
            wanted = runs.pop() if runs and not isinstance(runs[-1], int) else None
            try:
                expected = getattr(module, "expected", {}.get)(name)
                results = [expected] if expected is not None else apart(content, inputs, *runs)
                agree(name, results[-1], wanted)
            except (RuntimeError, ValueError) as error:
                if wanted is None or not any(text in str(error) for text in ("Didn't find op", "process ended")):
                    print(f"{family}: {name}: LiteRT refuses it: {str(error).splitlines()[0]}")
                    continue
                results = [wanted]
            arrays[f"{name}/model"] = np.frombuffer(content, np.uint8)
            arrays |= {f"{name}/in{slot}": plain(one) for slot, one in enumerate(inputs)}
            for run, outputs in enumerate(results):
                end = f"/{run}" if run else ""
                arrays |= {f"{name}/out{slot}{end}": plain(one) for slot, one in enumerate(outputs)}
        target = HERE.parent / "tflite_cases" / f"{family}.npz"
        target.parent.mkdir(exist_ok=True)
        np.savez_compressed(target, **arrays)
        print(f"{family}: {sum(name.endswith('/model') for name in arrays)} cases, {target.stat().st_size} bytes")


def agree(name: str, found: list[Any], wanted: list[Any] | None) -> None:
    """What LiteRT computes is what NumPy computes."""
    for one, other in zip(found if wanted else (), wanted or (), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-5, err_msg=name)


def apart(content: bytes, inputs: list[Any], *runs: int) -> Any:
    """What `computed` gives, in a process of its own: some kernels end theirs. Raises RuntimeError where it does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with open(write, "wb") as pipe:
            try:
                found: Any = computed(content, inputs, *runs)
            except (RuntimeError, ValueError) as error:
                found = str(error)
            pickle.dump(found, pipe)
            pipe.flush()
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(child, 0)
    found = pickle.loads(sent) if sent else f"its process ended with {status}"
    if isinstance(found, str):
        raise RuntimeError(found)  # noqa: TRY004 - the text is what went wrong over there
    return found


def plain(array: Any) -> Any:
    """Texts as NumPy holds them without pickles."""
    return array.astype(np.bytes_) if array.dtype == object else array


if __name__ == "__main__":
    main()
