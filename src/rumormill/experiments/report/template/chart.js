"use strict";
// A chart as SVG: lines with bands or points with bars, plain or logarithmic axes, values under the pointer.
const Chart = (() => {
  const INK = "#1d1d1f", GRID = "#e1e2e6";
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  const SHAPES = {
    circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", square: "M-3.6-3.6H3.6V3.6H-3.6Z",
    "triangle-up": "M0-4.6L4.4 3.4H-4.4Z", "triangle-down": "M0 4.6L4.4-3.4H-4.4Z",
    diamond: "M0-5L5 0L0 5L-5 0Z", cross: "M-1.6-4.4H1.6V-1.6H4.4V1.6H1.6V4.4H-1.6V1.6H-4.4V-1.6H-1.6Z",
    x: "M-4.2-2L-2-4.2L0-2.2L2-4.2L4.2-2L2.2 0L4.2 2L2 4.2L0 2.2L-2 4.2L-4.2 2L-2.2 0Z",
  };

  const make = (tag, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  const number = (value) => Math.abs(value) >= 10 ? Math.round(value).toLocaleString("en")
    : String(Number(value.toPrecision(2)));

  // --- axes ---------------------------------------------------------------------------------------------

  const niceStep = (span, most) => {
    const rough = span / most, size = 10 ** Math.floor(Math.log10(rough));
    return size * [1, 2, 5, 10].find((part) => part * size >= rough);
  };

  const plainAxis = (low, high, most) => {
    const step = niceStep(high - low || 1, most), ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) ticks.push(i * step);
    return { place: (v) => (v - low) / (high - low || 1), ticks, words: ticks.map(number) };
  };

  const logAxis = (low, high) => {
    const from = Math.log10(low), to = Math.log10(high), ticks = [];
    for (let power = Math.floor(from); power <= Math.ceil(to); power++) {
      for (const part of to - from < 2.2 ? [1, 2, 5] : [1]) ticks.push(part * 10 ** power);
    }
    const inside = ticks.filter((v) => v >= low * 0.999 && v <= high * 1.001);
    return { place: (v) => (Math.log10(v) - from) / (to - from || 1), ticks: inside, words: inside.map(number) };
  };

  const xAxis = (x, series, most) => {
    if (x.words) {  // named places: evenly apart, or where their numbers are
      const at = x.scale === "log" ? x.values.map(Math.log) : x.values;
      const low = Math.min(...at), span = Math.max(...at) - low || 1;
      const place = (v) => 0.05 + 0.9 * ((x.scale === "log" ? Math.log(v) : v) - low) / span;
      return { place, ticks: x.values, words: x.words };
    }
    const all = series.flatMap((each) => each.x), high = Math.max(...all);
    return x.scale === "log" ? logAxis(Math.min(...all), high) : plainAxis(0, high, most);
  };

  const yAxis = (y, series) => {
    const all = series.flatMap((each) => [...each.y, ...each.low, ...each.high]);
    const some = all.filter((v) => v > 0);
    if (y.log && some.length) return logAxis(Math.min(...some) * 0.9, Math.max(...some) * 1.1);
    return plainAxis(0, Math.max(...all, 1e-9) * 1.04, 6);
  };

  // --- drawing ------------------------------------------------------------------------------------------

  const path = (points) => points.map((p, i) => `${i ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}`).join("");

  const swatch = (each, parent, at) => {
    make("path", { d: `M${at[0]} ${at[1]}h26`, stroke: each.colour, "stroke-width": 2.2,
                   "stroke-dasharray": each.dash }, parent);
    make("path", { d: SHAPES[each.symbol], fill: each.colour, transform: `translate(${at[0] + 13} ${at[1]})` }, parent);
  };

  // The chart as an SVG element; with `key`, names of the curves are below it: for files.
  const svg = (options, width, height, key) => {
    const series = options.series, narrow = width < 520, size = narrow ? 11 : 13;
    const columns = Math.max(1, Math.floor((width - 20) / 230));
    const below = key ? 22 * Math.ceil((series.length + 1) / columns) + 8 : 0;
    const x = xAxis(options.x, series, narrow ? 4 : 8), y = yAxis(options.y, series);
    const widest = 0.62 * size * Math.max(0, ...y.words.map((word) => word.length));
    const box = { left: Math.max(narrow ? 58 : 74, size + 18 + widest), right: width - 14, top: 10, bottom: height - 46 };
    const px = (v) => box.left + x.place(v) * (box.right - box.left);
    const py = (v) => box.bottom - y.place(v) * (box.bottom - box.top);
    const shown = (v) => !options.y.log || v > 0;
    const root = make("svg", { viewBox: `0 0 ${width} ${height + below}`, width, height: height + below,
                               "font-family": FONT, "font-size": size, fill: INK });
    if (key) make("rect", { width, height: height + below, fill: "white" }, root);
    let last = -Infinity;
    x.ticks.forEach((v, i) => {
      make("path", { d: `M${px(v)} ${box.top}V${box.bottom}`, stroke: GRID }, root);
      const half = x.words[i].length * size * 0.3;
      if (px(v) - half < last + 6) return;
      const middle = Math.min(px(v), width - half - 1);
      make("text", { x: middle, y: box.bottom + 18, "text-anchor": "middle", class: "tick" }, root, x.words[i]);
      last = middle + half;
    });
    y.ticks.forEach((v, i) => {
      make("path", { d: `M${box.left} ${py(v)}H${box.right}`, stroke: GRID }, root);
      make("text", { x: box.left - 8, y: py(v) + size * 0.35, "text-anchor": "end", class: "tick" }, root, y.words[i]);
    });
    make("path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, stroke: INK, fill: "none" }, root);
    make("text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, root, options.x.name);
    make("text", { transform: `translate(${size + 2} ${(box.top + box.bottom) / 2}) rotate(-90)`,
                   "text-anchor": "middle" }, root, options.y.name);
    // Along a sweep the policies stand side by side, so that none hides another's interval.
    const places = [...new Set(series.flatMap((each) => each.x))].map(px).sort((a, b) => a - b);
    const nearest = Math.min(100, ...places.slice(1).map((at, i) => at - places[i]));
    const edge = 2 * Math.min(places[0] - box.left, box.right - places.at(-1)) / Math.max(1, series.length - 1);
    const aside = options.bars ? Math.min(8, nearest / (series.length + 2), edge) : 0;
    const least = y.ticks.length ? (v) => Math.min(Math.max(py(v), box.top), box.bottom) : py;
    for (const each of series) {
      const group = make("g", { class: "curve", "data-name": each.name }, root);
      const known = each.x.map((_, i) => i).filter((i) => shown(each.y[i]));
      const low = (i) => shown(each.low[i]) ? least(each.low[i]) : box.bottom;
      const at = (i) => px(each.x[i]) + aside * (series.indexOf(each) - (series.length - 1) / 2);
      const points = known.map((i) => [at(i), py(each.y[i])]);
      if (options.bars) {
        known.forEach((i) => make("path", { d: `M${at(i)} ${least(each.high[i])}V${low(i)}`,
                                            stroke: each.colour, "stroke-width": 1.4 }, group));
      } else if (known.length) {
        const edge = [...known.map((i) => [px(each.x[i]), least(each.high[i])]),
                      ...known.toReversed().map((i) => [px(each.x[i]), low(i)])];
        make("path", { d: `${path(edge)}Z`, fill: each.colour, "fill-opacity": 0.16 }, group);
      }
      if (options.lines) make("path", { d: path(points), stroke: each.colour, "stroke-width": 2.2, fill: "none",
                                        "stroke-dasharray": each.dash, "stroke-linejoin": "round", class: "mean" }, group);
      // A few markers on a curve, all of them along a sweep: curves are told apart without colour too.
      const every = options.bars ? 1 : (box.right - box.left) / 6;
      let from = options.bars ? -Infinity : box.left - every * (0.2 + 0.13 * series.indexOf(each));
      points.forEach(([cx, cy]) => {
        if (!options.bars && cx < from + every) return;
        from = cx;
        make("path", { d: SHAPES[each.symbol], fill: each.colour, transform: `translate(${cx} ${cy})` }, group);
      });
    }
    if (key) {
      series.forEach((each, i) => {
        const at = [16 + (i % columns) * 230, height + 10 + 22 * Math.floor(i / columns)];
        swatch(each, root, at);
        make("text", { x: at[0] + 34, y: at[1] + 4 }, root, each.name);
      });
      const i = series.length;
      make("text", { x: 16 + (i % columns) * 230, y: height + 14 + 22 * Math.floor(i / columns) }, root, options.note);
    }
    return { root, px, box };
  };

  // --- the pointer --------------------------------------------------------------------------------------

  const pointing = (target, options, drawn) => {
    const hint = document.createElement("div");
    hint.className = "hint";
    hint.hidden = true;
    const line = make("path", { stroke: INK, "stroke-opacity": 0.4, d: "" }, drawn.root);
    const xs = options.series.length ? options.series[0].x : [];
    const hide = () => { hint.hidden = true; line.setAttribute("d", ""); };
    drawn.root.addEventListener("pointerleave", hide);
    drawn.root.addEventListener("pointermove", (event) => {
      if (!xs.length) return;
      const at = event.clientX - drawn.root.getBoundingClientRect().left;
      const i = xs.reduce((best, v, j) => Math.abs(drawn.px(v) - at) < Math.abs(drawn.px(xs[best]) - at) ? j : best, 0);
      const place = drawn.px(xs[i]);
      line.setAttribute("d", `M${place} ${drawn.box.top}V${drawn.box.bottom}`);
      const title = document.createElement("strong");
      title.textContent = `${options.x.name} ${options.x.words ? options.x.words[i] : number(xs[i])}`;
      const rows = options.series.toSorted((a, b) => b.y[i] - a.y[i]).map((each) => {
        const row = document.createElement("div");
        const band = each.low[i] < each.high[i] ? ` (${number(each.low[i])} – ${number(each.high[i])})` : "";
        row.textContent = `${each.name}: ${number(each.y[i])}${band}`;
        return row;
      });
      hint.replaceChildren(title, ...rows);
      hint.hidden = false;
      const left = place > (drawn.box.left + drawn.box.right) / 2 ? place - hint.offsetWidth - 12 : place + 12;
      hint.style.left = `${Math.max(0, left)}px`;
    });
    target.append(hint);
  };

  const draw = (target, options) => {
    target.chart = options;
    const drawn = svg(options, target.clientWidth, target.clientHeight, false);
    target.replaceChildren(drawn.root);
    pointing(target, options, drawn);
    return drawn;
  };

  // --- files --------------------------------------------------------------------------------------------

  const keep = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const file = (target, name, kind) => {
    const { root } = svg(target.chart, 820, 460, true);
    const text = new XMLSerializer().serializeToString(root);
    if (kind === "svg") { keep(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`); return; }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * image.naturalWidth;
      canvas.height = 2 * image.naturalHeight;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => keep(blob, `${name}.png`), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };

  const sample = (each) => {
    const root = make("svg", { width: 28, height: 12, viewBox: "0 0 28 12", class: "swatch", fill: "none" });
    swatch(each, root, [1, 6]);
    return root;
  };

  return { draw, file, number, sample };
})();
