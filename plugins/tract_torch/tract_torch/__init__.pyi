"""The public names, and where they are from."""

from tract_torch.load import load as load
