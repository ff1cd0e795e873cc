"""The tables of streaming: how each operator streams, and what is said so of tensors with two axes of time.

Each stands beside what its rows are given.
"""

from tract_pulse.bands.analysis import BAND, NEUTRAL, BandFn, NeutralFn
from tract_pulse.pulsing.node import PULSE, PulseFn
from tract_pulse.pulsing.square import WINDOW, WindowFn

__all__ = ["BAND", "NEUTRAL", "PULSE", "WINDOW", "BandFn", "NeutralFn", "PulseFn", "WindowFn"]
