"""What the tests of this distribution share. They need PyTorch, and are left out where it is not installed."""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
if not all(map(importlib.util.find_spec, ("torchvision", "transformers"))):
    collect_ignore_glob.append("test_networks_torch.py")
