"""Keep archives and frozen states of this version, which every later one has to read.

``python tests/lasting/make_lasting.py`` makes a folder named after the version, and changes none that is there.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Final

import numpy as np

import tract_core as tract

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE))

from lasting_network import PULSE, SIGNAL, network, pulsed  # noqa: E402 # found by the line above

ARCHIVES: Final = ("network.nnef.tar", "network.nnef.tgz", "pulsed.nnef.tar", "pulsed.nnef.tgz")
RUNTIMES: Final = ("reference", "cpu")
TURNS: Final = 2
"""How many pulses the states have seen."""


def main() -> None:
    folder = HERE / tract.__version__
    folder.mkdir()  # what an earlier day wrote stays
    for name in ARCHIVES:
        model = pulsed() if name.startswith("pulsed") else tract.Model.from_typed(network())
        model.save(folder / name)
    for runtime in RUNTIMES:
        state = tract.runtime_for_name(runtime).prepare(pulsed()).spawn_state()
        for turn in range(TURNS):
            state.run([SIGNAL[:, :, turn * PULSE : (turn + 1) * PULSE].astype(np.float32)])
        (folder / f"{runtime}.state").write_bytes(pickle.dumps(state.freeze(), protocol=4))


if __name__ == "__main__":
    main()
