"""Feed damaged files of TFLite to the loader: whatever they hold, only typed errors or right results may come of it.

    python fuzz/fuzz_tflite.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are the files of the frontend's cases. Each is changed at random (`flat_mutations`), loaded, typed, simplified and
run as `fuzz_onnx` does it. A *finding* is what `driver` says, and a result that simplifying changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Target, main
from fuzz_onnx import examined

CASES = Path(__file__).parent.parent / "plugins/tract_tensorflow/tests/tflite_cases"
LARGEST_SEED = 20_000
"""Bytes of a seed."""
MOST_OF_A_FAMILY = 120
"""Seeds of one family of cases."""


def seeds():
    """The contents of the cases, always in the same order."""
    import numpy as np

    found = []
    for path in sorted(CASES.glob("*.npz")):
        with np.load(path) as file:
            names = sorted(name for name in file.files if name.endswith("/model"))
            chosen = names[:: max(1, len(names) // MOST_OF_A_FAMILY)]
            found += [content for name in chosen if len(content := file[name].tobytes()) <= LARGEST_SEED]
    return found


def parsed(contents):
    from flat_mutations import Parts

    return [Parts(content) for content in contents]


def mutated(files, chance):
    from flat_mutations import changed

    return changed(files, chance)


def examine(content, chance):
    from tract_tensorflow.tflite.loader import TfliteLoader

    return examined(TfliteLoader, content, chance)


TARGET = Target(__file__, ".tflite", seeds, mutated, examine, parsed)

if __name__ == "__main__":
    sys.exit(main(TARGET, __doc__))
