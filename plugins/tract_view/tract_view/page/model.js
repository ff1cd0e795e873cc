// What the page knows of a model: the pieces that `tract_view.document` writes, read and asked by number.
"use strict";

const TractView = {};

(() => {
  const KINDS = ["input", "node", "constant", "output"];

  // A piece of the model: out of this file where it is in it, else from where the page came from.
  async function piece(name) {
    const own = document.getElementById(`piece-${name}`);
    if (own === null) {
      const answer = await fetch(`${name}.json`);
      if (!answer.ok) throw new Error(`${name}: ${answer.status}; the command that serves this page may have ended`);
      return answer.json();
    }
    const bytes = Uint8Array.from(atob(own.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // The items of a flat list, in runs of `size`.
  function runs(flat, size) {
    const found = [];
    for (let at = 0; at < flat.length; at += size) found.push(flat.slice(at, at + size));
    return found;
  }

  class Stage {
    constructor(name, data) {
      this.name = name;
      this.data = data;
      this.texts = data.texts;
      this.count = data.name.length;
      this.owner = data.owner;
      this.groups = data.groups.map(([title, full, parent, body, count, first], number) => ({
        number, title: this.texts[title], name: this.texts[full], parent, body, count, first,
      }));
      this.placed = data.placed.map((one) => this.readPlaced(one));
      this.placings = new Map(data.placings.map((one) => [one[0], this.readPlacing(one)]));
      this.readTimes(data.times);
    }

    readPlaced([width, height, boxes, wires]) {
      return {
        width, height,
        boxes: boxes.map(([kind, number, x, y, w, h, ...lines]) => (
          { kind, number, x, y, w, h, lines: lines.map((text) => this.texts[text]) })),
        wires: wires.map(([source, target, tensors, back, ...flat]) => (
          { source, target, tensors, back, passages: runs(flat, 3) })),
      };
    }

    readPlacing([, where, how, why, others]) {
      return { where: this.texts[where], how: this.texts[how], why: this.texts[why], others };
    }

    readTimes(times) {
      this.times = times;
      this.partOf = new Map();
      if (times === null) return;
      times.parts.forEach(([entries, main, seconds, gflops, gbs], number) => {
        for (const entry of entries) this.partOf.set(entry, { number, entries, main, seconds, gflops, gbs });
      });
    }

    kind(entry) { return KINDS[this.data.kind[entry]]; }
    nameOf(entry) { return this.texts[this.data.name[entry]]; }
    op(entry) { return this.texts[this.data.op[entry]]; }
    around(entry) { return this.data.around[entry]; }
    inputs(entry) { return runs(this.data.inputs[entry], 3).map(([source, slot, at]) => ({ source, slot, at })); }
    facts(entry) { return this.data.facts[entry].map((text) => this.texts[text]); }
    attributes(entry) { return runs(this.data.attributes[entry].map((text) => this.texts[text]), 2); }
    constants(entry) {
      return runs(this.data.constants[entry], 4).map(([at, name, fact, number]) => (
        { at, name: this.texts[name], fact: this.texts[fact], number }));
    }

    // For each entry, who reads it: [reader, which output, which input].
    get readers() {
      if (this.foundReaders === undefined) {
        this.foundReaders = Array.from({ length: this.count }, () => []);
        for (let target = 0; target < this.count; target++) {
          const flat = this.data.inputs[target];
          for (let at = 0; at < flat.length; at += 3) this.foundReaders[flat[at]].push([target, flat[at + 1], flat[at + 2]]);
        }
      }
      return this.foundReaders;
    }

    // The number of the entry of that name, among all that are no outputs; undefined where there is none.
    named(name) {
      if (this.byName === undefined) {
        this.byName = new Map();
        for (let entry = this.count - 1; entry >= 0; entry--) {
          if (this.data.kind[entry] !== 3) this.byName.set(this.nameOf(entry), entry);
        }
      }
      return this.byName.get(name);
    }

    groupNamed(name) {
      if (this.groupsByName === undefined) this.groupsByName = new Map(this.groups.map((one) => [one.name, one.number]));
      return this.groupsByName.get(name);
    }

    // The groups that something is in, from the innermost outwards; of what runs a body, the body's group is the first.
    way(group) {
      const found = [];
      for (let at = group; at !== -1; at = this.groups[at].parent) found.push(at);
      return found;
    }

    // Entries that a tensor comes from, or goes to, with how many steps that is away.
    reached(starts, back) {
      const steps = new Map(starts.map((entry) => [entry, 0]));
      const waiting = [...starts];
      for (let at = 0; at < waiting.length; at++) {
        const entry = waiting[at];
        const next = back ? this.inputs(entry).map((one) => one.source) : this.readers[entry].map((one) => one[0]);
        for (const one of next) {
          if (!steps.has(one)) {
            steps.set(one, steps.get(entry) + 1);
            waiting.push(one);
          }
        }
      }
      return steps;
    }

    secondsOf(kind, number) {
      if (this.times === null) return null;
      if (kind === "group") return this.times.groups[number][0];
      const part = this.partOf.get(number);
      return part === undefined ? null : part.seconds;
    }

    // What must be equal for an entry to be the same in two stages.
    outline(entry) {
      const read = this.inputs(entry).map((one) => `${this.nameOf(one.source)}:${one.slot}`);
      return JSON.stringify([this.op(entry), this.facts(entry), this.attributes(entry), read]);
    }
  }

  // For each entry of `stage`, how it differs from `other`: "same", "changed", or "alone" where the other has none.
  function differences(stage, other) {
    const found = new Array(stage.count);
    for (let entry = 0; entry < stage.count; entry++) {
      const there = stage.kind(entry) === "output" ? entry : other.named(stage.nameOf(entry));
      if (stage.kind(entry) === "output") found[entry] = "same";
      else if (there === undefined) found[entry] = "alone";
      else found[entry] = stage.outline(entry) === other.outline(there) ? "same" : "changed";
    }
    return found;
  }

  // A part of a whole, as a percentage.
  function percent(share) {
    return `${share >= 0.0995 ? Math.round(100 * share) : Number((100 * share).toPrecision(2))} %`;
  }

  function time(seconds) {
    if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
    if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
    return `${(seconds * 1e6).toPrecision(3)} µs`;
  }

  Object.assign(TractView, { piece, Stage, differences, percent, time });
})();
