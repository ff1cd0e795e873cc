"""What LiteRT computes with the files that `fetch_tflite` fetched, on random images; it runs where LiteRT is installed.

A file with operators that LiteRT has not, of MediaPipe, has inputs alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fetch_tflite import expected, models


def main() -> None:
    """Write what is missing."""
    from ai_edge_litert import interpreter

    kernels = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for path in models():
        place = expected(path)
        if place.exists():
            continue
        engine = interpreter.Interpreter(model_path=str(path), experimental_op_resolver_type=kernels)
        draw = np.random.default_rng(0)
        inputs = engine.get_input_details()
        given = [draw.uniform(0, 1, one["shape"]).astype(one["dtype"]) for one in inputs]
        arrays = {f"in{slot}": one for slot, one in enumerate(given)}
        try:
            engine.allocate_tensors()
        except RuntimeError as error:
            if "custom op" not in str(error):
                raise
        else:
            for one, array in zip(inputs, given, strict=True):
                engine.set_tensor(one["index"], array)
            engine.invoke()
            found = [engine.get_tensor(one["index"]) for one in engine.get_output_details()]
            arrays |= {f"out{slot}": one for slot, one in enumerate(found)}
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, **arrays)


if __name__ == "__main__":
    main()
