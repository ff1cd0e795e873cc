"""The same predictor in pools of processes, in threads, as an iterator, and who is told how far it is."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from tract_ray import Predictor, progress
from tract_ray.progress import LOG, progress_of


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pool_of_processes_gives_the_bits_of_a_plain_loop(models, rows, method) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("the system does not fork")
    predictor = Predictor(models["dense"], threads=1)
    batches = [{"x": rows[at : at + 25]} for at in range(0, 100, 25)]
    wanted = [predictor(batch)["y"].tobytes() for batch in batches]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        found = list(pool.map(predictor, batches))
    assert [one["y"].tobytes() for one in found] == wanted


def test_threads_share_a_predictor(models, rows) -> None:
    predictor, found = Predictor(models["dense"]), []
    wanted = predictor({"x": rows})["y"].tobytes()
    threads = [threading.Thread(target=lambda: found.append(predictor({"x": rows})["y"].tobytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_batches_one_after_the_other(models, rows) -> None:
    predictor, taken = Predictor(models["dense"]), []

    def batches():
        for at in range(0, 100, 50):
            taken.append(at)
            yield {"x": rows[at : at + 50]}

    frames = predictor.frames(batches())
    assert taken == []
    assert next(frames)["y"].shape == (50, 8)
    assert taken == [0]
    assert len(list(frames)) == 1


def test_progress_is_told_to_whoever_is_named(models, rows) -> None:
    told: list[tuple[int, float]] = []
    predictor = Predictor(models["dense"], progress=lambda done, seconds: told.append((done, seconds)))
    for count in (100, 1, 0, 10):
        predictor({"x": rows[:count]})
    assert [done for done, _ in told] == [100, 101, 101, 111]
    assert all(0 <= before <= after for (_, before), (_, after) in pairwise(told))


def test_progress_is_logged_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: clock[0])
    tell = progress_of(True)
    with caplog.at_level(logging.INFO, LOG.name):
        for seconds in (1, 4, 6, 10, 11.5):
            clock[0] = seconds
            tell(100)
    assert caplog.messages == ["300 rows in 6 s: 50.0 rows a second", "500 rows in 12 s: 43.5 rows a second"]


def test_nobody_is_told_unless_asked(models, rows, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, LOG.name):
        Predictor(models["dense"])({"x": rows})
    assert caplog.messages == []
    assert np.isfinite(rows).all()
