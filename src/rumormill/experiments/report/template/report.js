"use strict";
(() => {
  const run = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const shown = run.policies.map((policy) => policy.drawn);
  const selects = [];

  // The sweep point that the selects name, optionally with one axis changed.
  const point = (axis, value) => {
    const at = selects.map((select, i) => i === axis ? value : Number(select.value));
    return run.points.find((each) => each.at.every((v, i) => v === at[i]));
  };

  const curve = (i, x, y, low, high) => ({ ...run.policies[i], x, y, low, high });
  const visible = (each, i) => shown[i];
  const regretAxis = (name) => ({ name, log: byId("log-y").checked });

  const drawCurves = () => {
    const here = point();
    Chart.draw(byId("curves"), {
      x: { name: "round", scale: byId("log-x").checked ? "log" : "linear" }, y: regretAxis("group regret"),
      lines: true, note: run.band,
      series: here ? here.curves.map((c, i) => curve(i, run.rounds, c.mean, c.low, c.high)).filter(visible) : [],
    });
  };

  const drawSweep = () => {
    if (!run.axes.length) return;
    const number = run.axes.length > 1 ? Number(byId("along").value) : 0;
    const axis = run.axes[number];
    const places = axis.scale === "even" ? axis.words.map((_, i) => i) : axis.values;
    const found = axis.words.map((_, i) => point(number, i));
    const last = (values) => values[values.length - 1];
    const there = found.map((each, i) => i).filter((i) => found[i]);
    const series = run.policies.map((_, p) => {
      const ends = there.map((i) => found[i].curves[p]);
      return curve(p, there.map((i) => places[i]), ends.map((c) => last(c.mean)), ends.map((c) => last(c.low)),
                   ends.map((c) => last(c.high)));
    });
    Chart.draw(byId("sweep"), {
      x: { name: axis.name, scale: axis.scale, values: places, words: axis.words },
      y: regretAxis(`group regret at round ${run.horizon}`), lines: axis.numeric, bars: true, note: run.band,
      series: series.filter(visible),
    });
    const held = run.axes.filter((_, i) => i !== number).map((each) => {
      const i = run.axes.indexOf(each);
      return `${each.name}: ${each.words[Number(selects[i].value)]}`;
    });
    byId("held").textContent = held.length ? `Held: ${held.join(", ")}.` : "";
  };

  const draw = () => { drawCurves(); drawSweep(); };

  const choice = (name, words, parent, chosen) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    words.forEach((word, i) => select.append(new Option(word, String(i), false, i === chosen)));
    select.setAttribute("aria-label", name);
    select.addEventListener("change", draw);
    label.append(name, select);
    parent.append(label);
    return select;
  };

  run.policies.forEach((policy, i) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = shown[i];
    label.classList.toggle("off", !shown[i]);
    box.addEventListener("change", () => { shown[i] = box.checked; label.classList.toggle("off", !box.checked); draw(); });
    label.append(box, Chart.sample(policy), policy.name);
    byId("policies").append(label);
  });
  const more = shown.filter((each) => !each).length;
  if (more) byId("policies").append(`${more} with more regret are not drawn: tick them.`);
  if (run.axes.length > 1) choice("sweep along", run.axes.map((axis) => axis.name), byId("axes"), 0).id = "along";
  for (const axis of run.axes) selects.push(choice(axis.name, axis.words, byId("axes"), axis.words.length - 1));
  byId("sweep-chart").hidden = !run.axes.length;
  for (const id of ["log-x", "log-y"]) byId(id).addEventListener("change", draw);
  for (const button of document.querySelectorAll("button[data-kind]")) {
    const chart = button.closest(".with-files").querySelector(".chart");
    button.addEventListener("click", () => Chart.file(chart, `${run.name}-${chart.id}`, button.dataset.kind));
  }
  // A box that scrolls says so as long as there is more to see.
  const cue = (box) => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  const boxes = document.querySelectorAll(".scroll");
  for (const box of boxes) box.addEventListener("scroll", () => cue(box));
  const fit = () => { draw(); boxes.forEach(cue); };
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; fit(); } });
  window.addEventListener("beforeprint", fit);
  window.addEventListener("afterprint", fit);
  fit();
})();
