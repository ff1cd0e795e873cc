"""Pulsed models are written as archives, and come back the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from stream_networks import network
from stream_runs import pulsed

import tract_core as tract
from tract_core.api.model import Model
from tract_core.errors import FactError


@pytest.mark.parametrize("seed", range(30))
def test_a_pulsed_model_comes_back_from_an_archive(seed: int, tmp_path: Path) -> None:
    try:
        net = network(seed)
    except FactError:
        pytest.skip("no signal is long enough")
    model = pulsed(net.model.declutter(), net.unit)
    for name, writer in (("plain", tract.nnef()), ("with_pulse", tract.nnef().with_pulse())):
        writer.write_model_to_dir(Model(model.clone()), tmp_path / name)
        found = tract.load(tmp_path / name).typed
        assert found == model
        assert ("tract_registry tract_pulse;" in (tmp_path / name / "graph.nnef").read_text()) <= (name == "with_pulse")
