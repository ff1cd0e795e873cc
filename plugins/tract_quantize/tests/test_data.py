"""Data in folders, and what is refused of it."""

from __future__ import annotations

import numpy as np
import pytest
from quantize_models import turns
from tract_quantize import calibrate, random_samples, samples_in
from tract_quantize.samples import ListedSamples

from tract_core.errors import InputError


def test_files_are_turns_in_the_order_of_their_names(network, tmp_path) -> None:
    for number in (10, 2, 1):
        np.save(tmp_path / f"{number:03}.npy", np.full((1, 24), number, np.float32))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "sub.npy").mkdir()
    found = samples_in(tmp_path, network("mlp").typed)
    assert [int(turn[0][0, 0]) for turn in found] == [1, 2, 10]
    assert len(samples_in(tmp_path, network("mlp").typed, 2)) == 2


def test_arrays_are_found_by_the_names_of_inputs(network, tmp_path) -> None:
    (turn,) = turns("two_inputs", count=1)
    np.savez(tmp_path / "0.npz", b=turn["b"], other=np.zeros(3), a=turn["a"])
    ((a, b),) = samples_in(tmp_path, network("two_inputs").typed)
    np.testing.assert_array_equal(a, turn["a"])
    np.testing.assert_array_equal(b, turn["b"])


class TestRefused:
    def test_folders(self, network, tmp_path) -> None:
        model = network("mlp").typed
        with pytest.raises(InputError, match="there is no such folder"):
            samples_in(tmp_path / "nowhere", model)
        with pytest.raises(InputError, match=r"there is no .npy or .npz file in it") as error:
            samples_in(tmp_path, model)
        assert "numpy.savez" in str(error.value)

    def test_one_array_for_several_inputs(self, network, tmp_path) -> None:
        np.save(tmp_path / "0.npy", np.zeros((1, 40), np.float32))
        with pytest.raises(InputError, match=r"an .npy file holds one array, and the model has 2 inputs"):
            samples_in(tmp_path, network("two_inputs").typed)

    def test_names(self, network, tmp_path) -> None:
        np.savez(tmp_path / "0.npz", **{"X\x1b[2J": np.zeros((1, 24), np.float32)})
        with pytest.raises(InputError, match="no array in it is called 'x', as an input is") as error:
            calibrate(network("mlp"), samples_in(tmp_path, network("mlp").typed))
        assert "0.npz" in str(error.value)
        assert "\x1b" not in str(error.value)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((1, 25), np.float32), "axis 1 has size 25"),
            (np.zeros(24, np.float32), "rank"),
            (np.zeros((1, 24), np.int32), "i32"),
        ],
        ids=["size", "rank", "type"],
    )
    def test_arrays_that_do_not_fit_name_their_file(self, array, message: str, network, tmp_path) -> None:
        np.save(tmp_path / "first.npy", array)
        with pytest.raises(InputError, match=message) as error:
            calibrate(network("mlp"), samples_in(tmp_path, network("mlp").typed))
        assert "first.npy" in str(error.value)

    @pytest.mark.parametrize(
        "content", [b"", b"not an array", b"\x93NUMPY\x01\x00\xff\xff"], ids=["empty", "text", "cut"]
    )
    def test_files_that_are_none_name_themselves(self, content: bytes, network, tmp_path) -> None:
        for ending in ("npy", "npz"):
            (tmp_path / f"bad.{ending}").write_bytes(content)
            with pytest.raises(InputError) as error:
                calibrate(network("mlp"), samples_in(tmp_path, network("mlp").typed))
            assert f"bad.{ending}" in str(error.value)
            (tmp_path / f"bad.{ending}").unlink()

    @pytest.mark.parametrize(("strange", "told"), [(np.nan, "what is no number"), (np.inf, "infinities")])
    def test_numbers_that_have_no_range_name_the_tensor_and_the_sample(
        self, strange: float, told: str, network
    ) -> None:
        bad = np.zeros((2, 24), np.float32)
        bad[1, 3] = strange
        with pytest.raises(InputError, match=rf"tensor .x. holds {told} with this data") as error:
            calibrate(network("mlp"), ListedSamples([[np.zeros((2, 24), np.float32)], [bad]]))
        assert "sample 1" in str(error.value)

    def test_numbers_that_come_up_inside_name_the_tensor(self, network) -> None:
        large = np.full((1, 24), 3e38, np.float32) * np.sign(np.random.default_rng(0).standard_normal((1, 24)))
        with pytest.raises(InputError, match=r"tensor 'bent' holds|tensor 'y' holds"):
            calibrate(network("mlp"), ListedSamples([[large.astype(np.float32)]]))

    def test_no_samples(self, network) -> None:
        with pytest.raises(InputError, match="there is no sample to calibrate with"):
            calibrate(network("mlp"), ListedSamples([]))
        with pytest.raises(InputError, match="0 random samples are none"):
            random_samples(network("mlp").typed, 0)


def test_a_symbol_that_no_input_has(network) -> None:
    with pytest.raises(InputError, match="no input has a symbol L; there are: B"):
        random_samples(network("mlp").typed, 1, {"L": 3})


def test_random_samples_are_the_same_each_time(network) -> None:
    one, other = (random_samples(network("attention").typed, 2, {"S": 5}) for _ in range(2))
    assert [turn[0].shape for turn in one] == [(1, 5, 32)] * 2
    np.testing.assert_array_equal(list(one)[1][0], list(other)[1][0])
