"""Train the denoiser of this example and export it as ``denoise.onnx``.

Needs PyTorch, which the demo itself does not: ``pip install torch onnx``. Takes a few minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sound import RATE, clean, noisy
from torch import nn

FRAME, HOP, WIDTH = 32, 16, 32


class Block(nn.Module):
    """A convolution over time with a shortcut around it. ``ahead``: how many frames of the future it sees."""

    def __init__(self, dilation: int, ahead: int = 0) -> None:
        super().__init__()
        self.pads = (2 * dilation - ahead, ahead)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, dilation=dilation)
        self.mix = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(torch.relu(self.conv(nn.functional.pad(x, self.pads))))


class Denoiser(nn.Module):
    """Frames of samples, weighed by what the frames before and a few after them say, and added up to samples again."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.Conv1d(1, WIDTH, FRAME, stride=HOP, bias=False)
        self.blocks = nn.Sequential(Block(1, ahead=1), *(Block(2**level) for level in range(1, 6)))
        self.weigh = nn.Conv1d(WIDTH, WIDTH, 1)
        self.samples = nn.ConvTranspose1d(WIDTH, 1, FRAME, stride=HOP, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = self.frames(nn.functional.pad(x, (FRAME - HOP, 0)))
        weights = torch.sigmoid(self.weigh(self.blocks(frames)))
        return self.samples(frames * weights)[:, :, : x.shape[2]]


def batch(random: np.random.Generator, count: int = 8, seconds: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    """Sounds without and with noise: two tensors of ``count``, 1, samples."""
    sounds = [clean(seconds, random) for _ in range(count)]
    hissing = [noisy(sound, random, random.uniform(0.02, 0.2)) for sound in sounds]
    return tuple(torch.from_numpy(np.stack(one)[:, None]) for one in (sounds, hissing))


def train(model: nn.Module, steps: int = 4000) -> None:
    random, optimizer = np.random.default_rng(0), torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        sounds, hissing = batch(random)
        loss = nn.functional.mse_loss(model(hissing), sounds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.5f}")


def main() -> None:
    torch.manual_seed(0)
    model = Denoiser()
    train(model)
    model.eval()
    sounds, hissing = batch(np.random.default_rng(1))
    with torch.no_grad():
        before, after = (float(((one - sounds) ** 2).mean()) for one in (hissing, model(hissing)))
    print(f"noise is weaker by {10 * np.log10(before / after):.1f} dB on sounds that were not shown in training")
    path = Path(__file__).with_name("denoise.onnx")
    torch.onnx.export(
        model,
        (torch.zeros(1, 1, RATE),),
        path,
        input_names=["noisy"],
        output_names=["clean"],
        dynamic_axes={"noisy": {2: "S"}, "clean": {2: "S"}},
        dynamo=False,
    )
    print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
