"""Train the small convolutional network of this example and export it as ``digits.onnx``.

Needs PyTorch, which the demo itself does not: ``pip install torch onnx onnxscript scikit-learn``. Takes under a minute.
"""

from __future__ import annotations

from pathlib import Path

import torch
from data import digits
from torch import nn


def network() -> nn.Module:
    """Two convolutions with batch normalisation, a pooling, and two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
        nn.Softmax(dim=1),
    )


def train(model: nn.Module, epochs: int = 30) -> None:
    """Fit on the training part. The loss is taken before the softmax, which is the last layer."""
    training, _ = digits()
    images, labels = torch.from_numpy(training.images), torch.from_numpy(training.labels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    logits = model[:-1]
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits(images[batch]), labels[batch]).backward()
            optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    model = network()
    train(model)
    model.eval()
    _, held_out = digits()
    answers = model(torch.from_numpy(held_out.images)).argmax(1).numpy()
    print(f"accuracy on {len(answers)} held-out digits: {(answers == held_out.labels).mean():.1%}")
    path = Path(__file__).with_name("digits.onnx")
    torch.onnx.export(
        model,
        (torch.zeros(1, 1, 8, 8),),
        path,
        input_names=["image"],
        output_names=["probabilities"],
        dynamic_axes={"image": {0: "B"}, "probabilities": {0: "B"}},
        opset_version=17,
        dynamo=False,
    )
    print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
