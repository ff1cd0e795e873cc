"""Models that take a signal in pulses, beside the established engine: ``python bench/bench_pulse.py``

One thread each. Prints, for each network, the median time of a pulse on the CPU runtime in microseconds, and the time
of the same pulsed model in the `tract` wheel divided by it; then, on the reference runtime, the time of one pass of the
model that takes whole signals over as many positions, divided by that of a pulse: no less than 1 is wanted. All are
called in turn, a short round each, and ratios are medians of those of the rounds. Outputs of all pulses are compared
first. What was measured is kept in ``bench/.measured/streams`` for `docs/performance.md`.

The wheel runs in a process of its own, with the Python of ``.venv-peers``, as its module is called `tract` like one of
ours; without it, its column is empty. Wants onnx.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stopwatch import seconds

ROUNDS = 25
SECONDS = 0.02
"""How long one round of one of them takes."""

TURNS = 32
"""Pulses that are compared; in a round, the same ones come again and again."""

PEERS_PYTHON = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"
MEASURED = Path(__file__).parent / ".measured" / "streams"
Turn = Callable[[], Any]


def cases() -> dict[str, tuple[Any, int, int]]:
    """Networks by name, each with the axis of the signal and the size of a pulse."""
    from networks import signals

    return {
        "keyword spotter, 20 x S, pulse 8": (signals.keyword_spotter(frames=200, mels=20), 2, 8),
        "keyword spotter, 20 x S, pulse 1": (signals.keyword_spotter(frames=200, mels=20), 2, 1),
        "dilated residual, looks back 510, pulse 8": (signals.dilated_residual(), 2, 8),
        "causal depthwise, pulse 8": (signals.causal_depthwise(), 2, 8),
        "LSTM 2 x 128, pulse 1": (signals.lstm(), 0, 1),
        "LSTM 2 x 128, pulse 8": (signals.lstm(), 0, 8),
        "GRU 2 x 128, pulse 8": (signals.gru(), 0, 8),
    }


def write(network: Any, axis: int, pulse: int, folder: Path) -> tuple[Path, Path]:
    """The network, its signal as long as ``S`` says, and a signal of pulses."""
    import onnx

    (x,), model = network.inputs.values(), network.model
    model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = "S"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    onnx.save(model, folder / "model.onnx")
    shape = list(x.shape)
    shape[axis] = pulse
    pulses = np.random.default_rng(0).standard_normal([TURNS, *shape], np.float32)
    np.save(folder / "pulses.npy", pulses)
    return folder / "model.onnx", folder / "pulses.npy"


def in_a_circle(run: Callable[[list[np.ndarray]], Any], pulses: np.ndarray) -> Turn:
    """What runs the next one of some pulses."""
    inputs, turn = [[np.ascontiguousarray(one)] for one in pulses], iter(range(1 << 62))
    return lambda: run(inputs[next(turn) % len(inputs)])


def peer(model: str, data: str, pulse: str) -> None:
    """In a process of its own: the wheel, which first tells what comes out, then the time of a round for each line."""
    import tract

    loaded = tract.onnx().load(model).into_model()
    loaded.transform(tract.Pulse(pulse, symbol="S"))
    state, pulses = loaded.into_runnable().spawn_state(), np.load(data)
    np.save(data + ".peer.npy", np.stack([state.run([one])[0].to_numpy() for one in pulses]))
    call = in_a_circle(state.run, pulses)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(seconds(call, SECONDS)), flush=True)


@contextmanager
def peer_rounds(model: Path, data: Path, pulse: int) -> Iterator[Callable[[], float] | None]:
    """What asks the wheel for the time of a round; ``None`` where there is no wheel."""
    if not PEERS_PYTHON.exists():
        yield None
        return
    command = [PEERS_PYTHON, __file__, "peer", model, data, str(pulse)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    if stdout.readline() != "ready\n":
        raise SystemExit("the established engine could not run the model")

    def ask() -> float:
        stdin.write("\n")
        stdin.flush()
        return float(stdout.readline())

    yield ask
    process.kill()
    process.wait()


def prepared(path: Path, runtime: str, pulse: int | None) -> Any:
    """The model on a runtime, for pulses or for whole signals."""
    import tract_core as tract

    model = tract.onnx().load(path).into_model()
    if pulse is not None:
        model.transform(tract.Pulse(str(pulse), symbol="S"))
    return tract.runtime_for_name(runtime, **({"threads": 1} if runtime == "cpu" else {})).prepare(model)


def measure(number: int, name: str, path: Path, data: Path, pulse: int) -> None:
    """Compare what comes out, then print the row of a network."""
    pulses = np.load(data)
    native, reference = (prepared(path, runtime, pulse) for runtime in ("cpu", "reference"))
    whole = prepared(path, "reference", None)
    hosted = {one.how for one in native.explain().placements} & {"state", "numpy"}
    states = [one.spawn_state() for one in (native, reference)]
    found, want = (np.stack([np.asarray(state.run([one])[0]) for one in pulses]) for state in states)
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
    ours, slowly = (in_a_circle(state.run, pulses) for state in states)
    once = in_a_circle(whole.run, pulses)
    with peer_rounds(path, data, pulse) as theirs:
        if theirs is not None:
            np.testing.assert_allclose(found, np.load(f"{data}.peer.npy"), rtol=1e-3, atol=1e-4)
        rounds = [
            (seconds(ours, SECONDS), theirs and theirs(), seconds(slowly, SECONDS), seconds(once, SECONDS))
            for _ in range(ROUNDS)
        ]
    median = statistics.median(row[0] for row in rounds) * 1e6
    ratio = statistics.median(row[1] / row[0] if row[1] else np.nan for row in rounds)
    reference_ratio = statistics.median(row[3] / row[2] for row in rounds)
    left = f"  left to the host: {hosted}" if hosted else ""
    print(f"{name:44}{median:9.1f}{ratio:8.2f}{reference_ratio:11.2f}{left}", flush=True)
    if not np.isnan(ratio):
        MEASURED.mkdir(parents=True, exist_ok=True)
        kept = {"name": name, "microseconds": median, "ratio": ratio}
        (MEASURED / f"{number}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def main() -> None:
    print(f"{'':44}{'us':>9}{'wheel':>8}{'reference':>11}")
    for number, (name, (network, axis, pulse)) in enumerate(cases().items()):
        if sys.argv[1:] and sys.argv[1] not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            measure(number, name, *write(network, axis, pulse, Path(folder)), pulse)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of NumPy, for the reference runtime
    if sys.argv[1:2] == ["peer"]:
        peer(*sys.argv[2:])
    else:
        main()
