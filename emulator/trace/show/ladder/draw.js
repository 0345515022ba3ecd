"use strict";
// The picture: only what is seen of it is drawn, whenever something has changed.

const canvas = document.getElementById("ladder");
const overview = document.getElementById("overview");
const kHeadHeight = 46;
const kFont = "11.5px system-ui, sans-serif";
let colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "faint", "line", "panel", "request", "answer", "again", "bad",
                      "mark", "bar", "bar-receive", "wait", "poll", "found", "chosen"])
    colours[name] = style.getPropertyValue("--" + name).trim();
}

// Where things stand from left to right, in a picture of that width.
function columnsFor(width) {
  const bars = 12 + kColumns * 8;
  const clock = 92;
  const margin = Math.max(40, Math.min(300, (width - clock) * 0.22));
  const left = clock + margin + bars, right = width - margin - bars - 8;
  return {width, clock, margin, lines: [left, Math.max(right, left + 60)],
          bar: (side, column) => side === 0 ? left - 12 - column * 8 : right + 5 + column * 8,
          note: (side) => side === 0 ? left - bars - 6 : right + bars + 6};
}

class Picture {
  constructor(context, width, height, top) {
    this.c = context;
    this.columns = columnsFor(width);
    this.width = width;
    this.height = height;
    this.top = top;
    this.isRoomy = view.zoom > 0.55 && view.scale === "folded";
    this.taken = {};
  }

  sees(from, to) { return to >= this.top - 30 && from <= this.top + this.height + 30; }
  at(record) { return view.y[record] - this.top; }

  // Texts of a kind that would lie upon each other: the second is left out.
  hasRoom(place, y) {
    if (this.isRoomy) return true;
    if (Math.abs(y - (this.taken[place] ?? -99)) < 13) return false;
    this.taken[place] = y;
    return true;
  }

  text(text, x, y, colour, align, width) {
    const c = this.c;
    c.textAlign = align;
    c.lineWidth = 3;
    c.strokeStyle = colours.paper;
    c.fillStyle = colour;
    if (width !== undefined) text = this.cut(text, width);
    c.strokeText(text, x, y);
    c.fillText(text, x, y);
  }

  // Behind a text that lies upon arrows.
  plate(x, y, width, align) {
    this.c.fillStyle = colours.paper;
    this.c.globalAlpha = 0.85;
    this.c.fillRect(align === "right" ? x - width - 2 : x - 2, y - 10, width + 4, 13);
    this.c.globalAlpha = 1;
  }

  cut(text, width) {
    if (width < 12) return "";
    if (this.c.measureText(text).width <= width) return text;
    let length = Math.floor(text.length * width / this.c.measureText(text).width) - 1;
    while (length > 0 && this.c.measureText(text.slice(0, length) + "…").width > width) --length;
    return length > 0 ? text.slice(0, length) + "…" : "";
  }

  draw() {
    const c = this.c;
    c.save();
    c.fillStyle = colours.paper;
    c.fillRect(0, 0, this.width, this.height);
    c.font = kFont;
    c.textBaseline = "alphabetic";
    this.drawGaps();
    this.drawLines();
    this.drawClock();
    for (const request of view.requests) this.drawRequest(request);
    const packets = this.seenPackets();
    for (const packet of packets) this.drawArrow(packet);
    for (const packet of packets) this.drawPacketLabel(packet);
    for (const item of this.seenNotes()) this.drawNote(item);
    c.restore();
  }

  seenPackets() {
    return between(view.packets, this.top - view.longest - 30, this.top + this.height + 30);
  }

  // Lines of the margins: [item, record, text, colour].
  seenNotes() {
    return between(view.lines, this.top - 30, this.top + this.height + 30);
  }

  drawGaps() {
    const {lines} = this.columns;
    for (const gap of view.gaps) {
      if (!this.sees(gap.y, gap.y + gap.height)) continue;
      const y = gap.y - this.top;
      this.c.fillStyle = colours.panel;
      this.c.fillRect(0, y, this.width, gap.height);
      if (gap.height < 12) continue;
      this.text(durationText(gap.ns) + " later", (lines[0] + lines[1]) / 2, y + gap.height / 2 + 4,
                colours.faint, "center");
    }
  }

  drawLines() {
    const c = this.c;
    c.strokeStyle = colours.faint;
    c.lineWidth = 1.5;
    for (const x of this.columns.lines) {
      c.beginPath();
      c.moveTo(x, Math.max(0, -this.top));
      c.lineTo(x, Math.min(this.height, view.height - this.top));
      c.stroke();
    }
  }

  drawClock() {
    let last = -99, before = "";
    let from = lowerBound(view.rows, (record) => view.y[record] >= this.top - 20);
    for (; from < view.rows.length; ++from) {
      const y = this.at(view.rows[from]);
      if (y > this.height + 10) break;
      const text = clockText(timeOf(view.rows[from]));
      if (y - last < 30 || text === before) continue;
      last = y;
      before = text;
      this.c.fillStyle = colours.faint;
      this.c.textAlign = "right";
      this.c.fillText(text, this.columns.clock - 8, y);
    }
  }

  // From post to poll: waiting for the NIC, under way, waiting for the program.
  drawRequest(request) {
    const top = view.y[request.anchor], bottom = view.y[request.last];
    if (!this.sees(top, bottom)) return;
    const c = this.c, x = this.columns.bar(sideOf(request.qp), request.column);
    const part = (from, to, colour) => {
      if (from === kNone || to === kNone) return;
      c.fillStyle = colour;
      const y = this.at(from);
      c.fillRect(x, y, 6, Math.max(this.at(to) - y, 2));
    };
    const done = request.pushed !== kNone ? request.pushed : request.last;
    part(request.anchor, done, colours.wait);
    const begun = request.taken !== kNone ? request.taken : request.anchor;
    part(begun, done, request.isBad ? colours.bad
                      : request.isReceive ? colours["bar-receive"] : colours.bar);
    part(request.pushed, request.polled, colours.poll);
    if (view.chosen === request || view.found.has(request)) {
      c.strokeStyle = view.chosen === request ? colours.chosen : colours.again;
      c.lineWidth = 2;
      c.strokeRect(x - 1, top - this.top - 1, 8, Math.max(bottom - top, 2) + 2);
    }
  }

  colourOf(packet) {
    return colours[packet.lost !== kNone ? "bad" : packet.again ? "again" : packet.colour];
  }

  // x and y of both ends. What was seen at one end alone has but half a way.
  wayOf(packet) {
    const {lines} = this.columns;
    const from = lines[packet.fromFirst ? 0 : 1], to = lines[packet.fromFirst ? 1 : 0];
    const isGone = packet.lost !== kNone && packet.arrived === kNone;
    const start = packet.sent !== kNone ? view.y[packet.sent]
                : packet.arrived !== kNone ? view.y[packet.arrived] - 10 : view.y[packet.lost] - 4;
    const end = packet.arrived !== kNone ? view.y[packet.arrived] : start + (isGone ? 9 : 12);
    const x0 = packet.sent === kNone ? to + (from - to) * 0.3 : from;
    const x1 = isGone ? from + (to - from) * 0.55 : to;
    return {x0, y0: start - this.top, x1, y1: Math.max(end, start) - this.top, isGone};
  }

  drawArrow(packet) {
    const {x0, y0, x1, y1, isGone} = this.wayOf(packet);
    if (Math.max(y0, y1) < -30 || Math.min(y0, y1) > this.height + 30) return;
    const c = this.c;
    if (view.chosen === packet || view.found.has(packet)) {
      c.strokeStyle = view.chosen === packet ? colours.chosen : colours.found;
      c.lineWidth = view.chosen === packet ? 5 : 7;
      c.globalAlpha = view.chosen === packet ? 0.45 : 1;
      this.stroke(x0, y0, x1, y1);
      c.globalAlpha = 1;
    }
    c.strokeStyle = c.fillStyle = this.colourOf(packet);
    c.lineWidth = packet.again || packet.isBad ? 1.8 : 1.2;
    const isOpen = packet.arrived === kNone || packet.sent === kNone || packet.isCopy;
    c.setLineDash(isOpen ? [5, 4] : []);
    this.stroke(x0, y0, x1, y1);
    c.setLineDash([]);
    if (isGone) this.cross(x1, y1);
    else this.head(x0, y0, x1, y1);
  }

  stroke(x0, y0, x1, y1) {
    this.c.beginPath();
    this.c.moveTo(x0, y0);
    this.c.lineTo(x1, y1);
    this.c.stroke();
  }

  cross(x, y) {
    this.c.lineWidth = 2;
    this.stroke(x - 5, y - 5, x + 5, y + 5);
    this.stroke(x - 5, y + 5, x + 5, y - 5);
  }

  head(x0, y0, x1, y1) {
    const c = this.c, angle = Math.atan2(y1 - y0, x1 - x0);
    c.beginPath();
    c.moveTo(x1, y1);
    for (const turn of [-0.35, 0.35])
      c.lineTo(x1 - 9 * Math.cos(angle + turn), y1 - 9 * Math.sin(angle + turn));
    c.closePath();
    c.fill();
  }

  drawPacketLabel(packet) {
    const {x0, y0, x1} = this.wayOf(packet);
    if (y0 < -20 || y0 > this.height + 20) return;
    if (!this.hasRoom("packet", y0) && view.chosen !== packet) return;
    const room = Math.abs(this.columns.lines[1] - this.columns.lines[0]) - 24;
    const toRight = x1 > x0, x = x0 + (toRight ? 10 : -10);
    const align = toRight ? "left" : "right";
    this.c.font = packet.isBad || packet.again ? "600 " + kFont : kFont;
    const label = this.cut(whose(packet) + packet.label, room);
    const used = this.c.measureText(label).width + 10;
    this.plate(x, y0 - 3, used - 10, align);
    this.text(label, x, y0 - 3, this.colourOf(packet), align);
    this.c.font = "italic " + kFont;
    const remark = this.cut(packet.remark, room - used);
    if (remark !== "") {
      const at = x + (toRight ? used : -used);
      this.plate(at, y0 - 3, this.c.measureText(remark).width, align);
      this.text(remark, at, y0 - 3, packet.isBad || packet.draws ? colours.bad : colours.again, align);
    }
    this.c.font = kFont;
  }

  drawNote({item, anchor, label, level}) {
    const colour = [colours.faint, colours.again, colours.bad, colours.ink][level];
    this.note(item, anchor, label, colour);
  }

  note(item, record, text, colour) {
    const y = this.at(record);
    if (y < -20 || y > this.height + 20) return;
    const side = sideOf(item.qp);
    if (!this.hasRoom("note" + side, y) && view.chosen !== item) return;
    const x = this.columns.note(side);
    if (view.chosen === item || view.found.has(item)) {
      const colour = view.chosen === item ? colours.chosen : colours.found;
      this.c.fillStyle = colour;
      this.c.fillRect(side === 0 ? x + 2 : x - 4, y - 11, 2, 14);
    }
    this.text(whose(item) + text, x, y, colour, side === 0 ? "right" : "left", this.columns.margin - 8);
  }

  // Whose lines these are: above everything, and always there.
  drawHead() {
    const c = this.c, {lines} = this.columns;
    c.fillStyle = colours.panel;
    c.fillRect(0, 0, this.width, kHeadHeight);
    c.fillStyle = colours.line;
    c.fillRect(0, kHeadHeight - 1, this.width, 1);
    const ends = headTexts();
    c.textAlign = "center";
    for (const side of [0, 1]) {
      const room = Math.min(lines[1] - lines[0] - 20, 2 * lines[0] - 20);
      c.font = "600 13px system-ui, sans-serif";
      c.fillStyle = colours.ink;
      c.fillText(this.cut(ends[side][0], room), lines[side], 19);
      c.font = kFont;
      c.fillStyle = colours.faint;
      c.fillText(this.cut(ends[side][1], room), lines[side], 36);
    }
  }
}

function headTexts() {
  const texts = (qps) => {
    const names = [...new Set(qps.map((qp) => trace.qps[qp].name))];
    const programs = [...new Set(qps.map((qp) => trace.qps[qp].program).filter((p) => p !== ""))];
    const devices = [...new Set(qps.map((qp) => trace.qps[qp].device))];
    const numbers = [...new Set(qps.map((qp) => trace.qps[qp].number))];
    const which = names.length > 4 ? names.length + " QPs" : "QPs " + numbers.join(", ");
    return [names.length === 1 ? names[0] : devices.slice(0, 3).join(", ") + ", " + which,
            programs.slice(0, 3).join(", ")];
  };
  const shown = view.connection === kNone ? trace.connections : [trace.connections[view.connection]];
  return [0, 1].map((side) => shown.length === 0 ? ["", ""] : texts(shown.map((c) => c[side])));
}

function clockText(ns) {
  if (Math.abs(ns) >= 1e9) return (ns / 1e9).toFixed(7) + " s";
  return Math.abs(ns) < 1e7 ? (ns / 1e3).toFixed(2) + " us" : (ns / 1e6).toFixed(4) + " ms";
}

function fit(element) {
  const ratio = window.devicePixelRatio || 1;
  const width = element.clientWidth, height = element.clientHeight;
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const seenHeight = () => Math.max(canvas.clientHeight - kHeadHeight, 50);

let isDue = false;
function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    drawNow();
  });
}

function drawNow() {
  // On paper the picture itself is not there.
  if (canvas.clientWidth === 0 || overview.clientHeight === 0) return;
  const c = fit(canvas);
  c.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  const picture = new Picture(c, canvas.clientWidth, seenHeight(), view.top);
  c.save();
  c.translate(0, kHeadHeight);
  c.beginPath();
  c.rect(0, 0, canvas.clientWidth, seenHeight());
  c.clip();
  picture.draw();
  c.restore();
  picture.drawHead();
  drawOverview();
}

// What is seen, before the whole.
const whole = document.createElement("canvas");
let wholeIs = "";
function drawOverview() {
  const c = fit(overview), width = overview.clientWidth, height = overview.clientHeight;
  const scale = height / Math.max(view.height, seenHeight());
  const wanted = [view.version, overview.width, overview.height, colours.paper].join();
  if (wanted !== wholeIs) {
    whole.width = overview.width;
    whole.height = overview.height;
    const w = whole.getContext("2d");
    w.setTransform(c.getTransform());
    drawWhole(w, width, scale);
    wholeIs = wanted;
  }
  c.clearRect(0, 0, width, height);
  c.drawImage(whole, 0, 0, width, height);
  c.strokeStyle = colours.chosen;
  c.lineWidth = 2;
  c.strokeRect(1, view.top * scale + 1, width - 2, Math.max(seenHeight() * scale - 2, 6));
}

// How many packets there are where, and the bad ones in their colour.
function drawWhole(c, width, scale) {
  c.globalAlpha = 0.5;
  for (const packet of view.packets) {
    c.fillStyle = packet.again ? colours.again : colours[packet.colour];
    c.fillRect(6, view.y[packet.anchor] * scale, width - 12, 1);
  }
  c.globalAlpha = 1;
  for (const item of view.items) {
    if (!item.isBad) continue;
    c.fillStyle = colours.bad;
    c.fillRect(1, view.y[item.anchor] * scale - 1, 5, 2);
  }
  for (const item of view.found) {
    c.fillStyle = colours.mark;
    c.fillRect(width - 6, view.y[item.anchor] * scale - 1, 5, 2);
  }
}
