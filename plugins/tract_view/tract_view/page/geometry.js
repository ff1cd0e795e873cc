// Where everything is when some groups are open: what is around an open group is pushed apart, and nothing changes sides.
"use strict";

(() => {
  const PADDING = 14;
  const HEAD = 30;

  // A function that stretches a line: by `more` around each `at`, evenly over what lies within `reach` of it.
  function stretched(places) {
    if (places.length === 0) return (x) => x;
    return (x) => {
      let moved = x;
      for (const { at, more, reach } of places) {
        moved += (more / 2) * Math.max(-1, Math.min(1, reach > 0 ? (x - at) / reach : Math.sign(x - at)));
      }
      return moved;
    };
  }

  // Places at nearly the same x stretch once, by the most of what they ask for.
  function joined(places) {
    const found = [];
    for (const one of places.sort((a, b) => a.at - b.at)) {
      const last = found[found.length - 1];
      if (last !== undefined && one.at - last.at < 2) {
        last.more = Math.max(last.more, one.more);
        last.reach = Math.max(last.reach, one.reach);
      } else {
        found.push(one);
      }
    }
    return found;
  }

  class Space {
    constructor(stage) {
      this.stage = stage;
      this.open = new Set([0]);
      this.known = new Map();
    }

    isOpen(group) { return this.open.has(group); }

    toggle(group, wanted) {
      if (group === 0 || this.isOpen(group) === wanted) return;
      if (this.isOpen(group)) this.open.delete(group);
      else this.open.add(group);
      for (const around of this.stage.way(group)) this.known.delete(around);
    }

    openAll(wanted) {
      this.open = new Set(wanted ? this.stage.groups.map((one) => one.number) : [0]);
      this.known.clear();
    }

    // Size of a group's inside, and its boxes and wires in it.
    inside(group) {
      let found = this.known.get(group);
      if (found === undefined) {
        found = this.arranged(this.stage.placed[group]);
        this.known.set(group, found);
      }
      return found;
    }

    sizeOf(box) {
      if (box.kind !== "group" || !this.isOpen(box.number)) return [box.w, box.h];
      const inner = this.inside(box.number);
      return [Math.max(box.w, inner.width + 2 * PADDING), Math.max(box.h, inner.height + HEAD + PADDING)];
    }

    arranged(placed) {
      const sizes = placed.boxes.map((box) => this.sizeOf(box));
      const wider = [];
      const rows = new Map();
      placed.boxes.forEach((box, number) => {
        const [w, h] = sizes[number];
        if (w > box.w) wider.push({ at: box.x, more: w - box.w, reach: box.w / 2 });
        if (h > box.h) rows.set(box.y, Math.max(rows.get(box.y) || 0, h - box.h));
      });
      const toX = stretched(joined(wider));
      const toY = stretched([...rows].map(([at, more]) => ({ at, more, reach: 0 })));
      const left = toX(0);
      const top = toY(0);
      const boxes = placed.boxes.map((box, number) => (
        { box, x: toX(box.x) - left, y: toY(box.y) - top, w: sizes[number][0], h: sizes[number][1] }));
      const wires = placed.wires.map((wire) => this.path(wire, boxes, toX, toY, left, top));
      return { boxes, wires, width: toX(placed.width) - left, height: toY(placed.height) - top };
    }

    // The points that an arrow passes, from its source to its target.
    path(wire, boxes, toX, toY, left, top) {
      const upper = boxes[wire.back ? wire.target : wire.source];
      const lower = boxes[wire.back ? wire.source : wire.target];
      const points = [[upper.x, upper.y + upper.h / 2]];
      for (const [x, begin, end] of wire.passages) {
        const at = toX(x) - left;
        points.push([at, toY(begin) - top], [at, toY(end) - top]);
      }
      const from = points[points.length - 1][0];
      points.push([Math.max(lower.x - lower.w * 0.4, Math.min(lower.x + lower.w * 0.4, from)), lower.y - lower.h / 2]);
      if (wire.back) points.reverse();
      return { wire, points };
    }

    // Where the inside of a group begins, given its box.
    static insideOf(found, inner) {
      return [found.x - inner.width / 2, found.y - found.h / 2 + HEAD];
    }

    // What is at a point of the whole picture: the innermost box, with its middle in the picture; or null.
    at(x, y, group = 0, offset = [0, 0]) {
      for (const found of this.inside(group).boxes) {
        const [dx, dy] = [x - offset[0] - found.x, y - offset[1] - found.y];
        if (Math.abs(dx) > found.w / 2 || Math.abs(dy) > found.h / 2) continue;
        if (found.box.kind === "group" && this.isOpen(found.box.number)) {
          const [ix, iy] = Space.insideOf(found, this.inside(found.box.number));
          const inner = this.at(x, y, found.box.number, [offset[0] + ix, offset[1] + iy]);
          if (inner !== null) return inner;
        }
        return { ...found, x: offset[0] + found.x, y: offset[1] + found.y };
      }
      return null;
    }

    // Where an entry or a group is in the whole picture, or the closed group that it is in.
    find(kind, number) {
      const { stage } = this;
      const way = kind === "group" ? stage.way(number) : stage.way(stage.owner[number]);
      const boxes = way.map((group) => ["group", group]);
      if (kind === "entry" && stage.groups[stage.owner[number]].body !== number) boxes.unshift(["entry", number]);
      let offset = [0, 0];
      let found = null;
      for (let at = boxes.length - 2; at >= 0; at--) {
        const [what, which] = boxes[at];
        const around = boxes[at + 1][1];
        found = this.inside(around).boxes.find((one) => one.box.kind === what && one.box.number === which);
        if (found === undefined) return null;
        found = { ...found, x: offset[0] + found.x, y: offset[1] + found.y };
        if (what !== "group" || !this.isOpen(which)) return found;
        const [ix, iy] = Space.insideOf(found, this.inside(which));
        offset = [ix, iy];
      }
      return found;
    }

    // Open all groups that something is in.
    reveal(kind, number) {
      const way = this.stage.way(kind === "group" ? number : this.stage.owner[number]);
      const body = kind === "entry" && this.stage.groups[way[0]].body === number;
      way.forEach((group, place) => {
        if (place > 0 || (kind === "entry" && !body)) this.toggle(group, true);
      });
    }
  }

  Object.assign(TractView, { Space, HEAD });
})();
