"""What LiteRT computes with the files that `fetch_tflite` fetched, on random inputs; it runs where LiteRT is installed.

Each file is invoked a few times, which tells what it keeps. A file with operators that LiteRT has not, of MediaPipe,
has inputs alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fetch_tflite import expected, models

TURNS = 3
"""How often a file is invoked."""


SHAPES: dict[str, list[int]] = {"melspectrogram": [1, 1760]}
"""Of inputs that are smaller than a network takes, where the file leaves their sizes open."""


def drawn(draw: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """An input: any integers of its type, or floats from 0 to 1, as those of images are."""
    if np.issubdtype(dtype, np.integer):
        bounds = np.iinfo(dtype)
        return draw.integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)
    return draw.uniform(0, 1, shape).astype(dtype)


def main() -> None:
    """Write what is missing."""
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType
    for path in models():
        place = expected(path)
        if place.exists():
            continue
        engine = interpreter.Interpreter(
            model_path=str(path), experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        )
        if any(np.issubdtype(one["dtype"], np.integer) for one in engine.get_output_details()):
            engine = interpreter.Interpreter(model_path=str(path), experimental_op_resolver_type=kinds.BUILTIN_REF)
        draw = np.random.default_rng(0)
        inputs = engine.get_input_details()
        if path.stem in SHAPES:
            engine.resize_tensor_input(inputs[0]["index"], SHAPES[path.stem])
            inputs = engine.get_input_details()
        given = [[drawn(draw, one["shape"], one["dtype"]) for one in inputs] for _ in range(TURNS)]
        arrays = {f"in{turn}.{slot}": one for turn, values in enumerate(given) for slot, one in enumerate(values)}
        try:
            engine.allocate_tensors()
        except RuntimeError as error:
            if "custom op" not in str(error):
                raise
        else:
            for turn, values in enumerate(given):
                for one, array in zip(inputs, values, strict=True):
                    engine.set_tensor(one["index"], array)
                engine.invoke()
                found = [engine.get_tensor(one["index"]) for one in engine.get_output_details()]
                arrays |= {f"out{turn}.{slot}": one for slot, one in enumerate(found)}
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, **arrays)


if __name__ == "__main__":
    main()
