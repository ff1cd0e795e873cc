// What is said of whatever was chosen. Texts of the model are only ever shown as text.
"use strict";

(() => {
  const { element } = TractView;
  const MOST = 40;

  function line(parent, text, name = "") {
    const made = element("p", name, parent);
    made.textContent = text;
    return made;
  }

  function title(parent, text) { element("h3", "", parent).textContent = text; }

  function link(parent, text, action) {
    const made = element("button", "link", parent);
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  }

  function table(parent, rows) {
    const made = element("table", "", parent);
    for (const [name, value] of rows) {
      const row = element("tr", "", made);
      element("td", "", row).textContent = name;
      element("code", "", element("td", "", row)).textContent = value;
    }
  }

  function number(value) { return Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(3) : String(Number(value.toPrecision(5))); }

  function bytes(count) {
    for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (count >= factor) return `${(count / factor).toFixed(1)} ${unit}`;
    return `${count} bytes`;
  }

  const SVG = "http://www.w3.org/2000/svg";

  function histogram(parent, bars) {
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("class", "bars");
    picture.setAttribute("viewBox", `0 0 ${bars.length} 100`);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    const most = Math.max(...bars);
    bars.forEach((count, place) => {
      const bar = document.createElementNS(SVG, "rect");
      const height = count === 0 ? 0 : Math.max(2, (100 * count) / most);
      for (const [name, value] of Object.entries({ x: place + 0.06, y: 100 - height, width: 0.88, height })) bar.setAttribute(name, value);
      const said = document.createElementNS(SVG, "title");
      said.textContent = `${count}`;
      bar.append(said);
      picture.append(bar);
    });
    parent.append(picture);
  }

  class Details {
    constructor(app, root) {
      this.app = app;
      this.root = root;
    }

    show(pane) {
      this.root.replaceChildren();
      this.pane = pane;
      this.stage = pane.space.stage;
      const { chosen } = pane.look;
      if (chosen === null) this.ofModel();
      else if (chosen.kind === "group") this.ofGroup(chosen.number);
      else this.ofEntry(chosen.number);
      this.root.scrollTop = 0;
    }

    go(entry) { this.app.goTo(this.pane, "entry", entry); }

    ofModel() {
      const { stage, root } = this;
      element("h2", "", root).textContent = this.app.summary.title;
      line(root, `stage ${stage.name}: ${this.app.summary.stages[this.app.stageNumber(this.pane)].nodes} nodes`, "faint");
      for (const kind of ["input", "output"]) {
        title(root, `${kind}s`);
        this.someEntries(Array.from({ length: stage.count }, (_, entry) => entry)
          .filter((entry) => stage.kind(entry) === kind && stage.around(entry) === -1), (entry) => stage.facts(entry).join(" "));
      }
      if (stage.times !== null) this.slowest();
      if (stage.placings.size > 0) this.kernels();
      title(root, "What the keys and the pointer do");
      line(root, "Double-click or Enter opens and closes a group. The wheel zooms, dragging moves, F shows all, / searches, Esc lets go.", "faint");
    }

    slowest() {
      const { stage, root } = this;
      title(root, `time, measured on ${stage.times.runtime}`);
      line(root, `${TractView.time(stage.times.turn)} a turn (median); ${TractView.time(stage.times.nodes)} in all nodes where each is timed by itself, which takes longer`, "faint");
      const parts = [...new Map([...stage.partOf.values()].map((part) => [part.number, part])).values()];
      const shown = parts.filter((part) => stage.around(part.main) === -1).sort((a, b) => b.seconds - a.seconds);
      for (const part of shown.slice(0, 12)) {
        const box = element("div", "wire", root);
        const more = part.entries.length > 1 ? ` and ${part.entries.length - 1} more` : "";
        link(box, `${TractView.time(part.seconds)}  ${stage.nameOf(part.main)}${more}`, () => this.go(part.main));
        this.bar(box, part.seconds / (stage.times.nodes || 1));
      }
    }

    kernels() {
      const { stage, root } = this;
      const counts = new Map();
      for (const { how, where } of stage.placings.values()) counts.set(`${how} on ${where}`, (counts.get(`${how} on ${where}`) || 0) + 1);
      title(root, "what computes the nodes");
      table(root, [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([how, count]) => [how, `${count} nodes`]));
    }

    bar(parent, share) {
      const part = element("div", "", element("div", "bar", parent));
      part.style.width = `${(100 * Math.min(1, share)).toFixed(1)}%`;
    }

    ofGroup(group) {
      const { stage, root } = this;
      const one = stage.groups[group];
      element("h2", "", root).textContent = one.name || one.title;
      line(root, one.body >= 0 ? `${one.count} nodes in the body of ${stage.op(one.body)}` : `a group of ${one.count} nodes`, "faint");
      link(root, this.pane.space.isOpen(group) ? "close it" : "open it", () => { this.pane.toggle(group); this.show(this.pane); });
      this.timeOfGroup(group);
      if (one.body >= 0) this.aboutEntry(one.body);
      const ops = new Map();
      for (let entry = 0; entry < stage.count; entry++) {
        if (stage.kind(entry) === "node" && stage.way(stage.owner[entry]).includes(group)) ops.set(stage.op(entry), (ops.get(stage.op(entry)) || 0) + 1);
      }
      title(root, "operators");
      table(root, [...ops].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([op, count]) => [op, String(count)]));
    }

    timeOfGroup(group) {
      const { stage, root } = this;
      if (stage.times === null) return;
      const [seconds, shared, elsewhere] = stage.times.groups[group];
      title(root, `time, measured on ${stage.times.runtime}`);
      line(root, `${TractView.time(seconds)}, ${TractView.percent(seconds / (stage.times.nodes || 1))} of all nodes`);
      this.bar(root, seconds / (stage.times.nodes || 1));
      if (shared > 0) line(root, `${TractView.time(shared)} of it is of kernels that compute nodes of other groups too.`, "faint");
      if (elsewhere > 0) line(root, `Kernels that count for other groups (${TractView.time(elsewhere)}) compute nodes of this one too.`, "faint");
    }

    ofEntry(entry) {
      const { root, stage } = this;
      element("h2", "", root).textContent = stage.nameOf(entry);
      this.aboutEntry(entry);
    }

    aboutEntry(entry) {
      const { root, stage } = this;
      line(root, stage.kind(entry) === "node" ? stage.op(entry) : stage.kind(entry), "faint");
      const way = stage.way(stage.owner[entry]).filter((group) => group !== 0).reverse();
      if (way.length > 0) {
        const box = element("p", "", root);
        way.forEach((group, place) => {
          if (place > 0) box.append(" / ");
          link(box, stage.groups[group].title, () => this.app.goTo(this.pane, "group", group));
        });
      }
      this.timeOf(entry);
      this.placingOf(entry);
      this.trailOf(entry);
      const attributes = stage.attributes(entry);
      if (attributes.length > 0) {
        title(root, "attributes");
        table(root, attributes);
      }
      this.outputsOf(entry);
      this.inputsOf(entry);
      this.otherOf(entry);
    }

    timeOf(entry) {
      const { root, stage } = this;
      const part = stage.partOf.get(entry);
      if (part === undefined) return;
      title(root, `time, measured on ${stage.times.runtime}`);
      const share = TractView.percent(part.seconds / (stage.times.nodes || 1));
      const rates = [[part.gflops, "GFLOP/s"], [part.gbs, "GB/s"]].filter(([rate]) => rate !== null && rate !== undefined);
      line(root, [`${TractView.time(part.seconds)} (${share})`, ...rates.map(([rate, unit]) => `${rate.toPrecision(3)} ${unit}`)].join(", "));
      this.bar(root, part.seconds / (stage.times.nodes || 1));
      if (part.entries.length > 1) line(root, "together with those that one kernel computes with it", "faint");
    }

    placingOf(entry) {
      const { root, stage } = this;
      const placing = stage.placings.get(entry);
      if (placing === undefined) return;
      title(root, "what computes it");
      table(root, [["where", placing.where], ["how", placing.how], ["why", placing.why]].filter(([, text]) => text !== ""));
      if (placing.others.length > 0) {
        line(root, "in one kernel with", "faint");
        this.someEntries(placing.others, (one) => stage.op(one));
      }
    }

    trailOf(entry) {
      const { root } = this;
      const box = element("p", "", root);
      const on = this.pane.look.trail !== null && this.pane.look.trail.entry === entry;
      const button = element("button", "", box);
      button.type = "button";
      button.textContent = "Trail: what it comes from and goes to";
      button.setAttribute("aria-pressed", String(on));
      button.addEventListener("click", () => this.app.follow(this.pane, on ? null : entry));
      if (!on) return;
      const { up, down } = this.pane.look.trail;
      line(root, `comes from ${up.entries.size - 1} entries (blue), goes to ${down.entries.size - 1} (orange)`, "faint");
      const ends = (side, kind) => [...side.entries].filter((one) => this.stage.kind(one) === kind && one !== entry);
      line(root, "inputs it depends on", "faint");
      this.someEntries(ends(up, "input"), () => "");
      line(root, "outputs that depend on it", "faint");
      this.someEntries(ends(down, "output"), () => "");
    }

    someEntries(entries, said) {
      const { root, stage } = this;
      for (const entry of entries.slice(0, MOST)) {
        const box = element("div", "wire", root);
        link(box, stage.nameOf(entry), () => this.go(entry));
        const text = said(entry);
        if (text !== "") element("code", "", element("div", "", box)).textContent = text;
      }
      if (entries.length > MOST) line(root, `and ${entries.length - MOST} more`, "faint");
      if (entries.length === 0) line(root, "none", "faint");
    }

    outputsOf(entry) {
      const { root, stage } = this;
      if (stage.kind(entry) === "output") return;
      const facts = stage.facts(entry);
      const readers = stage.readers[entry];
      facts.forEach((fact, slot) => {
        title(root, facts.length > 1 ? `output ${slot}` : "output");
        element("code", "", root).textContent = fact;
        const here = readers.filter((one) => one[1] === slot).map((one) => one[0]);
        line(root, here.length === 0 ? "nobody reads it" : "read by", "faint");
        if (here.length > 0) this.someEntries([...new Set(here)], (one) => stage.kind(one) === "node" ? stage.op(one) : stage.kind(one));
      });
    }

    inputsOf(entry) {
      const { root, stage } = this;
      const inputs = stage.inputs(entry).map((one) => ({ ...one, constant: null }));
      const constants = stage.constants(entry).map((constant) => ({ at: constant.at, constant }));
      for (const one of [...inputs, ...constants].sort((a, b) => a.at - b.at)) {
        title(root, { output: "which is", constant: "value" }[stage.kind(entry)] || `input ${one.at}`);
        if (one.constant !== null) {
          this.constant(one.constant);
          continue;
        }
        const name = one.slot > 0 ? `${stage.nameOf(one.source)}:${one.slot}` : stage.nameOf(one.source);
        link(root, name, () => this.go(one.source));
        element("code", "", element("div", "", root)).textContent = stage.facts(one.source)[one.slot] || "";
      }
    }

    constant({ name, number: which }) {
      const { root } = this;
      line(root, `constant ${name}`);
      const found = this.app.constants[which];
      if (found === undefined) return;
      const [kind, shape, size, seen, least, most, mean, deviation, nans, infinities, zeros, bars, first] = found;
      const elements = shape.reduce((all, one) => all * one, 1);
      const rows = [["type", `${shape.length > 0 ? `${shape.join(",")},` : ""}${kind}`], ["size", `${elements} elements, ${bytes(size)}`]];
      if (least !== null) rows.push(["range", `${number(least)} to ${number(most)}`], ["mean", `${number(mean)} ± ${number(deviation)}`]);
      if (seen > 0) rows.push(["zeros", String(zeros)], ["NaN", String(nans)], ["infinite", String(infinities)]);
      if (first.length > 0) rows.push([elements > first.length ? "begins" : "values", `${first.join(", ")}${elements > first.length ? ", …" : ""}`]);
      table(root, rows);
      if (seen > 0 && seen < elements) line(root, `of a sample of ${seen} elements`, "faint");
      if (bars.length > 0) histogram(root, bars);
    }

    // The same entry in the stage that is shown beside this one.
    otherOf(entry) {
      const other = this.app.other(this.pane);
      if (other === null || this.stage.kind(entry) === "output") return;
      const { stage } = other.space;
      title(this.root, `in ${stage.name}`);
      const there = stage.named(this.stage.nameOf(entry));
      if (there === undefined) {
        line(this.root, "there is no node of this name", "faint");
        return;
      }
      const same = stage.outline(there) === this.stage.outline(entry);
      link(this.root, same ? "the same" : `${stage.op(there)}, which differs`, () => this.app.goTo(other, "entry", there));
      if (!same) table(this.root, [["output", stage.facts(there).join(" ")], ...stage.attributes(there)]);
    }
  }

  Object.assign(TractView, { Details });
})();
