"""The arena in characters: each holds 2 by 4 dots, and has the colour of who is there most."""

from __future__ import annotations

import numpy as np
from world import NEAR, SIZE, Array

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bits of a braille character, by row and column of its dots."""
PLAIN = "\x1b[0m"


def colour(code: int) -> str:
    """What turns a terminal to one of its 256 colours."""
    return f"\x1b[38;5;{code}m"


class Canvas:
    """``width`` by ``height`` characters, that show the arena."""

    def __init__(self, width: int, height: int) -> None:
        self.size = np.array([2 * width, 4 * height])
        self._bits = np.zeros((height, width), np.int64)
        self._colours = np.zeros((height, width), np.int64)
        self._most = np.zeros((height, width), np.int64)
        self._signs = dict[tuple[int, int], tuple[str, int]]()

    def dots(self, places: Array, code: int) -> None:
        """A dot for each place of the arena, (dots, 2)."""
        x, y = self._pixels(places).T
        np.bitwise_or.at(self._bits, (y // 4, x // 2), DOTS[y % 4, x % 2])
        here = np.zeros_like(self._most)
        np.add.at(here, (y // 4, x // 2), 1)
        self._colours = np.where(here > self._most, code, self._colours)
        self._most = np.maximum(here, self._most)

    def circle(self, place: Array, code: int) -> None:
        """A circle of dots, as wide as the light of a lamp; what is outside the arena is left out."""
        angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        around = place + NEAR * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.dots(around[(np.abs(around) < SIZE).all(1)].astype(np.float32), code)

    def sign(self, place: Array, sign: str, code: int) -> None:
        """A character over everything else."""
        x, y = self._pixels(place[None])[0]
        self._signs[int(y) // 4, int(x) // 2] = sign, code

    def lines(self) -> list[str]:
        """The arena, from top to bottom, with what colours it."""
        return [self._line(row) for row in range(len(self._bits))]

    def _line(self, row: int) -> str:
        line, now = list[str](), 0
        dots = [chr(0x2800 + bits) if bits else " " for bits in self._bits[row]]
        for column, there in enumerate(zip(dots, self._colours[row], strict=True)):
            sign, code = self._signs.get((row, column), there)
            line.append(sign if code == now else colour(code) + sign)
            now = code
        return "".join(line) + PLAIN

    def _pixels(self, places: Array) -> np.ndarray:
        """Where places are, in dots from the top left corner: x, y."""
        shares = (places / SIZE * [1, -1] + 1) / 2
        return np.clip((shares * self.size).astype(int), 0, self.size - 1)
