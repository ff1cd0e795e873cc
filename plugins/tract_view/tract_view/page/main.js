// The page as a whole: which stages are shown, what is chosen, and how it is coloured.
"use strict";

(() => {
  const { element, Pane, Details, Search, Stage, piece } = TractView;
  const byId = (name) => document.getElementById(name);

  const COLOURS = [["operator", "by operator"], ["time", "by time"], ["kernel", "by what computes it"], ["changes", "by what changed"]];

  class App {
    constructor(summary) {
      this.summary = summary;
      this.stages = new Map();
      this.constants = [];
      this.panes = [];
      this.colours = "operator";
      this.details = new Details(this, byId("details"));
      this.search = new Search(this, byId("search"), byId("found"), byId("tree"));
      byId("title").textContent = summary.title;
      byId("remarks").hidden = summary.remarks.length === 0;
      byId("remarks").textContent = summary.remarks.join("\n");
      this.buttons();
    }

    buttons() {
      byId("beside").addEventListener("change", (event) => this.sideBySide(event.target.checked));
      byId("beside").disabled = this.summary.stages.length < 2;
      byId("fit").addEventListener("click", () => this.panes.forEach((pane) => pane.fit(false)));
      byId("open-all").addEventListener("click", () => this.openAll(true));
      byId("close-all").addEventListener("click", () => this.openAll(false));
      byId("colours").addEventListener("change", (event) => this.setColours(event.target.value));
    }

    async stage(number) {
      if (!this.stages.has(number)) this.stages.set(number, new Stage(this.summary.stages[number].name, await piece(`stage-${number}`)));
      return this.stages.get(number);
    }

    async start() {
      const last = this.summary.stages.length - 1;
      const pane = new Pane(this, byId("panes"));
      this.panes.push(pane);
      this.active = pane;
      await this.showStage(pane, last);
      this.constants = await piece("constants");
      this.details.show(this.active);
    }

    async showStage(pane, number) {
      const before = pane.space === null ? null : pane.space.stage;
      pane.select.value = String(number);
      pane.number = number;
      pane.show(await this.stage(number));
      this.active = pane;
      if (before === null && this.panes.length === 1 && pane.space.stage.times !== null) this.colours = "time";
      this.offerColours();
      this.setColours(this.colours);
      this.changed(pane);
    }

    stageNumber(pane) { return pane.number; }

    other(pane) { return this.panes.find((one) => one !== pane && one.space !== null) || null; }

    async sideBySide(wanted) {
      if (wanted && this.panes.length === 1) {
        const pane = new Pane(this, byId("panes"));
        const first = this.panes[0];
        byId("panes").prepend(pane.root);
        this.panes.push(pane);
        const before = first.number > 0 ? first.number - 1 : 1;
        await this.showStage(pane, before);
        this.active = first;
        first.fit(true);
        this.setColours("changes");
      } else if (!wanted && this.panes.length === 2) {
        this.panes.pop().root.remove();
        [this.active] = this.panes;
        this.panes[0].fit(true);
        if (this.colours === "changes") this.setColours("operator");
      }
      this.changed(this.active);
    }

    offerColours() {
      const has = {
        operator: true, changes: this.summary.stages.length > 1,
        time: this.panes.some((pane) => pane.space && pane.space.stage.times !== null),
        kernel: this.panes.some((pane) => pane.space && pane.space.stage.placings.size > 0),
      };
      byId("colours").replaceChildren();
      for (const [value, text] of COLOURS) {
        if (!has[value]) continue;
        const option = element("option", "", byId("colours"));
        option.value = value;
        option.textContent = text;
      }
      if (!has[this.colours]) this.colours = "operator";
    }

    async setColours(colours) {
      this.offerColours();
      this.colours = colours;
      byId("colours").value = colours;
      for (const pane of this.panes) {
        if (pane.space === null) continue;
        pane.look.colours = colours;
        if (colours === "changes") await this.compare(pane);
        if (colours === "kernel") this.gatherKernels(pane);
        pane.redraw();
      }
      this.legend();
    }

    // What each node of a pane is in comparison with the pane beside it, or with the stage before.
    async compare(pane) {
      const beside = this.other(pane);
      const number = pane.number > 0 ? pane.number - 1 : 1;
      const other = beside === null ? await this.stage(number) : beside.space.stage;
      const { stage } = pane.space;
      pane.look.differences = TractView.differences(stage, other);
      const groups = new Map();
      pane.look.differences.forEach((difference, entry) => {
        if (difference === "same") return;
        for (const group of stage.way(stage.owner[entry])) {
          const known = groups.get(group);
          groups.set(group, known === undefined || known === difference ? difference : "changed");
        }
      });
      stage.groups.forEach((one) => {  // a group is alone where all that is in it is
        if (groups.get(one.number) === "alone" && other.groupNamed(one.name) !== undefined) groups.set(one.number, "changed");
      });
      pane.look.changedGroups = groups;
      const count = (kind) => pane.look.differences.filter((one) => one === kind).length;
      pane.note.textContent = `${count("alone")} not in ${other.name}, ${count("changed")} changed, ${count("same")} the same`;
      pane.comparedWith = other.name;
    }

    gatherKernels(pane) {
      const { stage } = pane.space;
      const found = new Map();
      for (const [entry, { how, where }] of stage.placings) {
        for (const group of stage.way(stage.owner[entry])) {
          if (!found.has(group)) found.set(group, new Set());
          found.get(group).add(`${how} on ${where}`);
        }
      }
      pane.look.kernels = found;
    }

    legend() {
      const root = byId("legend");
      root.replaceChildren();
      const sign = ([filling, border], text) => {
        const made = element("span", "", root);
        const spot = element("i", "", made);
        spot.style.background = filling;
        spot.style.borderColor = border;
        made.append(text);
      };
      const { stage } = this.panes[0].space;
      if (this.colours === "time") for (const share of [0.01, 0.1, 0.5, 1]) sign(TractView.ofShare(share), `${share * 100} %`);
      if (this.colours === "changes") {
        sign(TractView.DIFFERENT.alone, "not in the other");
        sign(TractView.DIFFERENT.changed, "changed");
        sign(TractView.DIFFERENT.same, "the same");
      }
      if (this.colours === "kernel") {
        const kinds = new Set([...stage.placings.values()].map(({ how, where }) => `${how} on ${where}`));
        for (const kind of [...kinds].slice(0, 8)) sign(TractView.ofText(kind), kind);
      }
      if (this.colours !== "changes") this.panes.forEach((pane) => { pane.note.textContent = ""; });
      const timed = this.panes.map((pane) => pane.space && pane.space.stage.times).find((times) => times);
      byId("whole").textContent = timed ? `${TractView.time(timed.turn)} a turn on ${timed.runtime}` : "";
    }

    openAll(wanted) {
      for (const pane of this.panes) {
        pane.space.openAll(wanted);
        if (!wanted) pane.openOnlyGroup();
        pane.fit(!wanted);
      }
      this.search.list(this.active);
    }

    // Something was chosen in a pane; the pane beside it shows what has the same name.
    choose(pane, chosen) {
      this.active = pane;
      pane.look.chosen = chosen;
      if (chosen === null) pane.look.trail = null;
      this.changed(pane);
      const beside = this.other(pane);
      if (beside === null || chosen === null) return;
      const { stage } = beside.space;
      const name = chosen.kind === "entry" ? pane.space.stage.nameOf(chosen.number) : pane.space.stage.groups[chosen.number].name;
      const there = chosen.kind === "entry" ? stage.named(name) : stage.groupNamed(name);
      beside.look.chosen = there === undefined ? null : { kind: chosen.kind, number: there };
      if (there !== undefined) beside.goTo(chosen.kind, there);
      beside.redraw();
    }

    goTo(pane, kind, number) {
      pane.goTo(kind, number);
      this.choose(pane, { kind, number });
    }

    // Show what an entry's tensors come from and go to; null: no longer.
    follow(pane, entry) {
      if (entry === null) pane.look.trail = null;
      else {
        const { stage } = pane.space;
        const side = (back) => {
          const entries = new Set(stage.reached([entry], back).keys());
          const groups = new Set();
          for (const one of entries) for (const group of stage.way(stage.owner[one])) groups.add(group);
          return { entries, groups, sources: entries };
        };
        pane.look.trail = { entry, up: side(true), down: side(false) };
      }
      this.changed(pane);
    }

    toggled(pane) {
      if (pane === this.active) this.search.list(pane);
    }

    changed(pane) {
      this.details.show(pane);
      this.search.list(pane);
      pane.redraw();
    }
  }

  async function begin() {
    try {
      const app = new App(await piece("summary"));
      TractView.app = app;
      await app.start();
      document.documentElement.dataset.ready = "yes";
    } catch (error) {
      byId("remarks").hidden = false;
      byId("remarks").textContent = `The page cannot show the model: ${error.message}`;
      throw error;
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
