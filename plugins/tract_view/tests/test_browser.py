"""The page in headless Chromium: what users see and do. Run by ``make test-view``."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from tract_view import page_of
from tract_view.constants import ConstantTable
from tract_view.document import Document, document_of
from tract_view.entries import entries_of
from tract_view.page import whole_html
from tract_view.server import PageServer
from tract_view.snapshots import Snapshot
from viewed_models import chain, flat, layers, named, saved

import tract_core
from tract_core import Model
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import running_sums

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM") or which("chromium") or "/usr/bin/chromium"

OVERLAPS = """() => {
  const { space } = TractView.app.active;
  const found = [];
  const look = (group) => {
    const boxes = space.inside(group).boxes;
    for (let a = 0; a < boxes.length; a++) {
      for (let b = a + 1; b < boxes.length; b++) {
        const [one, other] = [boxes[a], boxes[b]];
        const across = Math.abs(one.x - other.x) - (one.w + other.w) / 2;
        const down = Math.abs(one.y - other.y) - (one.h + other.h) / 2;
        if (Math.max(across, down) < -1.5) found.push([group, a, b]);
      }
    }
    for (const { box } of boxes) if (box.kind === "group" && space.isOpen(box.number)) look(box.number);
  };
  look(0);
  return found;
}"""
"""Pairs of boxes of one group that are over each other."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class Seen:
    """A page that is shown, and what went on in it: errors, requests, dialogs."""

    def __init__(self, browser: Any, url: str) -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 900})
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(url)
        self.page.wait_for_selector("html[data-ready=yes]")

    def ask(self, expression: str) -> Any:
        found = self.page.evaluate(expression)
        self.page.wait_for_timeout(50)
        return found

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def choose(self, name: str) -> None:
        """Go to the node of that name."""
        self.ask(
            "(({ app }) => app.goTo(app.active, 'entry', "
            f"app.active.space.stage.named({json.dumps(name)})))(TractView)"
        )

    def ended_well(self) -> bool:
        self.page.close()
        return (self.errors, self.dialogs) == ([], [])


def in_file(browser: Any, folder: Path, html: str) -> Seen:
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    return Seen(browser, path.as_uri())


def document(*names: str) -> Document:
    constants = ConstantTable()
    return document_of("model", [Snapshot("load", tuple(entries_of(chain(*names), constants)), {})], constants)


@pytest.fixture(scope="module")
def runnable(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tract_core.load(saved(tmp_path_factory.mktemp("m"), layers(6, named))).into_runnable("reference")


@pytest.fixture
def profiled(browser: Any, tmp_path: Path, runnable: Any) -> Iterator[Seen]:
    seen = in_file(browser, tmp_path, page_of(runnable, [np.ones((2, 4), np.float32)], title="layered"))
    yield seen
    assert seen.ended_well()


def test_a_profiled_model_opens_with_the_time_of_each_group(profiled: Seen) -> None:
    assert profiled.text("#title") == "layered"
    assert profiled.page.input_value("#colours") == "time"
    assert "a turn on reference" in profiled.text("#whole")
    shares = profiled.ask("TractView.app.active.space.stage.times.groups.map((one) => one[0])")
    assert shares[0] == pytest.approx(
        sum(part[2] for part in profiled.ask("TractView.app.active.space.stage.times.parts"))
    )
    assert profiled.requests[1:] == []


def test_a_click_tells_all_of_a_node(profiled: Seen) -> None:
    profiled.choose("/model/layers.2/attn/MatMul_0")
    told = profiled.text("#details")
    for part in (
        "/model/layers.2/attn/MatMul_0",
        "EinSum",
        "axes",
        "time, measured on reference",
        "numpy",
        "constant w_2_0",
    ):
        assert part in told
    assert "16 elements, 64 bytes" in told
    assert profiled.page.locator("#details svg.bars rect").count() == 32
    assert "2,4" not in told  # the size is a symbol
    assert "N,4,f32" in told


def test_a_trail_is_what_a_tensor_comes_from_and_goes_to(profiled: Seen, runnable: Any) -> None:
    profiled.choose("/model/layers.3/attn/Mul_2")
    profiled.page.click("text=Trail: what it comes from and goes to")
    up, down = profiled.ask(
        "[TractView.app.active.look.trail.up, TractView.app.active.look.trail.down].map((side) => side.entries.size)"
    )
    entries = entries_of(runnable.typed, ConstantTable())
    start = next(number for number, entry in enumerate(entries) if entry.name == "/model/layers.3/attn/Mul_2")
    before, after = {start}, {start}
    for number in range(start, -1, -1):
        before |= {source for source, _, _ in entries[number].inputs} if number in before else set()
    for number in range(start, len(entries)):
        after |= {number} if any(source in after for source, _, _ in entries[number].inputs) else set()
    assert (up, down) == (len(before), len(after))
    assert f"comes from {up - 1} entries (blue), goes to {down - 1} (orange)" in profiled.text("#details")


def test_a_search_finds_names_operators_and_facts(profiled: Seen) -> None:
    profiled.page.keyboard.press("/")
    profiled.page.keyboard.type("layers.4 SIGMOID")
    assert profiled.text("#found").splitlines()[0] == "1 found"
    profiled.page.keyboard.press("Enter")
    assert profiled.text("#details h2") == "/model/layers.4/attn/Sigmoid_4"
    profiled.page.fill("#search", "n,4,f32")
    assert profiled.text("#found").splitlines()[0].startswith("62 found")
    profiled.page.fill("#search", "nowhere")
    assert profiled.text("#found") == "0 found"


def test_stages_side_by_side(browser: Any, tmp_path: Path) -> None:
    """``b`` is gone from the second stage, ``c`` has another input there, and ``d`` is new."""
    constants = ConstantTable()
    stages = [
        Snapshot(name, tuple(entries_of(chain(*nodes), constants)), {})
        for name, nodes in (("before", "abc"), ("after", "acd"))
    ]
    seen = in_file(browser, tmp_path, whole_html(document_of("model", stages, constants)))
    seen.page.check("#beside")
    seen.page.wait_for_selector(".pane + .pane .bar span:not(:empty)")
    assert [seen.ask(f"TractView.app.panes[{one}].select.value") for one in (0, 1)] == ["1", "0"]
    assert seen.ask("TractView.app.panes[0].note.textContent") == "1 not in before, 2 changed, 3 the same"
    assert seen.ask("TractView.app.panes[1].note.textContent") == "1 not in after, 2 changed, 3 the same"
    seen.choose("c")
    assert seen.ask("TractView.app.panes[1].look.chosen.number") == seen.ask(
        "TractView.app.panes[1].space.stage.named('c')"
    )
    assert "in before" in seen.text("#details")
    seen.page.uncheck("#beside")
    assert seen.ask("TractView.app.panes.length") == 1
    assert seen.ended_well()


@pytest.mark.parametrize("naming", [named, flat])
def test_five_thousand_nodes(browser: Any, tmp_path: Path, naming: Any) -> None:
    """They open as some boxes; what is drawn is what is in sight, however much is open."""
    model = tract_core.load(saved(tmp_path, layers(500, naming)))
    seen = in_file(browser, tmp_path, page_of(model))
    assert seen.ask("TractView.app.active.space.stage.count") >= 5002
    assert seen.ask("TractView.app.active.drawn") < 40
    seen.page.click("#open-all")
    seen.page.wait_for_timeout(300)
    assert seen.ask(OVERLAPS) == []
    seen.choose(naming(250, 3, "Add"))
    assert 3 < seen.ask("TractView.app.active.drawn") < 200
    middle = seen.ask("[TractView.app.active.view.x, TractView.app.active.view.y]")
    seen.page.mouse.move(700, 500)
    seen.page.mouse.down()
    seen.page.mouse.move(600, 400, steps=5)
    seen.page.mouse.up()
    moved = seen.ask("[TractView.app.active.view.x, TractView.app.active.view.y]")
    assert [one - other for one, other in zip(middle, moved, strict=True)] == pytest.approx([100, 100])
    assert seen.ended_well()


def test_groups_open_and_close_without_boxes_over_each_other(profiled: Seen) -> None:
    random = np.random.default_rng(0)
    count = profiled.ask("TractView.app.active.space.stage.groups.length")
    for _ in range(60):
        group = int(random.integers(1, count))
        profiled.ask(f"TractView.app.active.space.find('group', {group}) && TractView.app.active.toggle({group})")
        assert profiled.ask(OVERLAPS) == []


def test_a_double_click_opens_the_group_that_is_there(profiled: Seen) -> None:
    profiled.page.click("#close-all")
    place = profiled.ask("""() => {
      const { space, view, canvas } = TractView.app.active;
      const found = space.find('group', space.stage.groupNamed('model/layers/3'));
      const frame = canvas.getBoundingClientRect();
      return [frame.left + view.x + found.x * view.scale, frame.top + view.y + found.y * view.scale];
    }""")
    profiled.page.mouse.dblclick(*place)
    assert profiled.ask(
        "TractView.app.active.space.isOpen(TractView.app.active.space.stage.groupNamed('model/layers/3'))"
    )
    assert profiled.text("#details h2") == "model/layers/3"


def test_a_body_opens(browser: Any, tmp_path: Path) -> None:
    runnable = Model.from_typed(running_sums(default_registry())).into_runnable("reference")
    seen = in_file(browser, tmp_path, page_of(runnable, [np.ones((9, 2), np.float32), np.zeros((1, 2), np.float32)]))
    seen.choose("sums")
    assert "Scan" in seen.text("#details")
    assert seen.ended_well()


HOSTILE = (
    '</script><img src=x onerror="window.hacked=1;alert(1)">',
    "<svg onload=alert(2)>",
    "'\"><iframe src=javascript:alert(3)>",
    "__proto__",
    "constructor",
    "/a/<b onmouseover=alert(4)>/c",
)


def through(seen: Seen) -> None:
    """Look at everything that shows a text of the model."""
    seen.ask("TractView.app.openAll(true)")
    for number in range(seen.ask("TractView.app.active.space.stage.count")):
        seen.ask(f"TractView.app.goTo(TractView.app.active, 'entry', {number})")
    for number in range(1, seen.ask("TractView.app.active.space.stage.groups.length")):
        seen.ask(f"TractView.app.choose(TractView.app.active, {{kind: 'group', number: {number}}})")
    seen.page.fill("#search", "<")
    strange = "img, iframe, b, script:not([src]):not([nonce]):not([type])"
    assert seen.ask(f"window.hacked === undefined && document.querySelectorAll('{strange}').length === 0")


def test_names_never_run_in_a_file(browser: Any, tmp_path: Path) -> None:
    seen = in_file(browser, tmp_path, whole_html(document(*HOSTILE)))
    through(seen)
    assert seen.ended_well()


def test_names_never_run_where_they_are_served(browser: Any) -> None:
    with PageServer(document(*HOSTILE)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        seen = Seen(browser, server.url)
        through(seen)
        assert all(url.startswith(server.url) for url in seen.requests)
        assert seen.ended_well()
        server.shutdown()
        thread.join()


def test_a_script_that_came_in_would_not_run(browser: Any, tmp_path: Path) -> None:
    """Were there ever a hole, the policy of the page is behind it."""
    seen = in_file(browser, tmp_path, whole_html(document("a")))
    seen.ask("""() => {
      const made = document.createElement('script');
      made.textContent = 'window.hacked = 1';
      document.body.append(made);
      const frame = document.createElement('div');
      frame.innerHTML = '<img src=x onerror="window.hacked = 2">';
      document.body.append(frame);
    }""")
    seen.page.wait_for_timeout(200)
    assert seen.ask("window.hacked === undefined")
    assert any("Content Security Policy" in error for error in seen.errors)
    seen.page.close()


def test_a_page_whose_server_has_gone_says_so(browser: Any) -> None:
    with PageServer(document("a")) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        del server.answers["summary.json"]
        page = browser.new_page()
        page.goto(server.url)
        page.wait_for_selector("#remarks:not([hidden])")
        assert "The page cannot show the model: summary: 404" in page.inner_text("#remarks")
        page.close()
        server.shutdown()
        thread.join()
