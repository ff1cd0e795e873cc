"""Graphs of `torch.compile` on the runtimes of this project: `backend` is what PyTorch calls."""
