"""Classify handwritten digits that the network has not seen: load, simplify, run, look at the answers.

``make demo`` sets everything up and runs this.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from data import Digits, digits
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

import tract_core as tract

MODEL = Path(__file__).with_name("digits.onnx")
SHADES = " ░▒▓█"


def main() -> int:
    console = Console(highlight=False)
    console.rule("[bold]load and simplify")
    model = tract.onnx().load(MODEL).into_model()
    print_graph(console, model)
    console.rule("[bold]classify")
    _, held_out = digits()
    runtime = tract.runtime_for_name("default")
    runnable = runtime.prepare(model)
    start = time.perf_counter()
    (probabilities,) = runnable.run([held_out.images])
    seconds = time.perf_counter() - start
    scores = probabilities.to_numpy()
    draw_some(console, held_out, scores)
    right = scores.argmax(1) == held_out.labels
    console.print(
        f"{right.sum()} of {len(right)} digits that were never shown in training are read right: "
        f"[bold]accuracy {right.mean():.1%}[/bold], {seconds / len(right) * 1e6:.0f} µs per image "
        f"on runtime {runtime.name()!r}"
    )
    return 0 if compare(console, held_out.images, scores) and right.mean() > 0.95 else 1


def print_graph(console: Console, model: tract.Model) -> None:
    """The graph in brief: every operator with the fact of its output."""
    console.print(f"input  [bold]{model.input_name(0)}[/bold]  {model.input_fact(0)}")
    for node in model.typed.nodes:
        if node.inputs:
            facts = "; ".join(str(outlet.fact) for outlet in node.outputs)
            console.print(f"  [green]{node.op.name:<10}[/green] {facts:<16} [bright_black]{node.name}[/bright_black]")
    console.print(f"output [bold]{model.output_name(0)}[/bold]  {model.output_fact(0)}")


def draw_some(console: Console, held_out: Digits, scores: np.ndarray, count: int = 6) -> None:
    """A few images, among them one that is read wrong if there is one, each with the answer."""
    answers = scores.argmax(1)
    wrong = np.flatnonzero(answers != held_out.labels)[:1]
    chosen = [*np.arange(0, len(answers), len(answers) // count)[: count - len(wrong)], *wrong]
    panels = []
    for index in chosen:
        good = answers[index] == held_out.labels[index]
        title = f"[{'green' if good else 'red'}]{answers[index]}[/] ({scores[index].max():.0%})"
        under = None if good else f"a {held_out.labels[index]}"
        panels.append(Panel(picture(held_out.images[index, 0]), title=title, subtitle=under, expand=False))
    console.print(Columns(panels))


def picture(image: np.ndarray) -> Text:
    """An image in characters, darker where there is more ink; two characters per point, as characters are narrow."""
    levels = np.clip((image * len(SHADES)).astype(int), 0, len(SHADES) - 1)
    return Text("\n".join("".join(SHADES[level] * 2 for level in row) for row in levels))


def compare(console: Console, images: np.ndarray, scores: np.ndarray) -> bool:
    """Whether ONNX Runtime, where it is installed, gives the same probabilities."""
    if find_spec("onnxruntime") is None:
        console.print("ONNX Runtime is not installed: nothing to compare with")
        return True
    import onnxruntime

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    start = time.perf_counter()
    (expected,) = session.run(None, {"image": images})
    seconds = time.perf_counter() - start
    worst = float(np.abs(scores - expected).max())
    verdict = "[green]agrees[/green]" if worst < 1e-4 else "[red]differs[/red]"
    console.print(
        f"ONNX Runtime {onnxruntime.__version__} {verdict}: largest difference of a probability {worst:.1e}, "
        f"{seconds / len(images) * 1e6:.0f} µs per image"
    )
    return worst < 1e-4


if __name__ == "__main__":
    raise SystemExit(main())
