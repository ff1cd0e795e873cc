"""Copies in memory of tensors that lie in files: which there are, and that what is changed is written."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch
import tract_torch
from tract_torch import DEFAULT_COMPRESSION, ModTensorUpdater, QTensor, SupportsOffloadState, offload_tensor
from tract_torch.weights.offload import OffloadedTensor, ctx_maybe_load_from_disk_as_offloaded
from tract_torch.weights.residency import TensorResidencyPool

import tract_core as tract
from tract_core.errors import InputError, Unsupported


@pytest.fixture
def tensors(tmp_path: Path) -> list[OffloadedTensor]:
    """Four of 40 bytes each."""
    return [OffloadedTensor.from_original_tensor(torch.full((10,), float(n)), f"t{n}", tmp_path) for n in range(4)]


def test_those_that_were_used_last_are_kept(tensors: list[OffloadedTensor]) -> None:
    with TensorResidencyPool(max_cached_bytes=100) as pool:
        first = pool.resolve(tensors[0])
        assert torch.equal(first, torch.zeros(10))
        assert type(first) is torch.Tensor
        pool.resolve(tensors[1])
        assert pool.resolve(tensors[0]) is first
        pool.resolve(tensors[2])  # in the place of 1
        assert pool.resolve(tensors[0]) is first
        assert pool.cached_bytes == 80
    assert pool.cached_bytes == 0


def test_a_fixed_pool_reads_from_the_file_what_does_not_fit(tensors: list[OffloadedTensor]) -> None:
    with TensorResidencyPool(80, strategy="fixed") as pool:
        kept = [pool.resolve(one) for one in tensors[:2]]
        found = pool.resolve(tensors[2])
        assert torch.equal(found, torch.full((10,), 2.0))
        assert found.data_ptr() == tensors[2].plain().data_ptr()
        assert all(pool.resolve(one) is held for one, held in zip(tensors[:2], kept, strict=True))
        with pool.acquire(tensors[2], "read_write") as mapped:
            mapped.add_(1)
    assert torch.equal(tensors[2].reload(), torch.full((10,), 3.0))


def test_pins_and_leases_keep_what_they_hold(tensors: list[OffloadedTensor]) -> None:
    with TensorResidencyPool(80) as pool:
        pool.pin(tensors[0])
        first = pool.resolve(tensors[0])
        with pool.acquire(tensors[1]) as second:
            assert pool.resolve(tensors[2]).data_ptr() == tensors[2].plain().data_ptr()
            pool.evict()
            assert pool.resolve(tensors[1]) is second
            with pytest.raises(InputError, match="'t3' does not fit: 40 bytes of 80"):
                pool.pin(tensors[3])
        pool.unpin(tensors[0])
        with pytest.raises(InputError, match="'t0' is not pinned"):
            pool.unpin(tensors[0])
        pool.evict(tensors[0])
        assert pool.resolve(tensors[0]) is not first


def test_what_is_changed_is_written(tensors: list[OffloadedTensor]) -> None:
    with TensorResidencyPool(40) as pool:
        with pool.acquire(tensors[0], "read_write") as x:
            x.add_(5)
        assert torch.equal(tensors[0].reload(), torch.zeros(10))
        pool.flush()
        assert torch.equal(tensors[0].reload(), torch.full((10,), 5.0))
        with pool.acquire(tensors[0], "read_write") as x:
            x.add_(1)
        pool.resolve(tensors[1])  # in its place
        assert torch.equal(tensors[0].reload(), torch.full((10,), 6.0))
        with pool.acquire(tensors[1]) as x:
            x.add_(1)
    assert torch.equal(tensors[1].reload(), torch.ones(10))


def test_scopes_and_reading_ahead(tensors: list[OffloadedTensor]) -> None:
    pool = TensorResidencyPool(max_workers=2)
    outer = pool.resolve(tensors[0])
    with pool.scope():
        pool.resolve(tensors[1])
        assert pool.cached_bytes == 80
    assert pool.cached_bytes == 40
    assert pool.resolve(tensors[0]) is outer
    pool.prefetch(*tensors)
    pool._readers.shutdown()  # waits for them
    assert pool.cached_bytes == 160
    pool.close()
    assert pool.cached_bytes == 0


def test_several_are_read_at_once(tensors: list[OffloadedTensor], monkeypatch: pytest.MonkeyPatch) -> None:
    both, read = Barrier(2, timeout=20), OffloadedTensor.reload

    def slowly(tensor: OffloadedTensor) -> torch.Tensor:
        both.wait()
        return read(tensor)

    monkeypatch.setattr(OffloadedTensor, "reload", slowly)
    with TensorResidencyPool(max_workers=2) as pool:
        pool.prefetch(*tensors[:2])
        assert [float(pool.resolve(one)[0]) for one in tensors[:2]] == [0, 1]
        assert not both.broken


def test_what_cannot_be_read_is_tried_again(tensors: list[OffloadedTensor], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tensor: OffloadedTensor) -> torch.Tensor:
        raise MemoryError

    with TensorResidencyPool() as pool:
        with monkeypatch.context() as without_memory:
            without_memory.setattr(OffloadedTensor, "reload", fails)
            with pytest.raises(MemoryError):
                pool.resolve(tensors[1])
        assert pool.cached_bytes == 0
        assert torch.equal(pool.resolve(tensors[1]), torch.ones(10))


def test_what_is_asked_wrongly() -> None:
    for options, says in (
        ({"max_cached_bytes": -1}, "max_cached_bytes is -1, wanted None, 0 or more"),
        ({"max_workers": 0}, "max_workers is 0, wanted 1 or more"),
        ({"strategy": "newest"}, "strategy is 'newest', wanted one of lru, fixed"),
    ):
        with pytest.raises(InputError, match=says):
            TensorResidencyPool(**options)
    for ask in (TensorResidencyPool().resolve, TensorResidencyPool().prefetch):
        with pytest.raises(InputError, match="the tensor is Tensor, wanted an OffloadedTensor"):
            ask(torch.ones(2))  # pyright: ignore[reportArgumentType]: a wrong one


def test_quantised_tensors_stay_so_in_files(tmp_path: Path) -> None:
    module, x = torch.nn.Linear(32, 4), torch.randn(2, 32)
    DEFAULT_COMPRESSION["min_max_q4_0"](module)
    wanted = module(x)
    weight = module.weight
    assert isinstance(weight, SupportsOffloadState)
    held = offload_tensor(weight, "weight", tmp_path)
    assert isinstance(held, QTensor)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size == 64
    ModTensorUpdater(module).update_by_ref(weight, torch.nn.Parameter(held, requires_grad=False))
    assert torch.equal(module(x), wanted)
    path = tract_torch.export_model_to_nnef(module, x, tmp_path / "m.nnef", tract_torch.TractNNEF("0.23.9"))
    (found,) = tract.load(path).into_runnable().run([x.numpy()])
    torch.testing.assert_close(torch.from_numpy(found.to_numpy()), wanted.detach(), rtol=1e-4, atol=1e-4)


def test_engines_that_read_blocks_in_another_order_are_refused(tmp_path: Path) -> None:
    module = DEFAULT_COMPRESSION["min_max_q4_0"](torch.nn.Linear(32, 4))
    target = tract_torch.TractNNEF("0.21.10")
    with pytest.raises(Unsupported, match=r"(?s)tract 0.21.10 reads the blocks of 'weight'.*target 0.21.11 or newer"):
        tract_torch.export_model_to_nnef(module, torch.randn(2, 32), tmp_path / "m.nnef", target)
    assert not list(tmp_path.iterdir())


def test_files_are_mapped_where_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"weight": torch.ones(4)}, tmp_path / "w.pt")
    mapped: list[str] = []
    from_file = torch.UntypedStorage.from_file

    def noted(path: str, *options: Any) -> torch.UntypedStorage:
        mapped.append(path)
        return from_file(path, *options)

    monkeypatch.setattr(torch.UntypedStorage, "from_file", noted)

    def is_mapped() -> bool:
        mapped.clear()
        assert torch.equal(torch.load(tmp_path / "w.pt")["weight"], torch.ones(4))
        return bool(mapped)

    with ctx_maybe_load_from_disk_as_offloaded():
        assert is_mapped()
    with ctx_maybe_load_from_disk_as_offloaded("cpu"):
        assert not is_mapped()
    assert not is_mapped()


def test_the_version_is_told() -> None:
    assert tract_torch.__version__ == tract_torch.VERSION
    assert tract_torch.VERSION.count(".") == 2
