"use strict";
(() => {
  const run = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const narrow = () => window.innerWidth < 560;
  const shown = run.policies.map(() => true);
  const config = { displaylogo: false, responsive: true, modeBarButtons: [["toImage", "resetScale2d"]] };

  const translucent = (hex) => {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},0.16)`;
  };

  const layout = (x, y) => ({
    margin: { l: narrow() ? 52 : 70, r: 12, t: 10, b: 46 },
    font: { family: "inherit", size: narrow() ? 11 : 13, color: "#1d1d1f" },
    hovermode: "x unified",
    hoverlabel: { font: { size: narrow() ? 10 : 12 }, namelength: -1 },
    showlegend: false,
    dragmode: narrow() ? false : "zoom",
    xaxis: { gridcolor: "#e6e7ea", zeroline: false, ...x },
    yaxis: { gridcolor: "#e6e7ea", zeroline: false, automargin: true, ...y },
  });

  const drawCurves = () => {
    const logX = byId("log-x").checked;
    const logY = byId("log-y").checked;
    const point = run.points[Number(byId("point").value) || 0];
    const traces = [];
    run.policies.forEach((policy, i) => {
      const { mean, low, high } = point.curves[i];
      traces.push({
        x: [...run.rounds, ...[...run.rounds].reverse()], y: [...high, ...[...low].reverse()],
        fill: "toself", fillcolor: translucent(policy.colour), mode: "lines", line: { width: 0 },
        hoverinfo: "skip", visible: shown[i],
      });
      traces.push({
        x: run.rounds, y: mean, name: policy.name, mode: "lines", visible: shown[i],
        line: { color: policy.colour, dash: policy.dash, width: 2.2 },
        hovertemplate: "%{y:,.0f}",
      });
    });
    const decades = { dtick: 1, tickformat: ",.0f" };
    Plotly.react("curves", traces, layout(
      { title: { text: "round" }, ...(logX ? { type: "log", ...decades } : { type: "linear", tickformat: ",.0f" }) },
      { title: { text: "group regret" }, ...(logY ? { type: "log", ...decades }
        : { type: "linear", rangemode: "tozero", tickformat: ",.0f" }) },
    ), config);
  };

  const drawSweep = () => {
    if (!run.sweep) return;
    const traces = run.policies.map((policy, i) => {
      const ends = run.sweep.ends[i];
      return {
        x: run.sweep.values, y: ends.map((end) => end[0]), name: policy.name, visible: shown[i],
        error_y: { type: "data", symmetric: false, array: ends.map((end) => end[2] - end[0]),
                   arrayminus: ends.map((end) => end[0] - end[1]), thickness: 1.2, width: 3 },
        mode: run.sweep.numeric ? "lines+markers" : "markers",
        line: { color: policy.colour, dash: policy.dash, width: 2 },
        marker: { color: policy.colour, symbol: policy.symbol, size: 8 },
        hovertemplate: "%{y:,.0f}",
      };
    });
    const logY = byId("log-y").checked;
    Plotly.react("sweep", traces, layout(
      { title: { text: run.sweep.name }, ...(run.sweep.numeric ? { tickvals: run.sweep.values } : { type: "category" }) },
      { title: { text: `group regret at round ${run.horizon}` },
        ...(logY ? { type: "log", dtick: 1, tickformat: ",.0f" } : { rangemode: "tozero", tickformat: ",.0f" }) },
    ), config);
  };

  const draw = () => { drawCurves(); drawSweep(); };

  run.policies.forEach((policy, i) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => { shown[i] = box.checked; draw(); });
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = policy.colour;
    label.append(box, swatch, policy.name);
    byId("policies").append(label);
  });
  if (run.points.length > 1) {
    run.points.forEach((point, i) => byId("point").append(new Option(point.name, String(i))));
    byId("choose-point").hidden = false;
  }
  byId("sweep").hidden = !run.sweep;
  for (const id of ["log-x", "log-y", "point"]) byId(id).addEventListener("change", draw);
  let wasNarrow = narrow();
  window.addEventListener("resize", () => {
    if (narrow() !== wasNarrow) { wasNarrow = narrow(); draw(); }
  });
  draw();
})();
