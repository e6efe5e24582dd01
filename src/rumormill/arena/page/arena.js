"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const make = (tag, text, cls) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (cls) node.className = cls;
  return node;
};
const digits = (x) => x === null || x === undefined ? "–" : x >= 1000 ? Math.round(x).toLocaleString("en")
  : x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
const range = (low, high) => low === null || high === null ? "no interval" : `${digits(low)} – ${digits(high)}`;

// Bars on a logarithmic axis.
const bars = document.getElementById("bars");
const low = Math.max(1e-3, Math.min(0.5, ...data.entries.map((e) => Math.min(e.score, e.median_low ?? e.score))));
const high = Math.max(2, ...data.entries.map((e) => Math.max(e.score, e.median_high ?? e.score)));
const at = (x) => 100 * (Math.log(Math.max(x, low * 0.8)) - Math.log(low * 0.8)) / (Math.log(high * 1.1) - Math.log(low * 0.8));
for (const e of data.entries) {
  bars.append(make("div", e.entry, e.entry === data.leader ? "leader" : ""));
  const track = make("div", undefined, "track"), bar = make("div", undefined, "bar");
  bar.style.width = `${at(e.score)}%`;
  const one = make("div", undefined, "one");
  one.style.left = `${at(1)}%`;
  track.append(bar, one);
  if (e.median_low !== null) {
    const line = make("div", undefined, "whisker"), dot = make("div", undefined, "dot");
    line.style.left = `${at(e.median_low)}%`;
    line.style.width = `${at(e.median_high) - at(e.median_low)}%`;
    dot.style.left = `${at(e.median)}%`;
    track.append(line, dot);
  }
  track.title = `${e.entry}: score ${digits(e.score)}, median trial ${digits(e.median)} (${range(e.median_low, e.median_high)})`;
  bars.append(track, make("div", `${digits(e.score)} ×`, "value"));
}

// The table, sorted by any column.
const columns = [
  ["entry", (e) => e.entry, (e) => e.entry],
  ["score", (e) => e.score, (e) => digits(e.score)],
  ["common", (e) => e.score_common, (e) => digits(e.score_common)],
  ["median trial", (e) => e.median, (e) => `${digits(e.median)} (${range(e.median_low, e.median_high)})`],
  ["× leader", (e) => e.against_leader ?? 1,
    (e) => e.entry === data.leader ? "leader" : `${digits(e.against_leader)} (${range(e.against_leader_low, e.against_leader_high)})`],
  ["lost", (e) => e.lost, (e) => `${e.lost} of ${e.trials}`],
  ["good", (e) => e.good, (e) => `${e.good} of ${e.cells}`],
  ["worst cell", (e) => e.worst_ratio, (e) => `${digits(e.worst_ratio)} × ${e.worst_cell.replaceAll("/", "/\u200b")}`],
  ["messages a round", (e) => e.messages_per_round, (e) => digits(e.messages_per_round)],
  ["bytes a round", (e) => e.bytes_per_round, (e) => digits(e.bytes_per_round)],
];
const table = document.getElementById("table");
let sorted = 1, up = true;
function drawTable() {
  const head = make("tr"), body = make("tbody"), thead = make("thead");
  columns.forEach(([name], i) => {
    const th = make("th", undefined, `sort${i ? " number" : ""}`), button = make("button", name);
    if (i === sorted) th.setAttribute("aria-sort", up ? "ascending" : "descending");
    button.addEventListener("click", () => { up = i === sorted ? !up : true; sorted = i; drawTable(); });
    th.append(button);
    head.append(th);
  });
  const key = columns[sorted][1];
  const rows = [...data.entries].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (up ? 1 : -1));
  for (const e of rows) {
    const row = make("tr", undefined, e.entry === data.leader ? "leader" : "");
    columns.forEach(([, , show], i) => row.append(make("td", show(e), i ? "number" : "")));
    body.append(row);
  }
  thead.append(head);
  table.replaceChildren(thead, body);
}
drawTable();

// The heat map of one world.
const names = Object.keys(data.cells);
const worlds = [...new Set(names.map((name) => name.split("/")[2]))];
const world = document.getElementById("world"), map = document.getElementById("map"), told = document.getElementById("cell");
for (const name of worlds) world.append(make("option", name));
// Blue where regret is at the floor or below, white at 3 ×, red at 30 × and beyond.
function colour(ratio) {
  const x = Math.max(-1, Math.min(1, Math.log(ratio / 3) / Math.log(10)));
  return x < 0 ? `hsl(212 60% ${94 + 34 * x}%)` : `hsl(14 75% ${94 - 34 * x}%)`;
}
function tell(e, name) {
  const c = e.by_cell[name];
  told.textContent = c === undefined ? `${e.entry}, ${name}: not played: ${e.not_played[name] ?? "no reason is stored"}`
    : `${e.entry}, ${name}: mean ${digits(c.ratio)} × the floor (regret ${digits(c.regret)}, floor ${digits(c.floor)}); `
    + `median trial ${digits(c.median)} (${range(c.median_low, c.median_high)}), worst trial ${digits(c.worst)}, lost ${c.lost}; `
    + `${digits(c.messages)} messages and ${digits(c.wire_bytes)} bytes a trial.`;
}
function drawMap() {
  const grid = make("table"), head = make("tr"), thead = make("thead"), body = make("tbody");
  head.append(make("th", "network/law"));
  for (const e of data.entries) {
    const th = make("th");
    th.append(make("span", e.entry));
    head.append(th);
  }
  const longest = Math.max(...data.entries.map((e) => e.entry.length));
  head.style.height = `${Math.max(5, 0.62 * longest + 1)}em`;
  thead.append(head);
  for (const name of names.filter((each) => each.endsWith(`/${world.value}`))) {
    const row = make("tr");
    row.append(make("th", name.split("/").slice(0, 2).join("/")));
    for (const e of data.entries) {
      const c = e.by_cell[name], td = make("td", c === undefined ? "·" : digits(c.ratio), c === undefined ? "none" : c.lost ? "lost" : "");
      if (c !== undefined) td.style.background = colour(c.ratio);
      td.tabIndex = 0;
      td.addEventListener("click", () => tell(e, name));
      td.addEventListener("keydown", (event) => { if (event.key === "Enter") tell(e, name); });
      row.append(td);
    }
    body.append(row);
  }
  grid.append(thead, body);
  map.replaceChildren(grid);
}
world.addEventListener("change", drawMap);
drawMap();

const reasons = document.getElementById("reasons");
for (const e of data.entries) {
  const by = new Map();
  for (const [name, why] of Object.entries(e.not_played)) by.set(why, [...(by.get(why) ?? []), name]);
  for (const [why, cells] of by) reasons.append(make("li", `${e.entry}: ${why} (${cells.length} cells, as ${cells[0]})`));
}
document.getElementById("refused").hidden = !reasons.children.length;
