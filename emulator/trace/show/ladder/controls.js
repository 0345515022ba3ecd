"use strict";
// Mouse, keys, search, the panel of fields, printing.

const details = document.getElementById("details");
const spoken = document.getElementById("spoken");
const search = document.getElementById("search");
const help = document.getElementById("help");
const kMaxPages = 60;

function scrollTo(top) {
  view.top = Math.max(0, Math.min(top, view.height - seenHeight()));
  redraw();
}

// Zooms by `factor`, so that what is at `y` of the picture stays there.
function zoomBy(factor, y = seenHeight() / 2) {
  const row = view.rows[Math.max(0, lowerBound(view.rows, (r) => view.y[r] >= view.top + y) - 1)];
  if (row === undefined) return;
  const offset = view.top + y - view.y[row], before = view.zoom;
  view.zoom = Math.max(1e-7, Math.min(1e5, view.zoom * factor));
  lay();
  scrollTo(view.y[row] + offset * view.zoom / before - y);
}

function zoomToAll() {
  // Heights grow with the zoom, but for what is folded: a few steps get there.
  for (let i = 0; i < 12 && view.height > 0; ++i) {
    const wanted = seenHeight() / view.height;
    if (Math.abs(wanted - 1) < 0.01) break;
    view.zoom = Math.max(1e-7, Math.min(view.scale === "folded" ? 1.5 : 1e5, view.zoom * wanted));
    lay();
  }
  scrollTo(0);
}

function choose(item, isWanted = true) {
  view.chosen = item;
  if (item === null) return redraw();
  const y = view.y[item.anchor];
  if (isWanted && (y < view.top + 30 || y > view.top + seenHeight() - 30))
    scrollTo(y - seenHeight() / 2);
  spoken.textContent = durationText(timeOf(item.anchor)) + ": " + nameOf(item);
  if (!details.hidden) showDetails();
  redraw();
}

function nameOf(item) {
  if (item.type === "packet")
    return whose(item) + item.label + (item.remark === "" ? "" : ", " + item.remark);
  return whose(item) + (item.type === "request" ? "request " : "") + item.label;
}

// The next of those items behind the chosen one, or before it; from what is seen when none is.
function step(list, direction) {
  if (list.length === 0) return;
  const from = view.chosen !== null ? view.chosen.anchor + 0
             : view.rows[lowerBound(view.rows, (r) => view.y[r] >= view.top)] ?? 0;
  let at = view.chosen === null ? -1 : list.indexOf(view.chosen);
  if (at >= 0) at += direction;
  else {
    at = lowerBound(list, (item) => item.anchor >= from);
    if (direction < 0) at -= 1;
  }
  choose(list[(at + list.length) % list.length]);
}

function find() {
  view.query = search.value.trim().toLowerCase();
  const words = view.query.split(/\s+/).filter((word) => word !== "");
  const hits = words.length === 0 ? []
             : view.items.filter((item) => words.every((word) => item.text.includes(word)));
  view.found = new Set(hits);
  view.version += 1;
  document.getElementById("matches").textContent =
      words.length === 0 ? "" : hits.length === 1 ? "1 match" : hits.length + " matches";
  redraw();
}

function row(name, value) {
  const line = document.createElement("tr");
  const head = document.createElement("th"), cell = document.createElement("td");
  head.textContent = name;
  head.scope = "row";
  cell.textContent = value;
  line.append(head, cell);
  return line;
}

function addRecord(index) {
  const [ns, qp, text, , values] = trace.records[index];
  const title = document.createElement("h2"), table = document.createElement("table");
  title.textContent = text;
  table.append(row("time", (ns / 1e9).toFixed(9) + " s"));
  if (qp !== kNone) table.append(row("at", trace.qps[qp].name));
  values.forEach((value, i) => {
    if (value !== 0) table.append(row(trace.fields[i], value));
  });
  details.append(title, table);
}

function addLine(text, isBad) {
  const line = document.createElement("p");
  line.textContent = text;
  if (isBad) line.className = "bad";
  details.append(line);
}

function showDetails() {
  const item = view.chosen;
  if (item === null) return;
  details.hidden = false;
  details.replaceChildren();
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close";
  close.textContent = "Close";
  close.addEventListener("click", hideDetails);
  details.append(close);
  if (item.type !== "note") addLine(nameOf(item), item.isBad);
  if (item.type === "packet" && item.sent !== kNone && item.arrived !== kNone)
    addLine(durationText(timeOf(item.arrived) - timeOf(item.sent)) + " on its way");
  if (item.type === "request" && item.posted !== kNone && item.last !== item.posted)
    addLine(durationText(timeOf(item.last) - timeOf(item.posted)) + " from its post on");
  item.records.forEach(addRecord);
  redraw();
}

function hideDetails() {
  details.hidden = true;
  canvas.focus();
  redraw();
}

function distanceTo(picture, packet, x, y) {
  const {x0, y0, x1, y1} = picture.wayOf(packet);
  const length = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const t = Math.max(0, Math.min(1, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / (length || 1)));
  return Math.hypot(x - x0 - t * (x1 - x0), y - y0 - t * (y1 - y0));
}

// What is drawn at a point of the picture; null: nothing.
function itemAt(x, y) {
  const picture = new Picture(canvas.getContext("2d"), canvas.clientWidth, seenHeight(), view.top);
  const {lines} = picture.columns;
  let best = null, near = 9;
  const offer = (item, distance) => {
    if (distance < near) [best, near] = [item, distance];
  };
  if (x > lines[0] && x < lines[1])
    for (const p of picture.seenPackets()) offer(p, distanceTo(picture, p, x, y));
  for (const r of view.requests) {
    const left = picture.columns.bar(sideOf(r.qp), r.column);
    if (x >= left - 2 && x <= left + 8 && y >= picture.at(r.anchor) - 2 && y <= picture.at(r.last) + 3)
      offer(r, 2);
  }
  for (const {item, anchor} of picture.seenNotes()) {
    const isBeside = sideOf(item.qp) === 0 ? x < lines[0] - 60 : x > lines[1] + 60;
    if (isBeside) offer(item, Math.abs(picture.at(anchor) - 4 - y));
  }
  return best;
}

function show() {
  chooseItems();
  lay();
  find();
  if (view.chosen !== null && !view.items.includes(view.chosen)) view.chosen = null;
  scrollTo(view.chosen === null ? 0 : view.y[view.chosen.anchor] - seenHeight() / 2);
}

function setScale(scale) {
  view.scale = scale;
  document.getElementById("scale").value = scale;
  view.zoom = 1;
  lay();
  if (scale === "true") zoomToAll();
  else scrollTo(view.chosen === null ? 0 : view.y[view.chosen.anchor] - seenHeight() / 2);
}

const problems = () => view.items.filter((item) => item.isBad || item.again);

const kKeys = {
  ArrowDown: () => step(view.items, 1),
  ArrowUp: () => step(view.items, -1),
  PageDown: () => scrollTo(view.top + seenHeight() * 0.9),
  PageUp: () => scrollTo(view.top - seenHeight() * 0.9),
  " ": () => scrollTo(view.top + seenHeight() * 0.9),
  Home: () => scrollTo(0),
  End: () => scrollTo(view.height),
  Enter: showDetails,
  "+": () => zoomBy(1.4),
  "=": () => zoomBy(1.4),
  "-": () => zoomBy(1 / 1.4),
  0: zoomToAll,
  n: () => step([...view.found], 1),
  N: () => step([...view.found], -1),
  e: () => step(problems(), 1),
  E: () => step(problems(), -1),
  t: () => setScale(view.scale === "folded" ? "true" : "folded"),
  s: savePicture,
  "/": () => search.focus(),
  "?": () => help.showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && !help.open) {
    if (document.activeElement === search) canvas.focus();
    else if (!details.hidden) hideDetails();
    return;
  }
  const isTyping = ["INPUT", "SELECT"].includes(document.activeElement?.tagName);
  const isButton = document.activeElement?.tagName === "BUTTON";
  if (help.open || isTyping || (isButton && ["Enter", " "].includes(event.key))) return;
  const action = kKeys[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

function listenToPointer() {
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? seenHeight() : 1;
    if (event.ctrlKey) zoomBy(Math.exp(-event.deltaY * unit / 300), event.offsetY - kHeadHeight);
    else scrollTo(view.top + event.deltaY * unit);
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => {
    drag = {y: event.clientY, top: view.top, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = [event.offsetX, event.offsetY - kHeadHeight];
    if (drag === null) {
      canvas.style.cursor = y > 0 && itemAt(x, y) !== null ? "pointer" : "default";
      return;
    }
    drag.moved ||= Math.abs(event.clientY - drag.y) > 4;
    if (drag.moved) scrollTo(drag.top - (event.clientY - drag.y));
  });
  canvas.addEventListener("pointerup", (event) => {
    const isClick = drag !== null && !drag.moved;
    drag = null;
    if (!isClick || event.offsetY < kHeadHeight) return;
    const item = itemAt(event.offsetX, event.offsetY - kHeadHeight);
    choose(item, false);
    if (item !== null) showDetails();
  });
  const goTo = (event) => scrollTo(event.offsetY / overview.clientHeight *
                                   Math.max(view.height, seenHeight()) - seenHeight() / 2);
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    goTo(event);
  });
  overview.addEventListener("pointermove", (event) => { if (event.buttons !== 0) goTo(event); });
}

// On paper there is everything, page by page, always light.
function makePages() {
  const pages = document.getElementById("pages");
  const kept = {top: view.top, chosen: view.chosen, theme: document.documentElement.dataset.theme};
  document.documentElement.dataset.theme = "light";
  readColours();
  view.chosen = null;
  pages.replaceChildren();
  const width = 1000, height = 1300, sheet = document.createElement("canvas");
  const count = Math.min(Math.ceil(view.height / height), kMaxPages);
  for (let page = 0; page < count; ++page) {
    sheet.width = 2 * width;
    sheet.height = 2 * (Math.min(height, view.height - page * height) + kHeadHeight);
    const c = sheet.getContext("2d");
    c.scale(2, 2);
    c.save();
    c.translate(0, kHeadHeight);
    const picture = new Picture(c, width, sheet.height / 2 - kHeadHeight, page * height);
    picture.draw();
    c.restore();
    picture.drawHead();
    const image = document.createElement("img");
    image.src = sheet.toDataURL();
    image.alt = "page " + (page + 1) + " of the trace";
    pages.append(image);
  }
  if (count * height < view.height) {
    const rest = document.createElement("p");
    rest.textContent = "What is behind these " + count + " pages is left out: choose a connection, or zoom out.";
    pages.append(rest);
  }
  document.documentElement.dataset.theme = kept.theme;
  [view.top, view.chosen] = [kept.top, kept.chosen];
  readColours();
  redraw();
}

const isDark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(isDarkNow) {
  document.documentElement.dataset.theme = isDarkNow ? "dark" : "light";
  readColours();
  redraw();
}

function fillControls() {
  const select = document.getElementById("connection");
  select.append(new Option("all " + trace.connections.length, kNone));
  trace.connections.forEach(([a, b, count], i) => {
    const ends = trace.qps[a].name + " ↔ " + trace.qps[b].name;
    const programs = [trace.qps[a].program, trace.qps[b].program].filter((p) => p !== "").join(", ");
    select.append(new Option(ends + (programs === "" ? "" : ", " + programs) + ": " + count +
                             (count === 1 ? " packet" : " packets"), i));
  });
  if (trace.connections.length === 1) view.connection = 0;
  select.value = view.connection;
  const legend = [["request", "requests"], ["answer", "ACKs, answers to READs"],
                  ["again", "sent again"], ["bad", "lost, NAK, RNR NAK, failed"],
                  ["wait", "posted, not taken"], ["bar", "under way"],
                  ["bar-receive", "a receive"], ["poll", "done, not polled yet"]];
  for (const [colour, text] of legend) {
    const line = document.createElement("li"), sample = document.createElement("i");
    sample.style.background = "var(--" + colour + ")";
    line.append(sample, text);
    document.getElementById("legend").append(line);
  }
  document.title = "rocemu: " + trace.title;
  document.querySelector("h1").textContent = trace.title;
  document.getElementById("summary").textContent = trace.summary;
}

function listen() {
  const on = (id, event, action) => document.getElementById(id).addEventListener(event, action);
  document.addEventListener("keydown", onKey);
  listenToPointer();
  on("connection", "change", (event) => { view.connection = Number(event.target.value); show(); });
  on("scale", "change", (event) => setScale(event.target.value));
  on("zoom-in", "click", () => zoomBy(1.4));
  on("zoom-out", "click", () => zoomBy(1 / 1.4));
  on("zoom-all", "click", zoomToAll);
  on("problem", "click", () => step(problems(), 1));
  on("save", "click", savePicture);
  on("keys", "click", () => help.showModal());
  on("theme", "click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  on("controls", "submit", (event) => event.preventDefault());
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step([...view.found], event.shiftKey ? -1 : 1);
  });
  new ResizeObserver(() => scrollTo(view.top)).observe(canvas);
  isDark.addEventListener("change", (event) => setTheme(event.matches));
  window.addEventListener("beforeprint", makePages);
}

// To the first packet, which much may be posted before.
function showFirst() {
  show();
  if (view.packets.length > 0 && view.y[view.packets[0].anchor] > seenHeight() * 0.8)
    scrollTo(view.y[view.packets[0].anchor] - 120);
}

fillControls();
listen();
setTheme(isDark.matches);
showFirst();
