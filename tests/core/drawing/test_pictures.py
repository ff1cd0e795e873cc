"""What pictures show of a graph, and how they are written."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

from tract_core import Model
from tract_core.analysis.inference import InferenceModel
from tract_core.drawing import dot_of, inline_svg_of, picture_of, svg_of
from tract_core.drawing import picture as pictures
from tract_core.drawing.ink import width_of
from tract_core.drawing.picture import Arrow, Box, Picture
from tract_core.model import TypedModel
from tract_core.model.fact import InferenceFact
from tract_core.model.fact_text import parse_inference_fact, parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul
from tract_core.ops.if_then_else_wiring import wire_if

HOSTILE = '<script>&"\'\\N\\"]--></title>\u7bb1\x1b[2J\ufffe\u202e{}|'


def residual() -> TypedModel:
    """y = (x + 1) * x + w, with the sum read twice."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    one = model.add_const("one", np.ones((1, 1), np.float32))
    w = model.add_const("w", np.ones((1, 3), np.float32))
    (plus,) = model.wire_node("plus", Add(), [x, one])
    (product,) = model.wire_node("product", Mul(), [plus, x])
    (y,) = model.wire_node("y", Add(), [product, w])
    model.set_outputs([y, plus])
    return model


def branching() -> TypedModel:
    """A model with two bodies."""
    model = TypedModel()
    condition = model.add_source("c", parse_typed_fact("bool"))
    x = model.add_source("x", parse_typed_fact("2,f32"))
    bodies: list[TypedModel] = []
    for kind in (Add, Mul):
        body = TypedModel()
        inner = body.add_source("inner", parse_typed_fact("2,f32"))
        body.set_outputs(body.wire_node(kind.__name__.lower(), kind(), [inner, inner]))
        bodies.append(body)
    first, second = bodies
    model.set_outputs(wire_if(model, "choice", condition, (first, [x]), (second, [x])))
    return model


def test_constants_are_lines_in_the_boxes_of_their_readers() -> None:
    picture = picture_of(residual())
    titles = [(box.kind, box.title) for box in picture.boxes]
    assert titles == [
        ("input", "x"),
        ("node", "Add"),
        ("node", "Mul"),
        ("node", "Add"),
        ("output", "y"),
        ("output", "plus"),
    ]
    assert [box.notes for box in picture.boxes if box.kind == "node"] == [("1.0",), (), ("1,3,f32",)]
    shown = picture_of(residual(), constants=True)
    assert sum(box.kind == "constant" for box in shown.boxes) == 2
    assert all(not box.notes for box in shown.boxes)


def test_facts_are_at_the_first_arrow_of_each_tensor() -> None:
    picture = picture_of(residual())
    assert [(a.source, a.target, a.label) for a in picture.arrows] == [
        (0, 1, "B,3,f32"),
        (1, 2, "B,3,f32"),
        (0, 2, ""),
        (2, 3, "B,3,f32"),
        (3, 4, "B,3,f32"),
        (1, 5, ""),
    ]


def test_nothing_is_written_where_nothing_is_known() -> None:
    model = InferenceModel()
    x = model.add_source("x", InferenceFact())
    model.set_outputs([x, model.add_source("z", parse_inference_fact("3,_"))])
    assert [arrow.label for arrow in picture_of(model).arrows] == ["", "3,?,?"]


def test_some_nodes_only() -> None:
    model = residual()
    chosen = frozenset(node.id for node in model.nodes if node.name in ("product", "y"))
    picture = picture_of(model, only=chosen)
    assert [box.name for box in picture.boxes] == ["product", "y"]
    assert [(a.source, a.target) for a in picture.arrows] == [(0, 1)]


def test_bodies_are_pictures_of_their_own() -> None:
    picture = picture_of(branching())
    assert [(picture.boxes[owner].name, body.title) for owner, body in picture.bodies] == [
        ("choice", "body 0 of choice (IfThenElse)"),
        ("choice", "body 1 of choice (IfThenElse)"),
    ]
    assert picture.size == len(picture.boxes) + 6
    assert dot_of(picture).count("subgraph cluster_") == 2
    assert svg_of(picture).count("stroke-dasharray") == 2


def test_a_constant_that_is_an_output_is_drawn() -> None:
    model = TypedModel()
    model.set_outputs([model.add_const("k", np.zeros(3, np.float32))])
    assert [box.kind for box in picture_of(model).boxes] == ["constant", "output"]


def test_long_names_are_cut_in_the_middle_and_whole_under_the_pointer() -> None:
    model = TypedModel()
    name = "encoder/" * 20 + "last"
    model.set_outputs([model.add_source(name, parse_typed_fact("1,f32"))])
    (box, _) = picture_of(model).boxes
    assert len(box.title) == pictures.LONGEST
    assert box.title.startswith("encoder/")
    assert box.title.endswith("/last")
    assert name in box.tooltip


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    found = re.findall(r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"', svg)
    return [(float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in found]


def test_everything_is_inside_the_picture_and_apart() -> None:
    svg = svg_of(picture_of(residual()))
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = rectangles(svg)
    assert len(boxes) == 6
    for left, top, right, bottom in boxes:
        assert left >= 0
        assert top >= 0
        assert right + 32 <= width + 1
        assert bottom + 32 <= height + 1
    apart = [a for a in boxes for b in boxes if a != b and a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    assert not apart


def hostile() -> Picture:
    box = Box("node", HOSTILE, HOSTILE, (HOSTILE,), HOSTILE)
    inner = Picture(HOSTILE, (box,), ())
    return Picture(HOSTILE, (box, box), (Arrow(0, 1, 0, HOSTILE),), ((0, inner),))


def test_what_a_file_says_stays_text_in_svg() -> None:
    svg = svg_of(hostile())
    assert svg.isascii()
    assert "<script" not in svg
    assert "\x1b" not in svg
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert texts.count(HOSTILE.replace("\x1b", "\ufffd").replace("\ufffe", "\ufffd")) == 11
    assert "http" not in inline_svg_of(hostile())


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
@pytest.mark.parametrize("picture", [hostile(), picture_of(residual(), "m"), picture_of(branching(), "b")])
def test_graphviz_draws_what_is_written_for_it(picture: Picture) -> None:
    text = dot_of(picture)
    assert text.isascii()
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    drawn = done.stdout.decode()
    assert "<script" not in drawn
    groups = re.findall(r'class="(node|cluster)"', drawn)
    assert groups.count("node") == picture.size
    assert groups.count("cluster") == len(picture.bodies)


def test_a_text_without_graphviz() -> None:
    text = dot_of(hostile())
    for line in text.splitlines():
        bare = re.sub(r'"(?:\\.|[^"\\])*"|<(?:[^<>]|<[^<>]*>)*>', "", line)
        assert not re.search(r"script|\\", bare), line


def test_operators_keep_their_colours() -> None:
    fills = [re.findall(r'fill="(#\w+)" stroke', svg_of(picture_of(model))) for model in (residual(), residual())]
    assert fills[0] == fills[1]
    assert len(set(fills[0])) == 3


def test_widths_of_texts() -> None:
    assert width_of("", 10) == 0
    assert width_of("iii", 10) < width_of("aaa", 10) < width_of("WWW", 10) < width_of("\u7bb1" * 3, 10) + 1
    assert width_of("aaa", 20) == 2 * width_of("aaa", 10)


def test_notebooks_show_the_graph() -> None:
    html = Model.from_typed(residual())._repr_html_()
    assert html.count("<svg") == 1
    assert "<b>" in html
    assert "http" not in html
    chain = TypedModel()
    outlet = chain.add_source("x", parse_typed_fact("1,f32"))
    for number in range(400):
        (outlet,) = chain.wire_node(f"n{number}", Add(), [outlet, outlet])
    chain.set_outputs([OutletId(outlet.node, outlet.slot)])
    assert "<svg" not in Model.from_typed(chain)._repr_html_()
