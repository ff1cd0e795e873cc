"""The same task as environments of Gymnasium, and any such environments played by a policy that remembers.

``python gym.py`` plays a thousand of them with both policies. Needs ``pip install gymnasium``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from night import brain, policy
from tract_inferers import RecurrentTracker
from world import ACTIONS, DRAG, NEAR, PERIOD, PUSH, SIZE, SPEED, Array, Flags, Lamps, Moths

try:
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: this part of the example needs Gymnasium, 'pip install gymnasium'") from None

LOST, LIFE = 3 * PERIOD, 10 * PERIOD
"""Steps out of the light of its lamp after which a moth is lost, and steps after which it is taken out in any case."""
_FASTEST = 1.1 * PUSH / (1 - DRAG) / SPEED
_LARGEST = np.array([1, *2 * SIZE, _FASTEST, _FASTEST, *SIZE], np.float32)
"""Of what a moth sees; for the speed, what it comes near to, and some more for the rounding."""


class MothEnv(VectorEnv[Array, Array, np.ndarray]):
    """Moths, each with a lamp of its own. What they see is `Moths.observe`; the reward is 1 in the light, else 0.

    An episode is terminated when the moth is lost, and truncated at the end of its life. Resets are those of
    ``AutoresetMode.NEXT_STEP``: the step after the last one of an episode gives the first observation of the next.
    """

    def __init__(self, moths: int) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = moths
        self.single_observation_space = Box(-_LARGEST, _LARGEST)
        self.single_action_space = Box(-1, 1, (ACTIONS,))
        self.observation_space = batch_space(self.single_observation_space, moths)
        self.action_space = batch_space(self.single_action_space, moths)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """All episodes begin: what the moths see, (moths, SEEN)."""
        super().reset(seed=seed)
        self._lamps, self._moths = Lamps(self.num_envs, self.np_random), Moths((self.num_envs,), self.np_random)
        self._age, self._dark = np.zeros((2, self.num_envs), np.int64)
        self._over = np.zeros(self.num_envs, np.bool_)
        return self._seen(), {}

    def step(self, actions: Array) -> tuple[Array, np.ndarray, Flags, Flags, dict[str, Any]]:
        """A step of all: what they see, rewards, who is lost, whose life is over."""
        anew = self._over
        self._moths.step(actions)
        self._lamps.step()
        self._begin(anew)
        light = (self._moths.distance(self._lamps.place) < NEAR) & ~anew
        self._age = np.where(anew, 0, self._age + 1)
        self._dark = np.where(anew | light, 0, self._dark + 1)
        lost, old = self._dark >= LOST, self._age >= LIFE
        self._over = lost | old
        return self._seen(), light.astype(np.float64), lost, old, {}

    def _begin(self, which: Flags) -> None:
        """These moths and their lamps are new ones."""
        lamps, moths = Lamps(self.num_envs, self.np_random), Moths((self.num_envs,), self.np_random)
        self._lamps.take(which, lamps)
        self._moths.take(which, moths)

    def _seen(self) -> Array:
        return self._moths.observe(self._lamps.place, self._lamps.lit)


def play(envs: VectorEnv[Any, Any, Any], inferer: RecurrentTracker, steps: int, seed: int) -> np.ndarray:
    """The rewards of a policy in environments that reset themselves: (steps, environments).

    Each environment is an agent. Whoever's episode begins, begins anew, and remembers nothing of the one before.
    """
    at_once = envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    ids = np.arange(envs.num_envs)
    seen, _ = envs.reset(seed=seed)
    begins, over = np.ones(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
    rewards = np.zeros((steps, len(ids)))
    for step in range(steps):
        for agent in ids[begins]:
            inferer.begin_agent(agent)
        actions = inferer.infer_many(ids, {"seen": seen}).arrays["action"]
        before = over
        seen, rewards[step], terminated, truncated, _ = envs.step(actions)
        over = terminated | truncated
        begins = over if at_once else before
    return rewards


def main() -> None:
    for name in ("early", "trained", "owls"):
        rewards = play(MothEnv(1000), brain(policy(name)), steps=500, seed=0)
        print(f"{name}: {rewards.mean():.3f} a step")


if __name__ == "__main__":
    sys.exit(main())
