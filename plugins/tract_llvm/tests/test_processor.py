"""What is known of the processor of this machine, and how systems say it."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from tract_llvm.isa import ISAS
from tract_llvm.llvm import binding
from tract_llvm.processor import ARM_FEATURES, FAST_BF16, features, features_by_bits, features_by_name, lengths_of_sve

on_x86 = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="so does Linux on x86-64 only"
)


@on_x86
def test_features_are_those_that_llvm_finds() -> None:
    wanted = {name for isa in ISAS for name in isa.needs} - {FAST_BF16}
    by_llvm = dict(binding().get_host_cpu_features())
    assert {name: features().get(name, False) for name in wanted} == {name: by_llvm.get(name, False) for name in wanted}


@on_x86
def test_where_the_system_lists_no_features_llvm_is_asked(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n")
    by_llvm, name = dict(binding().get_host_cpu_features()), binding().get_host_cpu_name()
    for path in ("cpuinfo", "none"):
        assert features(tmp_path / path) == {**by_llvm, FAST_BF16: name.startswith("znver")}


@on_x86
def test_features_have_the_names_of_llvm(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nflags\t\t: fpu avx2 avx512_vnni\n\nflags\t\t: more\n")
    assert features(path) == {"fpu": True, "avx2": True, "avx512vnni": True, FAST_BF16: False}
    path.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu\n")
    assert features(path) == {"fpu": True, FAST_BF16: True}


@on_x86
@pytest.mark.parametrize("gives", [False, True])
def test_tiles_are_there_where_the_system_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives: bool
) -> None:
    monkeypatch.setattr("tract_llvm.processor.gives_tiles", lambda: gives)
    path = tmp_path / "cpuinfo"
    path.write_text("vendor_id\t: GenuineIntel\nflags\t\t: fpu amx_tile amx_int8 amx_bf16\n")
    found = {name for name, has in features(path).items() if has}
    assert found == {"fpu"} | ({"amx-tile", "amx-int8", "amx-bf16"} if gives else set())


@on_x86
def test_processors_of_the_newest_kind_are_asked_by_llvm(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("flags\t\t: fpu avx512_fp16 avx_vnni_int8\n")
    tiles = {"amx-tile", "amx-int8", "amx-bf16"}
    assert features(path).keys() >= dict(binding().get_host_cpu_features()).keys() - tiles


@pytest.mark.skipif(platform.machine() != "aarch64" or sys.platform != "linux", reason="it is Linux's on ARM")
def test_features_of_arm_are_those_of_the_processor() -> None:
    """That of this test run has a name where it is emulated."""
    most = {"dotprod", "i8mm", "bf16"}
    known = {
        "cortex-a72": set[str](),
        "neoverse-n1": {"dotprod"},
        "max,sve=off": most,
        "max,sve-default-vector-length=32": {*most, "sve", "sve-i8mm", "sve-bf16", "sve-of-256"},
        "a64fx": {"sve", "sve-of-512"},
    }
    found = {name for name, has in features().items() if has}
    assert found == known.get(os.environ.get("ARM_CPU", ""), found)
    assert {name for name in found if not name.startswith("sve-of-")} <= ARM_FEATURES.keys()


def test_every_feature_that_sets_for_arm_need_is_asked_for() -> None:
    needed = {name for isa in ISAS if isa.architecture == "aarch64" for name in isa.needs}
    assert ARM_FEATURES.keys() == {name for name in needed if not name.startswith("sve-of-")}


@pytest.mark.parametrize(
    ("said", "lengths"),
    [(16, {"sve-of-128"}), (32, {"sve-of-256"}), (1 << 17 | 64, {"sve-of-512"}), (256, {"sve-of-2048"}), (-1, set())],
    ids=str,
)
def test_linux_says_how_long_registers_of_sve_are(said: int, lengths: set[str]) -> None:
    """In bytes, among flags; or that it does not know."""

    def prctl(option: Any, *others: Any) -> int:
        assert (option.value, [one.value for one in others]) == (51, [0] * 4)
        return said

    assert lengths_of_sve({"sve": True}, prctl) == dict.fromkeys(lengths, True)


def test_nobody_asks_how_long_registers_are_that_are_not_there() -> None:
    assert lengths_of_sve({"sve": False}, None) == {}


@pytest.mark.parametrize("name", ARM_FEATURES)
def test_linux_says_it_by_bits(name: str) -> None:
    one = ARM_FEATURES[name]
    found = features_by_bits(lambda vector: (vector.value == one.vector) << one.bit)
    assert found == {other: other == name for other in ARM_FEATURES}


@pytest.mark.parametrize("name", ARM_FEATURES)
def test_apple_says_it_by_name(name: str) -> None:
    """0 or 1, or that it does not know the name."""

    def sysctlbyname(asked: bytes, found: Any, size: Any, _: None, __: Any) -> int:
        place = ctypes.cast(found, ctypes.POINTER(ctypes.c_int))
        length = ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t))
        assert length[0] == ctypes.sizeof(ctypes.c_int)
        place[0] = asked == f"hw.optional.arm.{ARM_FEATURES[name].apple}".encode()
        return -1 if asked.endswith(b"BF16") and not name.endswith("bf16") else 0

    assert features_by_name(sysctlbyname) == {other: other == name for other in ARM_FEATURES}
