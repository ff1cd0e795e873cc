// Finding: a search over all entries of a stage, and the groups as a list that can be opened.
"use strict";

(() => {
  const { element } = TractView;
  const MOST = 200;

  class Search {
    constructor(app, field, found, tree) {
      this.app = app;
      this.field = field;
      this.found = found;
      this.tree = tree;
      field.addEventListener("input", () => this.run());
      field.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && this.first !== undefined) this.app.goTo(this.app.active, "entry", this.first);
        if (event.key === "Escape") { field.value = ""; this.run(); }
      });
      document.addEventListener("keydown", (event) => {
        if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
        event.preventDefault();
        field.focus();
      });
    }

    // What is searched of a stage: a text for each entry.
    static texts(stage) {
      if (stage.searched === undefined) {
        stage.searched = Array.from({ length: stage.count }, (_, entry) => [
          stage.nameOf(entry), stage.op(entry), ...stage.facts(entry), ...stage.attributes(entry).map((pair) => pair.join("=")),
          ...stage.constants(entry).map((one) => one.name),
        ].join("\n").toLowerCase());
      }
      return stage.searched;
    }

    run() {
      const begin = performance.now();
      const words = this.field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
      this.found.hidden = words.length === 0;
      this.tree.hidden = words.length > 0;
      this.first = undefined;
      this.found.replaceChildren();
      if (words.length === 0) return;
      const { stage } = this.app.active.space;
      const texts = Search.texts(stage);
      const hits = [];
      for (let entry = 0; entry < texts.length; entry++) if (words.every((word) => texts[entry].includes(word))) hits.push(entry);
      [this.first] = hits;
      element("p", "faint", this.found).textContent = `${hits.length} found${hits.length > MOST ? `, the first ${MOST} are listed` : ""}`;
      for (const entry of hits.slice(0, MOST)) {
        const row = element("button", "link", this.found);
        row.type = "button";
        row.textContent = stage.nameOf(entry);
        row.title = `${stage.op(entry)}  ${stage.facts(entry).join(" ")}`;
        row.addEventListener("click", () => this.app.goTo(this.app.active, "entry", entry));
      }
      this.took = performance.now() - begin;
    }

    // The groups that are open in the picture, as a list.
    list(pane) {
      this.run();
      this.tree.replaceChildren();
      this.branch(pane, 0, this.tree);
    }

    branch(pane, group, parent) {
      const { stage } = pane.space;
      const list = element("ul", "", parent);
      for (const box of stage.placed[group].boxes) {
        if (box.kind !== "group" && box.kind !== "entry") continue;
        const item = element("li", "", list);
        const row = element("div", "row", item);
        const isGroup = box.kind === "group";
        const twist = element(isGroup ? "button" : "span", "twist", row);
        const open = isGroup && pane.space.isOpen(box.number);
        if (isGroup) {
          twist.type = "button";
          twist.textContent = open ? "▾" : "▸";
          twist.setAttribute("aria-label", open ? "close" : "open");
          twist.addEventListener("click", () => pane.toggle(box.number));
        }
        const name = element("button", "name", row);
        name.type = "button";
        name.textContent = isGroup ? stage.groups[box.number].title : `${box.lines[0]}`;
        name.title = isGroup ? stage.groups[box.number].name : stage.nameOf(box.number);
        name.addEventListener("click", () => this.app.goTo(pane, box.kind, box.number));
        const { chosen } = pane.look;
        row.classList.toggle("chosen", chosen !== null && chosen.kind === box.kind && chosen.number === box.number);
        const seconds = isGroup ? stage.secondsOf("group", box.number) : null;
        element("span", "faint", row).textContent = !isGroup ? "" : seconds === null ? `${stage.groups[box.number].count}` : seconds > 0 ? TractView.time(seconds) : "";
        if (open && this.rows < 2000) this.branch(pane, box.number, item);
        this.rows += 1;
      }
    }

    get rows() { return this.counted || 0; }
    set rows(count) { this.counted = count; }
  }

  Object.assign(TractView, { Search });
})();
