"use strict";
// What there is to draw: the events of the chosen connection, and where each of them stands.
// A record is [ns since the trace began, QP, text, values of trace.fields]; everything else names
// records by their index, and -1 is none. ladder.cc writes them.

const trace = JSON.parse(document.getElementById("trace").textContent);
const kNone = -1;
const kClasses = ["request", "answer", "bad", "bad", "mark"];  // of packets: ladder.cc, class_of

function packetOf(row, index) {
  const [connection, fromFirst, sent, arrived, lost, kind, again, label, remark, records] = row;
  return {type: "packet", index, connection, fromFirst, sent, arrived, lost, again, label, remark,
          qp: trace.connections[connection][fromFirst ? 0 : 1], draws: /\bdraws /.test(remark), records, colour: kClasses[kind], isBad: lost !== kNone || kind === 2 || kind === 3,
          text: (label + " " + remark).toLowerCase(), anchor: [sent, arrived, lost].find((at) => at !== kNone)};
}

function requestOf(row, index) {
  const [qp, isReceive, posted, taken, acknowledged, pushed, polled, label, failed] = row;
  const records = [posted, taken, acknowledged, pushed, polled].filter((at) => at !== kNone);
  return {type: "request", index, qp, isReceive, posted, taken, acknowledged, pushed, polled, label,
          records, isBad: failed, text: label.toLowerCase(), anchor: Math.min(...records),
          last: Math.max(...records)};
}

// A line in a margin: a record that is no packet's.
function noteOf(row) {
  const [at, level, short] = row;
  const [, qp, text] = trace.records[at];
  return {type: "note", anchor: at, qp, label: short || text, isBad: level > 1, level, records: [at],
          text: text.toLowerCase()};
}

const packets = trace.packets.map(packetOf);
const requests = trace.requests.map(requestOf);
const notes = trace.notes.map(noteOf);

const timeOf = (record) => trace.records[record][0];

// Which end a QP is, 0 on the left and 1 on the right: as in the first connection that it has.
const sideOfQp = new Map();
trace.connections.forEach(([first, second]) => {
  if (!sideOfQp.has(first)) sideOfQp.set(first, 0);
  if (!sideOfQp.has(second)) sideOfQp.set(second, 1);
});

const view = {
  connection: kNone,  // kNone: all
  scale: "folded",
  zoom: 1,
  top: 0,       // the first pixel that is seen
  height: 0,    // of everything
  packets: [], requests: [], notes: [],
  lines: [],    // of the margins
  items: [],    // all of them in the order of their records
  y: new Float64Array(trace.records.length),
  longest: 0,   // how far down an arrow goes at most
  version: 0,   // of what has been laid out and found
  gaps: [],     // {y, height, ns}
  rows: [],     // records that are shown, in order
  chosen: null,
  found: new Set(),  // items
  query: "",
};

function sideOf(qp) {
  if (view.connection === kNone) return sideOfQp.get(qp) ?? 0;
  return trace.connections[view.connection][0] === qp ? 0 : 1;
}

function chooseItems() {
  const ends = view.connection === kNone ? null : trace.connections[view.connection];
  const belongs = (qp) => ends === null || qp === kNone || ends.includes(qp);
  view.packets = packets.filter((p) => ends === null || p.connection === view.connection);
  view.requests = requests.filter((r) => belongs(r.qp));
  view.notes = notes.filter((n) => belongs(n.qp));
  view.items = [...view.packets, ...view.requests, ...view.notes];
  view.items.sort((a, b) => a.anchor - b.anchor);
  view.lines = [...view.requests.flatMap(linesOf),
                ...view.notes.map((n) => ({item: n, anchor: n.anchor, label: n.label, level: n.level}))];
  view.lines.sort((a, b) => a.anchor - b.anchor);
  placeInColumns(view.requests);
}

// What the margin says of a request: that it was posted, and how it ended.
function linesOf(request) {
  const lines = [], level = request.isBad ? 2 : 3;
  if (request.posted !== kNone)
    lines.push({item: request, anchor: request.posted, label: "post " + request.label, level: 0});
  const end = request.polled !== kNone ? request.polled : request.pushed;
  if (end !== kNone)
    lines.push({item: request, anchor: end, level,
                label: (request.polled === kNone ? "completion " : "polled ") + trace.records[end][3]});
  return lines;
}

// Whose it is, where more than one QP stands at an end.
function whose(item) {
  const isPlain = view.connection !== kNone || trace.connections.length < 2 || item.qp === kNone;
  return isPlain ? "" : trace.qps[item.qp].number + "  ";
}

// Bars of the same time stand beside each other, as far as there is room.
const kColumns = 6;
function placeInColumns(list) {
  const free = [[], []];
  for (const request of [...list].sort((a, b) => a.anchor - b.anchor)) {
    const ends = free[sideOf(request.qp)];
    let column = ends.findIndex((end) => end < request.anchor);
    if (column < 0 && ends.length < kColumns) column = ends.length;
    if (column < 0) column = ends.indexOf(Math.min(...ends));
    ends[column] = Math.max(ends[column] ?? 0, request.last);
    request.column = column;
  }
}

// The height that a record needs for its text, at zoom 1.
function rowHeights() {
  const heights = new Map();
  const need = (record, height) => {
    if (record !== kNone) heights.set(record, Math.max(height, heights.get(record) ?? 0));
  };
  for (const p of view.packets) {
    need(p.sent, 17);
    need(p.lost, 2);
    need(p.arrived, p.sent === kNone ? 17 : 5);
  }
  for (const r of view.requests) {
    need(r.posted, 15);
    need(r.taken, 3);
    need(r.acknowledged, 2);
    need(r.pushed, r.polled === kNone ? 15 : 4);
    need(r.polled, 15);
  }
  for (const n of view.notes) need(n.anchor, 15);
  return heights;
}

function usualGap(rows) {
  const gaps = [];
  for (let i = 1; i < rows.length; ++i) {
    const gap = timeOf(rows[i]) - timeOf(rows[i - 1]);
    if (gap > 0) gaps.push(gap);
  }
  gaps.sort((a, b) => a - b);
  return gaps.length === 0 ? 1 : gaps[gaps.length >> 1];
}

function layFolded(heights) {
  const rows = view.rows;
  const long = Math.max(20 * usualGap(rows), 1000);
  let y = 10;
  rows.forEach((record, i) => {
    const gap = i === 0 ? 0 : timeOf(record) - timeOf(rows[i - 1]);
    if (gap > 0) y += 4 * Math.log10(1 + gap / 100) * view.zoom;
    if (gap >= long) {
      const height = 24 * Math.min(view.zoom, 1);
      view.gaps.push({y, height, ns: gap});
      y += height;
    }
    y += heights.get(record) * view.zoom;
    view.y[record] = y;
  });
  return y;
}

function layToScale() {
  const rows = view.rows;
  const first = timeOf(rows[0]);
  const perNs = 17 * view.zoom / Math.max(usualGap(rows), 1);
  for (const record of rows) view.y[record] = 20 + (timeOf(record) - first) * perNs;
  return view.y[rows[rows.length - 1]];
}

function lay() {
  view.gaps = [];
  const heights = rowHeights();
  view.rows = [...heights.keys()].sort((a, b) => a - b);
  view.height = 40;
  if (view.rows.length > 0)
    view.height += view.scale === "folded" ? layFolded(heights) : layToScale();
  view.longest = view.packets.reduce((most, p) => p.sent === kNone || p.arrived === kNone ? most
                                     : Math.max(most, view.y[p.arrived] - view.y[p.sent]), 20);
  view.version += 1;
}

function lowerBound(list, isBehind) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBehind(list[middle])) high = middle; else low = middle + 1;
  }
  return low;
}

// Those of a list, in the order of their anchors, that begin between two heights.
function between(list, from, to) {
  const first = lowerBound(list, (item) => view.y[item.anchor] >= from);
  let end = first;
  while (end < list.length && view.y[list[end].anchor] <= to) ++end;
  return list.slice(first, end);
}

const kUnits = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]];
function durationText(ns) {
  for (const [unit, name] of kUnits)
    if (Math.abs(ns) >= unit) return Number((ns / unit).toPrecision(4)) + " " + name;
  return ns + " ns";
}
