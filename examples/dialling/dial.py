"""Hear a telephone number being dialled: train a network with PyTorch, export it, cook it, and run it as a stream.

``make demo-torch`` sets everything up and runs this. A number of your own can be given: ``dial.py 0123456789``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import nn
from tract_torch import TractNNEF, export_model_to_nnef

import tract_core as tract

RATE = 8000
"""Samples a second."""
HOP = 64
"""Samples for each output of the network: 8 ms."""
CHUNK = 200
"""Samples that a sound card brings at a time."""
ROWS, COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477)
KEYS = "123456789*0#"
"""Each key sounds the tone of its row and that of its column, in Hz (ITU-T Q.23)."""
SILENCE = len(KEYS)
RESULTS = Path(__file__).with_name("results")


class Ear(nn.Module):
    """A sound [batch, 1, samples] -> how likely each key, or none, is pressed [batch, 13, one every HOP samples]."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(1, 48, 2 * HOP, stride=HOP)
        self.normalise = nn.BatchNorm1d(48)
        self.context = nn.Conv1d(48, 48, 3)
        self.keys = nn.Conv1d(48, SILENCE + 1, 3)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        loud = torch.log(self.filters(sound) ** 2 + 1e-3)
        return torch.softmax(self.keys(torch.relu(self.context(self.normalise(loud)))), dim=1)


def dialled(number: str, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The sound of a number, with noise, and which key is pressed at each sample."""
    parts: list[np.ndarray] = []
    pressed: list[np.ndarray] = []
    for key in (KEYS.index(digit) for digit in number):
        pause, length = random.integers(500, 900), random.integers(600, 1200)
        times = np.arange(length) / RATE
        tones = (ROWS[key // 3], COLUMNS[key % 3])
        sounding = [np.sin(2 * np.pi * (tone * times + random.random())) for tone in tones]
        parts += [np.zeros(pause), np.mean(sounding, axis=0)]
        pressed += [np.full(pause, SILENCE), np.full(length, key)]
    parts.append(np.zeros(2000))
    pressed.append(np.full(2000, SILENCE))
    sound = np.concatenate(parts) * random.uniform(0.3, 1.0)
    noise = random.normal(0, random.uniform(0.02, 0.25), len(sound))
    return (sound + noise).astype(np.float32), np.concatenate(pressed)


def trained(random: np.random.Generator, steps: int = 150) -> tuple[Ear, float]:
    """A network that hears, and its loss at the end."""
    torch.manual_seed(0)
    ear = Ear()
    optimizer = torch.optim.Adam(ear.parameters(), lr=4e-3)
    loss = torch.zeros(())
    for _ in range(steps):
        clips = [dialled("".join(random.choice(list(KEYS), 4)), random) for _ in range(8)]
        shortest = min(len(sound) for sound, _ in clips)
        sounds = torch.from_numpy(np.stack([sound[:shortest] for sound, _ in clips]))[:, None]
        likely = ear(sounds)
        middles = HOP * (np.arange(likely.shape[2]) + 3)  # the middle of what each output hears
        keys = torch.from_numpy(np.stack([pressed[middles] for _, pressed in clips]))
        loss = nn.functional.nll_loss(torch.log(likely + 1e-9), keys)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return ear.eval(), float(loss.detach())


def exported(ear: Ear) -> Path:
    """An archive that takes sounds of any length, compared with the module at several of them."""
    target = TractNNEF(None, dynamic_axes={"sound": {2: "S"}})
    example = torch.randn(1, 1, 20 * HOP)
    return export_model_to_nnef(ear, example, RESULTS / "ear.nnef.tgz", target, ["sound"], ["keys"])


def cooked(archive: Path) -> Path:
    """The same as an archive that takes a pulse of HOP samples at a time."""
    model = tract.load(archive)
    model.transform(tract.Pulse(HOP, symbol="S"))
    model.save(RESULTS / "ear-pulsed.nnef.tgz")
    return RESULTS / "ear-pulsed.nnef.tgz"


def heard(outputs: np.ndarray) -> str:
    """The keys in a row of outputs: those that last four outputs and more."""
    keys = outputs[0].argmax(0)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    lengths = np.diff(starts, append=len(keys))
    lasting = [keys[at] for at, count in zip(starts, lengths, strict=True) if count >= 4]
    return "".join(KEYS[key] for key in lasting if key != SILENCE)


def main() -> int:
    console = Console(highlight=False)
    number = sys.argv[1] if len(sys.argv) > 1 else "0172*4958#36"
    if not number or set(number) - set(KEYS):
        console.print(f"[red]{number!r} cannot be dialled: there are the keys {KEYS}[/red]")
        return 2
    RESULTS.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    start = time.perf_counter()
    with console.status("training"):
        ear, loss = trained(random)
    console.print(f"trained in [bold]{time.perf_counter() - start:.0f} s[/bold], loss {loss:.3f}")
    with console.status("exporting"):
        archive = exported(ear)
        pulsed = cooked(archive)
    console.print(f"exported, checked and cooked: [bold]{archive.name}[/bold], [bold]{pulsed.name}[/bold]")

    sound, _ = dialled(number, random)
    runnable = tract.load(pulsed).into_runnable()
    pieces: list[np.ndarray] = []
    seconds = 0.0
    console.print("hearing: ", end="")
    said = ""
    stream = runnable.stream(sound[None, None, at : at + CHUNK] for at in range(0, len(sound), CHUNK))
    while True:
        begun = time.perf_counter()
        piece = next(stream, None)
        seconds += time.perf_counter() - begun
        if piece is None:
            break
        pieces.append(piece.to_numpy())
        now = heard(np.concatenate(pieces, axis=2))
        console.print(f"[bold]{now[len(said) :]}[/bold]", end="")
        said = now
    console.print(f"\n{len(sound) / RATE:.1f} s of sound took {seconds * 1e3:.0f} ms")
    streamed = np.concatenate(pieces, axis=2)
    with torch.no_grad():
        whole = ear(torch.from_numpy(sound)[None, None]).numpy()
    largest = float(np.abs(streamed - whole).max()) if streamed.shape == whole.shape else np.inf
    console.print(f"streamed, and by PyTorch at once: {streamed.shape[2]} outputs, at most {largest:.1e} apart")
    return 0 if said == number and largest < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
