"""The task of this example: moths go after lamps that are lit only now and then, and fly through the dark in between.

Who remembers where the lamp was, and which way it went, is there when it is lit again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

SIZE = np.array([2, 1], np.float32)
"""The arena goes from ``-SIZE`` to ``SIZE``: x, y."""
SPEED = 0.025
"""How far a lamp moves in a step."""
PERIOD, LIT = 32, 8
"""Steps from one flash of a lamp to the next, and how many of them it is lit for."""
PUSH, DRAG = 0.006, 0.9
"""What the strongest action adds to the speed of a moth in a step, and how much of its speed it keeps."""
NEAR = 0.3
"""Who is as near as this to its lamp is in its light."""
SEEN, ACTIONS = 7, 2
"""Numbers that a moth observes (see `Moths.observe`), and that it decides on: its push, x and y, from -1 to 1."""


class Lamps:
    """Lamps that fly straight, and bounce off the walls. ``place``, ``course``: (lamps, 2)."""

    def __init__(self, count: int, random: np.random.Generator) -> None:
        angle = random.uniform(0, 2 * np.pi, count)
        self.place: Array = (random.uniform(-0.9, 0.9, (count, 2)) * SIZE).astype(np.float32)
        self.course: Array = (SPEED * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)
        self._clock = random.integers(0, PERIOD, count)

    @property
    def lit(self) -> Array:
        """1 for a lamp that can be seen, 0 for one that is dark: (lamps,)."""
        return (self._clock < LIT).astype(np.float32)

    def take(self, which: Flags, others: Lamps) -> None:
        """Take these from others, of as many."""
        for mine, new in zip(
            (self.place, self.course, self._clock), (others.place, others.course, others._clock), strict=True
        ):
            mine[which] = new[which]

    def step(self) -> None:
        """Fly on."""
        self.place += self.course
        outside = np.abs(self.place) > SIZE
        self.course[outside] *= -1
        self.place = np.where(outside, 2 * np.clip(self.place, -SIZE, SIZE) - self.place, self.place)
        self._clock = (self._clock + 1) % PERIOD


class Moths:
    """Moths, of any number of axes. ``place``, ``course``: (..., 2). They begin anywhere, at rest."""

    def __init__(self, shape: tuple[int, ...], random: np.random.Generator) -> None:
        self.place: Array = (random.uniform(-1, 1, (*shape, 2)) * SIZE).astype(np.float32)
        self.course: Array = np.zeros((*shape, 2), np.float32)

    def take(self, which: Flags, others: Moths) -> None:
        """Take these from others, of as many."""
        self.place[which], self.course[which] = others.place[which], others.course[which]

    def observe(self, lamps: Array, lit: Array) -> Array:
        """What each moth sees, (..., SEEN): whether its lamp is lit, the way to it if it is, its course, its place.

        ``lamps``, ``lit``: for each moth, where its lamp is, (..., 2), and whether it is lit, (...).
        """
        seen = np.empty((*self.place.shape[:-1], SEEN), np.float32)
        seen[..., 0] = lit
        seen[..., 1:3] = (lamps - self.place) * lit[..., None]
        seen[..., 3:5] = self.course / np.float32(SPEED)
        seen[..., 5:7] = self.place
        return seen

    def step(self, actions: Array) -> None:
        """Fly on. ``actions``: (..., 2), from -1 to 1."""
        self.course = (DRAG * self.course + PUSH * actions).astype(np.float32)
        place = self.place + self.course
        self.course[np.abs(place) > SIZE] = 0
        self.place = np.clip(place, -SIZE, SIZE)

    def distance(self, lamps: Array) -> Array:
        """How far each moth is from its lamp, (...)."""
        return np.sqrt(((self.place - lamps) ** 2).sum(-1))
