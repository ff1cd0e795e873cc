"""How many tokens a second a model reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median, stdev
from time import perf_counter

import numpy as np

from tract_core.api.runnable import Runnable
from tract_core.frozen import frozen
from tract_transformers.generation.reading import read_prompt
from tract_transformers.language_model.keep import description_of, pasts_of


@frozen
class Rate:
    """How fast one ``test`` ran, as ``pp128`` (a prompt of 128) or ``tg64`` (64 tokens, one by one).

    ``rates``: tokens a second, of each run.
    """

    test: str
    rates: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.rates)

    def to_json(self) -> dict[str, object]:
        """The figures, for JSON."""
        figures = {"tokens_per_second": self.middle, "deviation": self.deviation, "repetitions": len(self.rates)}
        return {"test": self.test, **figures}

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 of a single run."""
        return stdev(self.rates) if len(self.rates) > 1 else 0.0


@frozen
class Manner:
    """How rates are measured: behind ``depth`` tokens, so many ``times``. ``say``: is told what is done."""

    depth: int
    times: int
    say: Callable[[str], None]


def measured(runnable: Runnable, prompts: list[int], answers: list[int], manner: Manner) -> list[Rate]:
    """The rates of prompts and answers of some lengths."""
    description, depth = description_of(runnable), manner.depth
    most = max([*prompts, *answers], default=0) + depth
    draw = np.random.default_rng(0)
    tokens = [int(one) for one in draw.integers(0, description.vocabulary or 2, most)]
    past = pasts_of(runnable, description).past()
    found: list[Rate] = []

    def run(count: int, step: int) -> float:
        past.truncate(0)
        if depth:
            read_prompt(past, tokens[:depth])
        begun = perf_counter()
        if step:
            for place in range(depth, depth + count):
                past.extend(tokens[place : place + 1])
        else:
            read_prompt(past, tokens[: depth + count])
        return count / (perf_counter() - begun)

    for name, counts, step in (("pp", prompts, 0), ("tg", answers, 1)):
        for count in counts:
            manner.say(f"measuring {name}{count} of")
            run(min(count, 8) if step else count, step)
            found.append(Rate(f"{name}{count}", tuple(run(count, step) for _ in range(manner.times))))
    return found


def parameters_of(runnable: Runnable) -> int:
    """How many numbers the constants of a model are: those of packed weights, where these are unpacked."""
    model = runnable.typed
    found = 0
    for node in model.live_nodes():
        if node.op.unpacks:
            found += _volume(model.outlet_fact(node.outlets()[0]).shape.volume)
        elif node.op.name == "Const" and not any(
            model.nodes[one.node].op.unpacks for one in node.outputs[0].successors
        ):
            fact = model.outlet_fact(node.outlets()[0])
            found += _volume(fact.shape.volume) if fact.datum_type.is_float() else 0
    return found


def bytes_of(path: Path) -> int:
    """The size of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def _volume(size: object) -> int:
    return size if isinstance(size, int) else 0
