"use strict";
// A game round by round: who pulls what, which bundles are under way, and the regret so far.
(() => {
  if (!document.getElementById("watch")) return;  // a report may have none
  const game = JSON.parse(document.getElementById("watch-data").textContent);
  const byId = (id) => document.getElementById(`watch-${id}`);
  const canvas = byId("net"), slider = byId("round"), pen = canvas.getContext("2d");
  const ROUND_MS = 900, HALF = 0.5, MOST_CURVES = 8;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  // Colours of the page, which has a dark side too.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
  let INK, SOFT, PAPER, LOST;
  const dip = () => { INK = ink("ink"); SOFT = ink("soft"); PAPER = ink("paper"); LOST = dark.matches ? "#ff7b6b" : "#b22222"; };
  const colourOf = (arm) => game.arms[arm][dark.matches ? "dark" : "light"][0];
  const inkOn = (arm) => game.arms[arm][dark.matches ? "dark" : "light"][1];
  const N = game.agents.length, rounds = game.plays[0].actions.length;
  const liars = new Set(game.liars);
  const neighbours = game.agents.map(() => []);
  for (const [a, b] of game.links) { neighbours[a].push(b); neighbours[b].push(a); }

  // --- what was sent ------------------------------------------------------------------------------------

  // By round, all bundles that are seen in it: those sent then, and those still under way.
  const bundlesOf = (play) => {
    const seen = Array.from({ length: rounds }, () => []);
    const odd = new Set(play.odd.map(([a, b, sent]) => `${a} ${b} ${sent}`));
    play.said.forEach((said, r) => said.forEach((messages, a) => {
      if (!messages.length) return;
      for (const b of neighbours[a]) {
        if (!odd.has(`${a} ${b} ${r + 1}`)) seen[r].push({ a, b, sent: r + 1, end: r + 1, fate: "arrived", missing: 0, messages });
      }
    }));
    for (const [a, b, sent, fate, arrived, missing] of play.odd) {
      const bundle = { a, b, sent, end: arrived ?? sent, fate, missing, messages: play.said[sent - 1][a] };
      for (let t = sent; t <= Math.min(bundle.end, rounds); t++) seen[t - 1].push(bundle);
    }
    return seen;
  };

  const made = new Map();
  const bundles = (play) => {
    if (!made.has(play)) made.set(play, bundlesOf(play));
    return made.get(play);
  };

  // --- the state ----------------------------------------------------------------------------------------

  let now = 1, part = HALF, playing = false, last = 0;
  const play = () => game.plays[Number(byId("policy").value)];
  const origin = () => byId("origin").value === "" ? null : Number(byId("origin").value);
  const bestArm = (v) => Array.isArray(game.best) ? game.best[now - 1][v] : game.best;
  const isAway = (v) => game.away[now - 1].includes(v);
  const bornAs = (play, code, sent) => {  // the arm of a message's sample; a liar's is not known
    const born = sent - Math.floor(code / N);
    return born > 0 ? play.actions[born - 1][code % N] : -1;
  };

  // --- drawing ------------------------------------------------------------------------------------------

  let place = [], size = 10;
  const fit = () => {
    const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    size = Math.max(5, Math.min(13, 0.09 * Math.sqrt(box.width * box.height / N)));
    const edge = size + 8;
    place = game.places.map(([x, y]) => [edge + x * (box.width - 2 * edge), edge + (1 - y) * (box.height - 2 * edge)]);
  };

  const disc = (x, y, r, fill, stroke, width, dash) => {
    pen.beginPath();
    pen.arc(x, y, r, 0, 2 * Math.PI);
    if (fill) { pen.fillStyle = fill; pen.fill(); }
    if (stroke) { pen.setLineDash(dash || []); pen.strokeStyle = stroke; pen.lineWidth = width; pen.stroke(); pen.setLineDash([]); }
  };

  const cross = (x, y, r) => {
    pen.beginPath();
    pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r);
    pen.moveTo(x - r, y + r); pen.lineTo(x + r, y - r);
    pen.strokeStyle = LOST; pen.lineWidth = 1.8; pen.stroke();
  };

  const lines = () => {
    const down = new Set(bundles(play())[now - 1].filter((each) => each.fate === "down").map((each) => `${each.a} ${each.b}`));
    pen.lineWidth = 1;
    pen.strokeStyle = SOFT;
    for (const [a, b] of game.links) {
      pen.globalAlpha = Math.max(0.12, Math.min(0.7, 60 / game.links.length));
      pen.setLineDash(down.has(`${a} ${b}`) || down.has(`${b} ${a}`) ? [2, 5] : []);
      pen.beginPath(); pen.moveTo(...place[a]); pen.lineTo(...place[b]); pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  };

  // How far a bundle is, from 0 to 1, and whether it is gone.
  const progress = (bundle) => {
    if (bundle.fate === "down") return [0.15, true];
    const whole = bundle.end - bundle.sent + 1, along = (now - bundle.sent + part) / whole;
    if (bundle.fate === "lost") return [Math.min(along, HALF), along >= HALF];
    return [along, bundle.fate === "away" && bundle.end === now && part >= HALF];
  };

  const drawBundle = (bundle, followed) => {
    const code = followed === null ? bundle.a : bundle.messages.find((each) => each % N === followed);
    if (code === undefined) return;
    const [x1, y1] = place[bundle.a], [x2, y2] = place[bundle.b];
    const far = Math.hypot(x2 - x1, y2 - y1) || 1, side = 3.5;  // each direction keeps to its own side
    const [along, gone] = progress(bundle);
    const skip = Math.min(0.45, size / far), p = skip + along * (1 - 2 * skip);
    const x = x1 + p * (x2 - x1) - side * (y2 - y1) / far, y = y1 + p * (y2 - y1) + side * (x2 - x1) / far;
    const arm = bornAs(play(), code, bundle.sent), colour = arm < 0 ? INK : colourOf(arm);
    const r = Math.min(5.5, 2.4 + 0.5 * Math.log2(bundle.messages.length));
    pen.globalAlpha = gone ? Math.min(1, 2 - 1.6 * part) : 1;
    if (gone) cross(x, y, r);
    else if (bundle.end > bundle.sent) disc(x, y, r, PAPER, colour, 2);
    else disc(x, y, r, colour, PAPER, 0.8);
    if (!gone && bundle.missing && bundle.fate === "arrived") { pen.globalAlpha = 0.9; cross(x, y, r * 0.8); }
    pen.globalAlpha = 1;
  };

  const drawAgent = (v, followed) => {
    const [x, y] = place[v], arm = play().actions[now - 1][v];
    if (v === followed) disc(x, y, size + 5, null, INK, 1.2, [3, 3]);
    if (isAway(v)) { disc(x, y, size * 0.8, PAPER, SOFT, 1.2, [2, 2]); return; }
    if (liars.has(v)) {
      pen.beginPath();
      pen.moveTo(x, y - size * 1.2); pen.lineTo(x + size * 1.1, y + size * 0.9); pen.lineTo(x - size * 1.1, y + size * 0.9);
      pen.closePath(); pen.fillStyle = INK; pen.fill();
    } else {
      const best = arm === bestArm(v);
      disc(x, y, size, colourOf(arm), best ? INK : PAPER, best ? 2.2 : 1);
    }
    if (size < 8) return;
    pen.fillStyle = arm < 0 ? PAPER : inkOn(arm);
    pen.font = `${Math.round(size * 1.05)}px system-ui, sans-serif`;
    pen.textAlign = "center"; pen.textBaseline = "middle";
    pen.fillText(arm < 0 ? "!" : String(arm), x, y + 0.5);
  };

  const drawNetwork = () => {
    const followed = origin();
    pen.clearRect(0, 0, canvas.width, canvas.height);
    lines();
    for (const bundle of bundles(play())[now - 1]) drawBundle(bundle, followed);
    for (let v = 0; v < N; v++) drawAgent(v, followed);
  };

  // --- regret and words ---------------------------------------------------------------------------------

  let chart = null, past = null, cursor = null;
  const svg = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  const drawChart = () => {
    const x = Array.from({ length: rounds }, (_, r) => r + 1);
    const others = game.plays.filter((each) => each !== play()).slice(0, MOST_CURVES - 1);
    const drawn = game.plays.filter((each) => each === play() || others.includes(each));
    byId("policies").replaceChildren(...drawn.map((each) => {
      const item = document.createElement("li");
      item.append(Chart.sample(each), each.name);
      return item;
    }));
    if (drawn.length < game.plays.length) byId("policies").append("the others: as the policy above");
    chart = Chart.draw(byId("regret"), {
      x: { name: "round", scale: "linear" }, y: { name: "group regret", log: false }, lines: true, note: "",
      series: drawn.map((each) => ({ ...each, x, y: each.regret, low: each.regret, high: each.regret })),
    });
    // What is to come is faint; the curves themselves end at the round shown.
    const clip = svg("clipPath", { id: "watch-past" });
    past = svg("rect", { x: 0, y: 0, height: "100%" });
    clip.append(past);
    for (const curve of chart.root.querySelectorAll(".curve")) {
      const faint = curve.cloneNode(true);
      faint.setAttribute("class", "to-come");
      faint.setAttribute("opacity", 0.15);
      curve.before(faint);
      curve.setAttribute("clip-path", "url(#watch-past)");
    }
    cursor = svg("path", { stroke: "#1d1d1f", "stroke-width": 1.2, "pointer-events": "none" });
    chart.root.append(clip, cursor);
  };

  const drawCursor = () => {
    const at = chart.px(now);
    past.setAttribute("width", at);
    cursor.setAttribute("d", `M${at} ${chart.box.top}V${chart.box.bottom}`);
    for (const curve of chart.root.querySelectorAll(".curve")) {
      curve.setAttribute("opacity", curve.dataset.name === play().name ? 1 : 0.5);
    }
  };

  const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
  const sum = (list, of) => list.reduce((total, each) => total + of(each), 0);

  const sentWords = () => {
    const sent = bundles(play())[now - 1].filter((each) => each.sent === now);
    const messages = sum(sent, (each) => each.messages.length);
    if (!messages) return "Nothing is sent.";
    const lost = sum(sent, (each) => each.fate === "arrived" ? each.missing : each.messages.length);
    const late = sum(sent, (each) => each.fate === "arrived" && each.end > now ? each.messages.length - each.missing : 0);
    const fates = [[lost, "lost"], [late, "late"]].filter(([number]) => number).map(([number, word]) => `${number.toLocaleString("en")} ${word}`);
    return `${count(messages, "message")} on ${count(sent.length, "link")}: ${fates.length ? `${fates.join(", ")}, ${(messages - lost - late).toLocaleString("en")} on time` : "all arrive"}.`;
  };

  const words = () => {
    const pulls = play().actions[now - 1], active = pulls.map((_, v) => v).filter((v) => pulls[v] >= 0);
    const best = active.filter((v) => pulls[v] === bestArm(v)).length;
    const away = game.away[now - 1].length;
    const text = [`${best} of ${count(active.length, "agent")} ${best === 1 ? "pulls" : "pull"} the best arm${away ? `, ${away} away` : ""}.`, sentWords(),
                  `Regret so far ${Chart.number(play().regret[now - 1])}.`];
    const v = origin();
    if (v !== null) {
      const did = isAway(v) ? "is away" : pulls[v] < 0 ? "lies"
        : `pulls arm ${pulls[v]} and ${game.costs ? "pays" : "gets"} ${play().rewards[now - 1][v]}`;
      text.unshift(`Agent ${game.agents[v]} ${did}.`);
    }
    return text.join(" ");
  };

  const draw = () => {
    drawNetwork();
    drawCursor();
    slider.value = String(now);
    byId("now").textContent = `round ${now} of ${rounds}`;
    // Not while it plays: too fast to read, and a screen reader would never stop.
    byId("words").setAttribute("aria-live", playing ? "off" : "polite");
    const said = words();
    if (byId("words").textContent !== said) byId("words").textContent = said;
  };

  // --- playing ------------------------------------------------------------------------------------------

  const stop = () => { playing = false; byId("play").textContent = "Play"; };

  const step = (time) => {
    if (!playing) return;
    const passed = Math.min(1, (time - last) / ROUND_MS);
    if (!still.matches) part = passed;
    if (passed >= 1) {
      if (now === rounds) { part = HALF; stop(); draw(); return; }
      now += 1;
      last = time;
      part = still.matches ? HALF : 0;
    }
    if (!still.matches || passed >= 1) draw();
    window.requestAnimationFrame(step);
  };

  byId("play").addEventListener("click", () => {
    if (playing) { part = HALF; stop(); draw(); return; }
    if (now === rounds) now = 1;
    playing = true;
    byId("play").textContent = "Pause";
    last = performance.now();
    draw();
    window.requestAnimationFrame(step);
  });
  slider.max = String(rounds);
  slider.addEventListener("input", () => { stop(); now = Number(slider.value); part = HALF; draw(); });
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const hit = place.findIndex(([px, py]) => Math.hypot(px - x, py - y) < size + 6);
    byId("origin").value = hit < 0 || hit === origin() ? "" : String(hit);
    draw();
  });

  game.plays.forEach((each, i) => byId("policy").append(new Option(each.gamma === null ? each.name : `${each.name}, γ = ${each.gamma}`, String(i))));
  byId("origin").append(new Option("all agents", ""));
  game.agents.forEach((number, v) => byId("origin").append(new Option(`agent ${number}`, String(v))));
  byId("policy").addEventListener("change", () => { drawChart(); draw(); });
  byId("origin").addEventListener("change", draw);

  // --- the key ------------------------------------------------------------------------------------------

  const key = (tag, attributes, text) => {
    const item = document.createElement("li"), sample = svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18" });
    sample.append(svg(tag, attributes));
    item.append(sample, text);
    byId("key").append(item);
  };
  const drawKey = () => {
    byId("key").replaceChildren();
    game.arms.forEach((arm, k) => key("circle", { r: 7, fill: colourOf(k) }, `arm ${k}, mean ${arm.mean}${k === game.best ? ", the best" : ""}`));
    key("circle", { r: 7, fill: "none", stroke: INK, "stroke-width": 2.2 }, "pulls its best arm");
    key("circle", { r: 3.2, fill: INK }, "messages under way, in the colour of the sender's arm");
    const odd = game.plays.flatMap((each) => each.odd);
    if (odd.some((each) => each[4] > each[2])) key("circle", { r: 3.2, fill: "none", stroke: INK, "stroke-width": 2 }, "late");
    if (odd.some((each) => each[3] !== "arrived" || each[5])) key("path", { d: "M-4-4L4 4M-4 4L4-4", stroke: LOST, "stroke-width": 1.8 }, "lost");
    if (game.away.some((each) => each.length)) key("circle", { r: 6, fill: "none", stroke: SOFT, "stroke-width": 1.2, "stroke-dasharray": "2 2" }, "away");
    if (liars.size) key("path", { d: "M0-8L7 6H-7Z", fill: INK }, "lies");
  };
  const lay = () => { dip(); fit(); drawKey(); drawChart(); draw(); };
  dark.addEventListener("change", lay);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; lay(); } });
  window.addEventListener("beforeprint", lay);
  window.addEventListener("afterprint", lay);
  lay();
})();
