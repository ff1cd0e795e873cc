"""The example of ``examples/agents``: what is trained is what is shipped, and whoever remembers does better."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tract_inferers import ConstantGenerator, DynamicInferer, EpsilonInjector, RecurrentTracker

import tract_core as tract

FOLDER = Path(__file__).parents[1] / "examples" / "agents"
MODULES = ("world", "policy", "train", "screen", "night", "gym", "demo")


@pytest.fixture(scope="module")
def example():
    """The modules of the example, which import each other by their plain names."""
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: import_module(name) for name in MODULES})
    sys.path.remove(str(FOLDER))
    for name, module in before.items():
        sys.modules.pop(name)
        if isinstance(module, ModuleType):
            sys.modules[name] = module


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )


def weights(example: Any, hidden: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (example.policy.initial(hidden, random) + random.normal(scale=0.2, size=example.policy.size(hidden))).astype(
        np.float32
    )


def by_element(weights: dict[str, np.ndarray], seen: Any, memory: Any, noise: Any) -> tuple[np.ndarray, np.ndarray]:
    """The policy for one moth, as the paper has it, in float64."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    (z, r, n), (zh, rh, nh) = (np.split(one, 3) for one in (seen @ w["new"] + w["bias"], memory @ w["old"]))
    update, reset = 1 / (1 + np.exp(-(z + zh))), 1 / (1 + np.exp(-(r + rh)))
    kept = (1 - update) * np.tanh(n + reset * (nh + w["old_bias"])) + update * memory
    return np.tanh(kept @ w["act"] + seen @ w["act_at_once"] + w["act_bias"] + 0.5 * noise), kept


class TestPolicy:
    @pytest.mark.parametrize("moths", [1, 2, 7])
    def test_the_file_the_array_and_the_paper_agree(self, example, tmp_path, moths):
        named = example.policy.split(weights(example, 5), 5)
        example.policy.export(named, tmp_path / "policy.onnx")
        random = np.random.default_rng(1)
        seen, noise, memory = (random.normal(size=(moths, size)).astype(np.float32) for size in (7, 2, 5))
        found = tract.load(tmp_path / "policy.onnx").into_runnable().run([seen, noise, memory])
        for row in range(moths):
            wanted = by_element(named, seen[row], memory[row], noise[row])
            for way in (found, example.policy.decide(named, seen, memory, noise)):
                for one, other in zip(way, wanted, strict=True):
                    np.testing.assert_allclose(np.asarray(one)[row], other, atol=1e-5)

    def test_a_wider_one_does_the_same(self, example):
        narrow = weights(example, 5)
        wide = example.policy.grown(narrow, 5, 8, np.random.default_rng(2))
        random = np.random.default_rng(1)
        seen, noise, memory = (random.normal(size=(3, size)).astype(np.float32) for size in (7, 2, 8))
        found = example.policy.decide(example.policy.split(wide, 8), seen, memory, noise)
        wanted = example.policy.decide(example.policy.split(narrow, 5), seen, memory[:, :5], noise)
        np.testing.assert_allclose(found[0], wanted[0], atol=1e-6)
        np.testing.assert_allclose(found[1][:, :5], wanted[1], atol=1e-6)

    @pytest.mark.parametrize(("name", "hidden"), [("early", 24), ("trained", 24), ("owls", 48)])
    def test_the_shipped_files_are_policies_for_any_number_of_agents(self, example, name, hidden):
        policy = example.night.policy(name)
        shapes = [
            [(slot.name, slot.shape) for slot in slots] for slots in (policy.input_shapes(), policy.output_shapes())
        ]
        assert shapes[0] == [("seen", (7,)), ("epsilon", (2,)), ("memory", (hidden,))]
        assert shapes[1] == [("action", (2,)), ("memory_out", (hidden,))]
        assert (FOLDER / f"{name}.onnx").stat().st_size < 40_000


class TestTraining:
    def test_it_gets_better_and_is_the_same_again(self, example, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(example.train, "FOLDER", tmp_path)
        course = example.train.Course(4, {1: "first", 12: "last"}, spread=0.1, rate=0.1)
        begin = weights(example, 4)
        one, two = (example.train.train(course, begin, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(one, two)
        (before, after), _ = example.train.trial(np.stack([begin, one]), course, seed=0, moths=300)
        assert after < before - 0.05
        assert (tmp_path / "first.onnx").exists()
        assert "wrote last.onnx after" in capsys.readouterr().out


class TestNight:
    def test_brains_know_the_moths_that_are_there(self, example):
        moths = example.night.Brood("moths", example.night.brain(example.night.policy("trained")), 40)
        night = example.night.Night([moths])
        came = set()
        for _ in range(120):
            night.step(1.0)
            came.update(moths.ids.tolist())
            assert moths.inferer.agents() == moths.ids.tolist()
        assert len(came) > len(moths.ids) > 30

    def test_without_time_brains_take_turns(self, example):
        policies = [example.night.brain(example.night.policy("early")) for _ in range(3)]
        night = example.night.Night(example.night.Brood(str(one), policy, 9) for one, policy in enumerate(policies))
        ran = [list(night.step(0.0).decided) for _ in range(6)]
        assert [len(one) for one in ran] == [1] * 6
        assert ran[:3] == ran[3:]
        assert len({number for (number,) in ran}) == 3


class TestScreen:
    def test_dots_are_where_things_are(self, example):
        canvas = example.screen.Canvas(2, 1)
        corners = np.array([[-2, 1], [2, -1]], np.float32)
        canvas.dots(corners, 81)
        assert canvas.lines() == ["\x1b[38;5;81m⠁⢀\x1b[0m"]
        canvas.sign(corners[1], "●", 227)
        assert canvas.lines() == ["\x1b[38;5;81m⠁\x1b[38;5;227m●\x1b[0m"]

    def test_the_picture_fits_the_terminal(self, example):
        play = example.demo.Play(1.0)
        act = play.act(example.demo.PLAY[0])
        next(act)
        for columns, rows in ((80, 24), (120, 40)):
            lines = example.demo.picture(play, columns, rows)
            assert len(lines) == rows
            assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) == columns


class TestDemo:
    def test_it_ends_well_without_a_terminal(self):
        found = script("demo.py")
        assert found.returncode == 0, found.stdout + found.stderr
        assert "\x1b" not in found.stdout
        assert "in the light of their lamps" in found.stdout.splitlines()[-1]

    def test_a_policy_that_learned_nothing_fails_it(self, example):
        scores = {"early": {"moths": 0.1}, "trained": {"moths": 0.2, "forgetful": 0.1}}
        assert not example.demo.verdict(scores)
        assert example.demo.verdict({**scores, "trained": {"moths": 0.4, "forgetful": 0.1}})
        assert not example.demo.verdict({**scores, "trained": {"moths": 0.4, "forgetful": 0.3}})


class TestGym:
    def test_without_gymnasium_it_says_what_to_install(self):
        found = script("-c", "import sys; sys.modules['gymnasium'] = None; import gym")
        assert found.returncode == 1
        assert found.stderr.strip().endswith("'pip install gymnasium'")
        assert len(found.stderr.splitlines()) == 1

    def test_environments_keep_to_their_spaces_and_begin_anew_a_step_later(self, example):
        envs = example.gym.MothEnv(50)
        seen, _ = envs.reset(seed=5)
        random, over, ended = np.random.default_rng(0), np.zeros(50, bool), 0
        for _ in range(400):
            assert envs.observation_space.contains(seen)
            actions = random.uniform(-1, 1, (50, 2)).astype(np.float32)
            seen, rewards, lost, old, _ = envs.step(actions)
            assert (seen[over, 3:5] == 0).all()  # new ones are at rest
            assert not (lost | old | rewards.astype(bool))[over].any()
            over = lost | old
            ended += int(over.sum())
        assert ended > 50

    @pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
    def test_whose_episode_begins_remembers_nothing(self, example, mode):
        """Environments that show how old they are, and end when they are 2, 3 or 4 steps old."""
        import gymnasium
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        class Aging(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-9, 9, (7,))
            action_space = gymnasium.spaces.Box(-1, 1, (2,))

            def __init__(self, last: int) -> None:
                self.last, self.age = last, 0

            def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
                self.age = 0
                return np.zeros(7, np.float32), {}

            def step(self, action: Any) -> Any:
                self.age += 1
                seen = np.full(7, self.age, np.float32)
                return seen, float(action[0]), self.age == self.last, False, {}

        policy = example.night.policy("trained")
        inferer = RecurrentTracker.wrap(EpsilonInjector.with_generator(policy, ConstantGenerator.zeros(), "epsilon"))
        envs = SyncVectorEnv([lambda last=last: Aging(last) for last in (2, 3, 4)], autoreset_mode=AutoresetMode(mode))
        found = example.gym.play(envs, inferer, steps=12, seed=0)
        for column, last in enumerate((2, 3, 4)):
            np.testing.assert_allclose(found[:, column], self.by_hand(policy, last, mode, 12), atol=1e-6)

    @staticmethod
    def by_hand(policy: DynamicInferer, last: int, mode: str, steps: int) -> list[float]:
        """Each episode by itself; where resets take a step, a step without reward lies between two of them."""
        rewards: list[float] = []
        while len(rewards) < steps:
            memory = np.zeros((1, 24), np.float32)
            for age in range(last):
                inputs = {"seen": np.full((1, 7), age, np.float32), "epsilon": np.zeros((1, 2), np.float32)}
                response = policy.infer_many([0], {**inputs, "memory": memory}).arrays
                memory = response["memory_out"]
                rewards.append(float(response["action"][0, 0]))
            rewards += [0.0] if mode == "NextStep" else []
        return rewards[:steps]
