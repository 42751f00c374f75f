// Draws the curves of two runs, a plot for each metric.
const COLOURS = ["#E69F00", "#0072B2"]; // of A and B, from the palette of the figures
const curves = JSON.parse(document.getElementById("data").textContent);
const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"); // for Plotly

function draw() {
  const axis = { gridcolor: colourOf("grid"), zeroline: false, linecolor: colourOf("ink"), automargin: true };
  const place = document.getElementById("curves");
  place.replaceChildren();
  for (const { metric, lines } of curves) {
    const plot = document.createElement("div");
    place.append(plot);
    const traces = lines.map(({ name, steps, values }, index) => ({
      x: steps,
      y: values,
      name,
      mode: steps.length < 30 ? "lines+markers" : "lines",
      line: { color: COLOURS[index], width: 2, dash: index ? "solid" : "dash" },
    }));
    const layout = {
      title: { text: plain(metric), font: { size: 14 } },
      font: { color: colourOf("ink"), size: 12 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 56, r: 12, t: 40, b: 44 },
      height: 340,
      xaxis: { ...axis, title: { text: "step" } },
      yaxis: axis,
    };
    Plotly.newPlot(plot, traces, layout, { responsive: true, displaylogo: false, displayModeBar: false });
  }
  document.body.dataset.drawn = "1"; // for tests
}

if (curves.length) {
  const packed = document.getElementById("libraries");
  const [plotly] = unpack(packed.textContent, packed.dataset.sizes.split(",").map(Number));
  document.head.append(Object.assign(document.createElement("script"), { textContent: plotly }));
  document.getElementById("curves").closest("section").hidden = false;
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
