// How boxes and arrows look on a canvas. Only what is in sight is drawn, and texts only where they can be read.
"use strict";

(() => {
  const FONT = "Helvetica, Arial, sans-serif";
  const FAINT = "#6b7280";
  const DARK = "#1f2328";
  const STROKE = "#8a8f98";
  const CHOSEN = "#2563eb";
  const UP = "#1d6fd8";
  const DOWN = "#d9730d";
  const READABLE = 0.42;
  const DIFFERENT = { alone: ["#dcf5e3", "#2f9e55"], changed: ["#fdf0d0", "#c58a12"], same: ["#f3f4f6", "#b6bcc6"] };

  const TABLE = Array.from({ length: 256 }, (_, number) => {
    let value = number;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    return value >>> 0;
  });

  // The same hue for a text as in the pictures that `tract MODEL dump --svg` draws.
  function hue(text) {
    let value = 0xffffffff;
    for (const byte of new TextEncoder().encode(text)) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
    return ((value ^ 0xffffffff) >>> 0) % 360;
  }

  const hues = new Map();
  function ofText(text) {
    if (!hues.has(text)) {
      const h = hue(text);
      hues.set(text, [`hsl(${h} 60% 91%)`, `hsl(${h} 60% 55%)`]);
    }
    return hues.get(text);
  }

  // From pale to red, by the root of the share, so that small shares can be told apart.
  function ofShare(share) {
    const t = Math.sqrt(Math.max(0, Math.min(1, share)));
    return [`hsl(${48 - 38 * t} ${70 + 22 * t}% ${96 - 30 * t}%)`, `hsl(${48 - 40 * t} 70% ${70 - 30 * t}%)`];
  }

  class Drawing {
    constructor(context, space, look) {
      this.context = context;
      this.space = space;
      this.stage = space.stage;
      this.look = look;
    }

    // Draw all that is in sight. `view`: scale, and where the picture's origin is on the canvas; `size`: of the canvas.
    draw(view, size, ratio) {
      const { context } = this;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, size[0] * ratio, size[1] * ratio);
      context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
      this.scale = view.scale;
      this.sight = [-view.x / view.scale, -view.y / view.scale,
        (size[0] - view.x) / view.scale, (size[1] - view.y) / view.scale];
      this.drawn = 0;
      this.group(0, 0, 0);
    }

    inSight(left, top, right, bottom) {
      const [a, b, c, d] = this.sight;
      return right >= a && left <= c && bottom >= b && top <= d;
    }

    group(number, ox, oy) {
      const inner = this.space.inside(number);
      if (this.scale > 0.03) for (const one of inner.wires) this.wire(one, inner.boxes, ox, oy);
      for (const found of inner.boxes) {
        const [x, y] = [ox + found.x, oy + found.y];
        if (!this.inSight(x - found.w / 2, y - found.h / 2, x + found.w / 2, y + found.h / 2)) continue;
        this.box(found, x, y);
      }
    }

    wire({ wire, points }, boxes, ox, oy) {
      const { context, look } = this;
      let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
      for (const [x, y] of points) {
        left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
      }
      if (!this.inSight(ox + left, oy + top, ox + right, oy + bottom)) return;
      const side = look.trail === null ? null : this.sideOf(boxes[wire.source].box, boxes[wire.target].box);
      context.globalAlpha = look.trail !== null && side === null ? 0.2 : 1;
      context.strokeStyle = side === null ? STROKE : side;
      context.fillStyle = context.strokeStyle;
      context.lineWidth = Math.min((side === null ? 1 : 2) * (wire.tensors > 1 ? 1.6 : 1), 4 / this.scale);
      context.setLineDash(wire.back ? [5, 4] : []);
      context.beginPath();
      context.moveTo(ox + points[0][0], oy + points[0][1]);
      for (let at = 1; at < points.length; at++) this.curve(points[at - 1], points[at], ox, oy);
      context.stroke();
      context.setLineDash([]);
      if (this.scale > 0.15) this.head(points[points.length - 1], ox, oy, points[points.length - 2][1]);
      context.globalAlpha = 1;
    }

    curve([x, y], [nextX, nextY], ox, oy) {
      if (Math.abs(x - nextX) < 0.5) this.context.lineTo(ox + nextX, oy + nextY);
      else {
        const half = oy + (y + nextY) / 2;
        this.context.bezierCurveTo(ox + x, half, ox + nextX, half, ox + nextX, oy + nextY);
      }
    }

    head([x, y], ox, oy, from) {
      const way = from < y ? -6 : 6;
      this.context.beginPath();
      this.context.moveTo(ox + x, oy + y);
      this.context.lineTo(ox + x - 3.5, oy + y + way);
      this.context.lineTo(ox + x + 3.5, oy + y + way);
      this.context.fill();
    }

    // The colour of an arrow on the trail, null for another.
    sideOf(source, target) {
      const { up, down } = this.look.trail;
      const within = (set, box) => this.holds(set, box);
      if (within(up, source) && within(up, target)) return UP;
      if (within(down, source) && within(down, target)) return DOWN;
      return null;
    }

    // Whether a box is on the trail: an entry itself, a group by what is in it, a port by its tensor's source.
    holds(side, box) {
      if (box.kind === "group") return side.groups.has(box.number);
      if (box.number === -1) return true;
      return side.entries.has(box.number) || (box.kind === "in" && side.sources.has(box.number));
    }

    box(found, x, y) {
      const { context, look, scale } = this;
      const { box, w, h } = found;
      this.drawn += 1;
      const open = box.kind === "group" && this.space.isOpen(box.number);
      const trail = look.trail;
      const on = trail === null || this.holds(trail.up, box) || this.holds(trail.down, box);
      const [filling, border] = this.colours(box);
      context.globalAlpha = on ? 1 : 0.25;
      context.fillStyle = open ? "#fafbfc" : filling;
      context.strokeStyle = this.isChosen(box) ? CHOSEN : border;
      context.lineWidth = this.isChosen(box) ? Math.max(2.5, 1.5 / scale) : Math.min(1, 2 / scale);
      this.outline(box, x - w / 2, y - h / 2, w, h);
      if (open && h * scale > 20) this.headOf(box, x, y, w, h, filling, border);
      if (!open && scale >= READABLE) this.lines(box, x, y, w, h);
      else if (!open && box.kind === "group" && h * scale > 14) this.largeTitle(box, x, y, w);
      context.globalAlpha = 1;
      if (!open) return;
      const inner = this.space.inside(box.number);
      const [ix, iy] = TractView.Space.insideOf({ x, y, h }, inner);
      this.group(box.number, ix, iy);
    }

    outline(box, left, top, w, h) {
      const { context } = this;
      const kind = box.kind === "entry" ? this.stage.kind(box.number) : box.kind;
      const corner = kind === "node" || kind === "constant" ? 4 : kind === "group" ? 8 : Math.min(h / 2, 14);
      context.beginPath();
      if (h * this.scale < 5) context.rect(left, top, w, h);
      else context.roundRect(left, top, w, h, corner);
      context.fill();
      context.stroke();
      if (box.kind === "group" && !this.space.isOpen(box.number) && h * this.scale > 10) {  // a second sheet below
        context.beginPath();
        context.moveTo(left + 6, top + h + 3);
        context.lineTo(left + w - 6, top + h + 3);
        context.stroke();
      }
    }

    headOf(box, x, y, w, h, filling, border) {
      const { context, scale } = this;
      const [left, top] = [x - w / 2, y - h / 2];
      context.fillStyle = filling;
      context.strokeStyle = border;
      context.beginPath();
      context.roundRect(left, top, w, TractView.HEAD - 8, [8, 8, 0, 0]);
      context.fill();
      const seconds = this.timeOf(box);
      context.font = `600 13px ${FONT}`;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillStyle = DARK;
      if (scale < 0.25) return;
      const text = `− ${box.lines[0]}${seconds === "" ? "" : `   ${seconds}`}`;
      context.fillText(text, left + 8, top + (TractView.HEAD - 8) / 2, w - 16);
    }

    lines(box, x, y, w, h) {
      const { context } = this;
      context.textAlign = "center";
      context.textBaseline = "middle";
      const small = box.kind === "in" || box.kind === "out";
      const lines = box.lines.filter((line) => line !== "");
      if (box.kind === "group") lines[0] = `+ ${lines[0]}`;
      const seconds = this.timeOf(box);
      if (seconds !== "") lines[lines.length > 2 ? lines.length - 1 : lines.length] = seconds;
      const height = h / (lines.length + 0.6);
      lines.forEach((line, place) => {
        const title = place === 0 && !small;
        context.font = title ? `600 13px ${FONT}` : `10px ${FONT}`;
        context.fillStyle = title || this.look.colours === "time" ? DARK : FAINT;
        context.fillText(line, x, y - h / 2 + height * (place + 0.8), w - 8);
      });
    }

    // Of a group that is too small for its lines, the title alone.
    largeTitle(box, x, y, w) {
      const { context, scale } = this;
      context.font = `600 ${Math.min(11 / scale, 40)}px ${FONT}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = DARK;
      context.fillText(box.lines[0], x, y, w - 6);
    }

    timeOf(box) {
      const { stage } = this;
      if (stage.times === null || (box.kind !== "group" && box.kind !== "entry")) return "";
      const seconds = stage.secondsOf(box.kind, box.number);
      if (seconds === null || seconds === 0) return "";
      const part = box.kind === "entry" ? stage.partOf.get(box.number) : undefined;
      if (part !== undefined && part.main !== box.number) return `in ${stage.op(part.main)}'s time`;
      const share = stage.times.nodes > 0 ? ` · ${TractView.percent(seconds / stage.times.nodes)}` : "";
      return `${TractView.time(seconds)}${share}`;
    }

    isChosen(box) {
      const { chosen } = this.look;
      return chosen !== null && chosen.kind === box.kind && chosen.number === box.number;
    }

    colours(box) {
      const { look, stage } = this;
      if (box.kind === "in" || box.kind === "out") return ["#ffffff", "#c3c8d0"];
      if (look.colours === "time" && stage.times !== null) {
        const seconds = stage.secondsOf(box.kind, box.number);
        return seconds === null ? ["#ffffff", "#c3c8d0"] : ofShare(seconds / (stage.times.nodes || 1));
      }
      if (look.colours === "changes" && look.differences !== null) return DIFFERENT[this.differenceOf(box)];
      if (box.kind === "group") return look.colours === "kernel" ? this.kernelOfGroup(box.number) : ["#eef1f5", "#9aa3af"];
      if (stage.kind(box.number) === "input" || stage.kind(box.number) === "output") return ["#ffffff", STROKE];
      if (stage.kind(box.number) === "constant") return ["#f3f4f6", "#b6bcc6"];
      if (look.colours === "kernel") return this.kernelOf(box.number);
      return ofText(stage.op(box.number));
    }

    kernelOf(entry) {
      const placing = this.stage.placings.get(entry);
      return placing === undefined ? ["#ffffff", "#c3c8d0"] : ofText(`${placing.how} on ${placing.where}`);
    }

    kernelOfGroup(number) {
      const kinds = this.look.kernels.get(number);
      return kinds === undefined || kinds.size !== 1 ? ["#eef1f5", "#9aa3af"] : ofText([...kinds][0]);
    }

    differenceOf(box) {
      if (box.kind === "entry") return this.look.differences[box.number];
      return this.look.changedGroups.get(box.number) || "same";
    }
  }

  Object.assign(TractView, { Drawing, ofText, ofShare, DIFFERENT });
})();
