"""Write some digits that were held out in training, as the programs here read them: ``python images.py [COUNT]``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "digits"))

from data import digits

if __name__ == "__main__":
    for image in digits()[1].images[: int(sys.argv[1]) if len(sys.argv) > 1 else 10]:
        print(*(f"{pixel:g}" for pixel in image.ravel()))
