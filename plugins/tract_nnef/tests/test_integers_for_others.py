"""Products of integers, and coordinates from the end, in archives for engines that compute neither."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import established
import numpy as np
import pytest
from cycles import INTERCHANGE, text
from established import interchange
from tract_nnef.documents.saver import NnefWriter

import tract_core as tract
from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.deconv import Deconv
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import GatherNd
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput
from tract_core.ops.scatter import ScatterNd

Array = np.ndarray[Any, Any]

KINDS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
SUMS = {
    "mk,kn->mn": (0, 1, 2, 5),
    "bmk,bnk->nbm": (1, 3),
    "k,k->": (0, 1, 7),
    "jk->j": (3,),
    "j,k->kj": (0, 3),
    "ik,kl,lj->ij": (2,),
}
"""Sums of products, and which sizes k takes."""
OTHERS = {"m": 3, "n": 2, "b": 2, "j": 4, "i": 2, "l": 3}
CASES = [(expression, size) for expression, sizes in SUMS.items() for size in sizes]


def model_of(op: TypedOp, *facts: str) -> TypedModel:
    model = TypedModel()
    inputs = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


def written(model: TypedModel, folder: Path) -> Path:
    path = folder / "m.nnef.tar"
    path.write_bytes(NnefWriter(how=INTERCHANGE).to_tar(model))
    return path


def computed(path: Path, given: list[Array]) -> list[Array]:
    """What an archive gives on each runtime."""
    models = [(name, tract.load(path)) for name in ("reference", "cpu")]
    return [np.asarray(tract.runtime_for_name(name).prepare(model).run(given)[0]) for name, model in models]


def product(expression: str, size: int, kind: str) -> tuple[TypedModel, list[Array], Array]:
    """A sum of products where k is symbolic, integers of the whole type, and the last bits of their exact sum."""
    type_, source = DatumType.parse(kind).numpy, random.Random(f"{expression} {size} {kind}")
    ends = np.iinfo(type_)

    def drawn(*_: int) -> int:
        return source.choice([int(ends.min), int(ends.max), 1, 3, source.randint(int(ends.min), int(ends.max))])

    terms, output = expression.split("->")
    shapes = [[size if name == "k" else OTHERS[name] for name in term] for term in terms.split(",")]
    arrays = [np.array([drawn() for _ in range(int(np.prod(shape)))], object).reshape(shape) for shape in shapes]
    exact = np.asarray(np.einsum(expression, *arrays), object)
    wanted = np.array([one % 2**ends.bits for one in exact.reshape(-1)], f"u{ends.bits // 8}").astype(type_)
    facts = [
        ",".join(["K" if name == "k" else str(OTHERS[name]) for name in term] + [kind]) for term in terms.split(",")
    ]
    model = model_of(EinSum(AxesMapping.parse(expression), DatumType.parse(kind)), *facts)
    shape = [size if name == "k" else OTHERS[name] for name in output]
    return model, [one.astype(type_) for one in arrays], wanted.reshape(shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("expression", "size"), CASES)
def test_products_of_integers(expression: str, size: int, kind: str, tmp_path: Path) -> None:
    model, given, wanted = product(expression, size, kind)
    for found in computed(written(model, tmp_path), given):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@interchange
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("expression", "size"), CASES)
def test_products_of_integers_there(expression: str, size: int, kind: str, tmp_path: Path) -> None:
    model, given, wanted = product(expression, size, kind)
    path = written(model, tmp_path)
    if not size and expression == "mk,kn->mn" and kind in ("i64", "u64"):
        with pytest.raises(established.Refused, match="IntoShape"):  # its loops without iterations have no result
            established.run(path, given)
        return
    (found,) = established.run(path, given)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["i8", "i32"])
def test_what_the_engine_computes_stays(kind: str) -> None:
    model, _, _ = product("mk,kn->mn", 2, kind)
    assert f'y = tract_core_einsum([x0, x1], expr = "mk,kn->mn", acc = "{kind}", ' in text(model, how=INTERCHANGE)


def test_what_no_engine_computes_is_refused() -> None:
    diagonal = model_of(EinSum(AxesMapping.parse("ii->i"), DatumType.I64), "3,3,i64")
    with pytest.raises(tract.errors.Unwritable, match="EinSum ii->i of i64 is computed by no other engine"):
        text(diagonal, how=INTERCHANGE)
    deconv = model_of(Deconv(PoolSpec(DataFormat.NCHW, (2,))), "1,2,5,i64", "3,2,2,i64", "3,i64")
    with pytest.raises(tract.errors.Unwritable, match="Deconv of i64 is computed by no other engine"):
        text(deconv, how=INTERCHANGE)


X = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
COORDINATES = {
    "one": (GatherNd(0), [[-1], [0], [-2]]),
    "two": (GatherNd(0), [[-1, -5], [1, 4]]),
    "three": (GatherNd(0), [[-2, -1, -3]]),
    "in a batch": (GatherNd(1), [[[-1], [2]], [[-5], [4]]]),
    "from the start": (GatherNd(0), [[1, 4]]),
    "written": (ScatterNd(), [[-1, -5], [1, 4]]),
    "none": (GatherNd(0), np.zeros((0, 2))),
}


def of_coordinates(name: str, *, known: bool) -> tuple[TypedModel, list[Array], Array]:
    op, places = COORDINATES[name]
    indices = np.array(places, np.int64)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,T,3,f32", model.symbols))
    fact = ",".join([*map(str, indices.shape), "i64"])
    where = model.add_const("at", indices) if known else model.add_source("at", parse_typed_fact(fact))
    given = [X] if known else [X, indices]
    if isinstance(op, GatherNd):
        model.set_outputs(model.wire_node("y", op, [x, where]))
        if op.batch_dims:
            return model, given, np.stack([X[i][tuple(one.T)] for i, one in enumerate(indices)])
        return model, given, X[tuple(indices.T)]
    new = np.full((len(indices), 3), -7, np.float32)
    model.set_outputs(model.wire_node("y", op, [x, where, model.add_const("new", new)]))
    wanted = X.copy()
    wanted[tuple(indices.T)] = new
    return model, given, wanted


@pytest.mark.parametrize("known", [False, True], ids=["computed", "known"])
@pytest.mark.parametrize("name", COORDINATES)
def test_coordinates_from_the_end(name: str, known: bool, tmp_path: Path) -> None:
    model, given, wanted = of_coordinates(name, known=known)
    for found in computed(written(model, tmp_path), given):
        np.testing.assert_array_equal(found, wanted)


@interchange
@pytest.mark.parametrize("known", [False, True], ids=["computed", "known"])
@pytest.mark.parametrize("name", COORDINATES)
def test_coordinates_from_the_end_there(name: str, known: bool, tmp_path: Path) -> None:
    model, given, wanted = of_coordinates(name, known=known)
    (found,) = established.run(written(model, tmp_path), given)
    np.testing.assert_array_equal(found, wanted)


def test_coordinates_in_a_body(tmp_path: Path) -> None:
    """A body is written as any model is."""
    body = TypedModel()
    row = body.add_source("row", parse_typed_fact("1,5,f32"))
    body.set_outputs(body.wire_node("z", GatherNd(0), [row, body.add_const("at", np.array([[[0, -1], [-1, 2]]]))]))
    model = model_of(Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),)), "4,5,f32")
    assert "[-1," not in text(model, how=INTERCHANGE)
    rows = np.arange(20, dtype=np.float32).reshape(4, 5)
    for found in computed(written(model, tmp_path), [rows]):
        np.testing.assert_array_equal(found, rows[:, [4, 2]])
