"""Whole networks with random weights: what `test_networks_torch` goes through."""

from torch_networks import audio, generative, transformers_, vision
from torch_networks.network import Network as Network

NETWORKS = [network for kind in (vision, audio, generative, transformers_) for network in kind.NETWORKS]
