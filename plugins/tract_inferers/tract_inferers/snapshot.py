"""What is known of agents, as data: to keep it, to send it, and to bring them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.frozen import frozen


@frozen
class AgentSnapshot:
    """What is known of some agents. It can be pickled.

    ``agents``: their numbers. ``arrays``: by name, what each remembers, with the agents along axis 0: for a memory the
    name is that of the input, for noise ``"noise:KEY"``, the number of steps.
    """

    agents: tuple[int, ...]
    arrays: dict[str, np.ndarray[Any, Any]]
