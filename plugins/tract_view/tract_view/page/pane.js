// One picture of one stage: what the pointer and the keys do to it.
"use strict";

(() => {
  const LEAST = 0.004;
  const MOST = 6;

  function element(kind, name, parent) {
    const made = document.createElement(kind);
    if (name) made.className = name;
    if (parent) parent.append(made);
    return made;
  }

  class Pane {
    // `app`: told what is chosen, and asked for stages and for how things look.
    constructor(app, parent) {
      this.app = app;
      this.root = element("section", "pane", parent);
      const bar = element("div", "bar", this.root);
      const label = element("label", "", bar);
      label.append("Stage ");
      this.select = element("select", "", label);
      app.summary.stages.forEach((stage, number) => {
        const option = element("option", "", this.select);
        option.value = String(number);
        option.textContent = `${stage.name} (${stage.nodes} nodes)`;
      });
      this.note = element("span", "faint", bar);
      this.space = null;
      const space = element("div", "space", this.root);
      this.canvas = element("canvas", "graph", space);
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("aria-label", "The graph; the list on the left shows the same");
      this.context = this.canvas.getContext("2d", { alpha: false });
      this.view = { scale: 1, x: 0, y: 0 };
      this.look = { trail: null, chosen: null, colours: "operator", differences: null, changedGroups: new Map(), kernels: new Map() };
      this.listen();
    }

    listen() {
      const { canvas } = this;
      this.select.addEventListener("change", () => this.app.showStage(this, Number(this.select.value)));
      canvas.addEventListener("pointerdown", (event) => this.grab(event));
      canvas.addEventListener("dblclick", (event) => this.doubled(event));
      canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
      canvas.addEventListener("keydown", (event) => this.pressed(event));
      new ResizeObserver(() => this.redraw()).observe(canvas);
    }

    get size() { return [this.canvas.clientWidth, this.canvas.clientHeight]; }

    show(stage) {
      const first = this.space === null;
      this.space = new TractView.Space(stage);
      this.look.chosen = null;
      this.look.trail = null;
      if (stage.count <= 60) this.space.openAll(true);
      this.openOnlyGroup();
      this.fit(first);
    }

    // Where all nodes are in one group, or nearly, that one is opened.
    openOnlyGroup() {
      const { stage } = this.space;
      for (let at = 0; ;) {
        const inner = stage.placed[at].boxes.filter((box) => box.kind === "group");
        const nodes = stage.placed[at].boxes.filter((box) => box.kind === "entry" && stage.kind(box.number) === "node");
        if (inner.length !== 1 || nodes.length > 3) return;
        at = inner[0].number;
        this.space.toggle(at, true);
      }
    }

    // Show all of it; `readable`: no smaller than can be read, from its top.
    fit(readable) {
      const inner = this.space.inside(0);
      const [width, height] = this.size;
      const whole = Math.min((width - 40) / inner.width, (height - 40) / inner.height, 1.25);
      const scale = Math.max(LEAST, readable ? Math.max(whole, Math.min(0.55, (width - 40) / inner.width)) : whole);
      const high = inner.height * scale + 40 > height;
      this.view = { scale, x: (width - inner.width * scale) / 2, y: high && readable ? 20 : (height - inner.height * scale) / 2 };
      this.redraw();
    }

    redraw() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.drawNow();
      });
    }

    drawNow() {
      if (this.space === null) return;
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = this.size;
      const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
      if (this.canvas.width !== wanted[0] || this.canvas.height !== wanted[1]) [this.canvas.width, this.canvas.height] = wanted;
      const drawing = new TractView.Drawing(this.context, this.space, this.look);
      drawing.draw(this.view, [width, height], ratio);
      this.drawn = drawing.drawn;
    }

    toPicture(event) {
      const frame = this.canvas.getBoundingClientRect();
      return [(event.clientX - frame.left - this.view.x) / this.view.scale, (event.clientY - frame.top - this.view.y) / this.view.scale];
    }

    grab(event) {
      if (event.button !== 0) return;
      const { canvas, view } = this;
      const begin = { x: event.clientX, y: event.clientY, viewX: view.x, viewY: view.y, moved: false };
      canvas.setPointerCapture(event.pointerId);
      const move = (next) => {
        const [dx, dy] = [next.clientX - begin.x, next.clientY - begin.y];
        begin.moved = begin.moved || Math.abs(dx) + Math.abs(dy) > 4;
        if (!begin.moved) return;
        canvas.classList.add("moving");
        this.view.x = begin.viewX + dx;
        this.view.y = begin.viewY + dy;
        this.redraw();
      };
      const end = (last) => {
        canvas.removeEventListener("pointermove", move);
        canvas.classList.remove("moving");
        if (!begin.moved && last.type === "pointerup") this.clicked(last);
      };
      canvas.addEventListener("pointermove", move);
      canvas.addEventListener("pointerup", end, { once: true });
      canvas.addEventListener("pointercancel", end, { once: true });
    }

    clicked(event) {
      const [x, y] = this.toPicture(event);
      const found = this.space.at(x, y);
      if (found === null) {
        this.app.choose(this, null);
        return;
      }
      const { kind, number } = found.box;
      const sign = kind === "group" && this.onSign(found, x, y);
      if (sign) this.toggle(number);
      else if (kind === "in" || kind === "out") this.app.choose(this, number === -1 ? null : { kind: "entry", number });
      else this.app.choose(this, { kind, number });
    }

    // Whether a point is where a group has its plus or minus.
    onSign(found, x, y) {
      const open = this.space.isOpen(found.box.number);
      const [left, top] = [found.x - found.w / 2, found.y - found.h / 2];
      return open ? x < left + 24 && y < top + TractView.HEAD - 8 : false;
    }

    doubled(event) {
      const found = this.space.at(...this.toPicture(event));
      if (found !== null && found.box.kind === "group") this.toggle(found.box.number);
    }

    // Open or close a group, which stays where it is on the screen.
    toggle(group) {
      const corner = () => {
        const found = this.space.find("group", group);
        return [found.x, found.y - found.h / 2];
      };
      const before = corner();
      this.space.toggle(group, !this.space.isOpen(group));
      const after = corner();
      this.view.x += (before[0] - after[0]) * this.view.scale;
      this.view.y += (before[1] - after[1]) * this.view.scale;
      this.app.toggled(this);
      this.redraw();
    }

    wheeled(event) {
      event.preventDefault();
      if (event.ctrlKey || !event.shiftKey) {
        const frame = this.canvas.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), event.clientX - frame.left, event.clientY - frame.top);
      } else {
        this.view.x -= event.deltaX + event.deltaY;
        this.redraw();
      }
    }

    zoom(factor, x, y) {
      const { view } = this;
      const scale = Math.max(LEAST, Math.min(MOST, view.scale * factor));
      view.x = x - ((x - view.x) * scale) / view.scale;
      view.y = y - ((y - view.y) * scale) / view.scale;
      view.scale = scale;
      this.redraw();
    }

    pressed(event) {
      const [width, height] = this.size;
      const { chosen } = this.look;
      const keys = {
        ArrowLeft: () => { this.view.x += 60; }, ArrowRight: () => { this.view.x -= 60; },
        ArrowUp: () => { this.view.y += 60; }, ArrowDown: () => { this.view.y -= 60; },
        "+": () => this.zoom(1.25, width / 2, height / 2), "-": () => this.zoom(0.8, width / 2, height / 2),
        f: () => this.fit(false), Escape: () => this.app.choose(this, null),
        Enter: () => { if (chosen !== null && chosen.kind === "group") this.toggle(chosen.number); },
      };
      if (keys[event.key] === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
      this.redraw();
    }

    // Bring an entry or a group to the middle, with all around it open.
    goTo(kind, number) {
      this.space.reveal(kind, number);
      const found = this.space.find(kind, number);
      if (found === null) return;
      const [width, height] = this.size;
      const scale = Math.min(MOST, Math.max(this.view.scale, 0.7, 0));
      const top = kind === "group" && found.h * scale > height ? found.y - found.h / 2 + height / scale / 2 - 20 : found.y;
      this.view = { scale, x: width / 2 - found.x * scale, y: height / 2 - top * scale };
      this.app.toggled(this);
      this.redraw();
    }
  }

  Object.assign(TractView, { Pane, element });
})();
