// Draws the page from its JSON. Texts of runs are inserted only by textContent or escaped(), so they cannot be HTML.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

const packed = JSON.parse(document.getElementById("libraries").textContent);
const [plotly, tables, style] = await Promise.all([packed.plotly, packed.tables, packed.style].map(unpack));
document.head.prepend(Object.assign(document.createElement("style"), { textContent: style }));
document.head.append(Object.assign(document.createElement("script"), { textContent: plotly }));
const { default: DataTable } = await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(tables)}`);

const report = JSON.parse(document.getElementById("data").textContent);
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000"];
const DASHES = ["solid", "dot", "dash", "dashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "star", "cross", "x", "triangle-down"];
const BLACK = PALETTE.at(-1);
const NARROW = 600; // pixels of a phone's screen
const MOST_MEANS = 30; // groups in the plot of means
const CHOSEN_AT_FIRST = 60; // initial number of runs in a plot
const SIDE_BY_SIDE = 4; // confusion matrices and texts
const MORE_METRICS = 2; // in the table of runs, besides the one that ranks; the details of a run have all
const FEW_ROWS = 15; // rows of a table without pages
const SHORT = 30; // characters of a sample that does not need a line's width
const MOST_IN_SVG = 100; // lines; a plot with more lines uses WebGL
const MOST_IN_LEGEND = 24;
const MOST_TICKS = 12; // values of a key that have one tick each
const SAME_LEFT_OUT = ["data", "status", "parameters", "steps", "reason if not counted"]; // columns
const ALL = "all";
const GROUP = "group";
const NONE = "none";
const MOST_PANELS = 4; // values of a key with one panel each
const FEWEST_NUMBERS = 3; // values of an axis; fewer say nothing
const VISIBLE = 3; // the plot shows so many times the largest difference between the best points of two lines

const byId = (id) => document.getElementById(id);
const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"); // for Plotly
const short = (text, most = 60) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const number = (value) => (value == null ? "–" : Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))));
const unique = (values) => [...new Set(values)];
const isNumber = (text) => text !== "" && Number.isFinite(Number(text));
const inOrder = (texts) => [...texts].sort((a, b) => (isNumber(a) && isNumber(b) ? a - b : isNumber(a) ? -1 : isNumber(b) ? 1 : a.localeCompare(b)));
const some = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;
const falls = (metric) => report.falls[metric] === true;
const dark = matchMedia("(prefers-color-scheme: dark)");
// A colour of the style; the head resolves light-dark().
const colourOf = (name) => getComputedStyle(Object.assign(document.head, { style: `color: var(--${name})` })).color;
const visible = (colour) => (colour === BLACK ? colourOf("ink") : colour); // black on a dark page is white
const isNarrow = () => innerWidth < NARROW;
const better = (metric) => `${metric} (${falls(metric) ? "lower" : "higher"} is better)`;

let board = null; // the board of the open tab
let groupsTable = null;
let runsTable = null;
let waiting = null; // the timer of the next redraw

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const badge = () => element("span", report.sampleMark, { class: "badge", title: "the numbers say nothing about real data" });

function plainTable(headers, rows, isSample) {
  const table = element("table", "", { class: "plain" });
  const head = table.createTHead().insertRow();
  for (const header of headers) head.append(element("th", header));
  const body = table.createTBody();
  rows.forEach((cells, index) => {
    const row = body.insertRow();
    for (const cell of cells) row.append(element("td", cell));
    if (isSample(index)) row.firstChild.append(" ", badge());
  });
  return table;
}

function fillSelect(id, values, chosen) {
  const select = byId(id);
  select.replaceChildren(...values.map((value) => element("option", value, { value })));
  select.value = values.includes(chosen) ? chosen : (values[0] ?? "");
}

// ---- tables

const showSection = (id, isShown) => (byId(id).closest("section").hidden = !isShown);

function showOverview() {
  showSection("overview", report.boards.length > 1);
  const best = report.boards.map((each) => each.groups.find((group) => group.sort[0] !== null));
  const rows = report.boards.map((each, index) => {
    const group = best[index];
    const value = group ? group.cells[each.headers.indexOf(each.metric)] : "–";
    return [each.note ? `${each.task} (${each.note})` : each.task, each.direction, value, group ? group.name : "no counted runs", `${some(each.runs.length, "run")} in ${some(each.groups.length, "group")}`];
  });
  const headers = ["task", "ranked by", "best mean", "best group", "runs"];
  byId("overview").replaceChildren(plainTable(headers, rows, (index) => report.boards[index].is_sample));
}

function showLeft() {
  const rows = report.left.map((run) => [run.folder, run.task ?? "unknown", run.data, run.status, run.why]);
  showSection("left", rows.length > 0);
  byId("left").replaceChildren(plainTable(["run", "task", "data", "status", "why"], rows, () => false));
}

function column(title, sortValue, text, options = {}) {
  const isNumeric = options.isNumeric ?? false;
  return {
    title: escaped(title),
    type: isNumeric ? "num" : "string",
    className: isNumeric ? "dt-right" : "dt-left",
    data: null,
    render: (row, use) => {
      if (use === "display") return text(row);
      const value = sortValue(row);
      return value ?? (use === "sort" && isNumeric ? Number.MAX_VALUE : "");
    },
  };
}

function keyColumn(key) {
  const values = board.runs.map((run) => run.keys[key]);
  const isNumeric = values.every((value) => isNumber(value) || value === "–");
  const value = (run) => (isNumeric ? (isNumber(run.keys[key]) ? Number(run.keys[key]) : null) : run.keys[key]);
  return column(key, value, (run) => escaped(run.keys[key]), { isNumeric });
}

function numberColumn(title, of) {
  const text = decimals(board.runs.map(of));
  return column(title, of, (run) => text(of(run)), { isNumeric: true });
}

const metricColumn = (metric) => numberColumn(metric, (run) => run.metrics[metric]);

const dataText = (run) => (run.is_sample ? `<span class="badge">${escaped(report.sampleMark)}</span>` : escaped(run.data));

function decimals(values) {
  // Returns a function that writes the numbers of a column with the same number of decimals.
  const known = values.filter((value) => value != null);
  const largest = Math.max(0, ...known.map(Math.abs)) || 1;
  const most = Math.max(0, 3 - Math.floor(Math.log10(largest)));
  const places = Math.max(0, ...known.map((value) => (value.toFixed(most).replace(/0+$/, "").split(".")[1] ?? "").length));
  return (value) => (value == null ? "–" : value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: largest >= 1e4 }));
}

function differing(columns, rows, names) {
  // Returns the columns without those of the names that have the same value in all of several rows.
  return columns.filter(({ title, render }) => !names.includes(title) || rows.length === 1 || unique(rows.map((row) => render(row, "sort"))).length > 1);
}

const paged = (rows) => ({ paging: rows.length > FEW_ROWS, info: rows.length > FEW_ROWS, pageLength: FEW_ROWS, lengthMenu: [FEW_ROWS, 50, 200, 1000], scrollX: true, autoWidth: false });

function showGroups() {
  groupsTable?.destroy();
  byId("groups").replaceChildren();
  const columns = board.headers.map((header, index) => {
    const values = board.groups.map((group) => group.sort[index]);
    const isNumeric = values.every((value) => value === null || typeof value === "number");
    const text = (group) => {
      const cell = escaped(group.cells[index]);
      if (header === "differ in" && group.differ.length) return `<span class="badge" title="the runs of this group differ in more than the seed">${cell}</span>`;
      return header === "data" && board.is_sample ? cell.replace(escaped(report.sampleMark), `<span class="badge">${escaped(report.sampleMark)}</span>`) : cell;
    };
    const made = column(header, (group) => group.sort[index], text, { isNumeric });
    return header.startsWith("against ") ? { ...made, className: "dt-left" } : made;
  });
  groupsTable = new DataTable(byId("groups"), {
    data: board.groups,
    columns: differing(columns, board.groups, SAME_LEFT_OUT),
    order: [[0, "asc"]],
    searching: board.groups.length > FEW_ROWS,
    ...paged(board.groups),
  });
}

function showRuns() {
  runsTable?.destroy();
  byId("runs").replaceChildren();
  const others = board.metrics.slice(1);
  const isFew = board.runs.length < FEWEST_NUMBERS;
  const columns = [
    column("rank", (run) => run.rank, (run) => run.rank ?? "–", { isNumeric: true }),
    ...board.metrics.slice(0, 1).map(metricColumn),
    ...board.swept.map(keyColumn),
    keyColumn("seed"),
    column("data", (run) => run.data, dataText),
    column("status", (run) => run.status, (run) => escaped(run.status)),
    ...[...others.filter((name) => name.startsWith("test/")), ...others.filter((name) => !name.startsWith("test/"))].slice(0, MORE_METRICS).map(metricColumn),
    column("parameters", (run) => run.parameters, (run) => run.parameters?.toLocaleString("en") ?? "–", { isNumeric: true }),
    column("steps", (run) => run.steps, (run) => run.steps?.toLocaleString("en") ?? "–", { isNumeric: true }),
    numberColumn("fit (s)", (run) => run.seconds),
    column("folder", (run) => run.folder, (run) => escaped(run.folder.slice(run.folder.lastIndexOf("/") + 1))),
    column("reason if not counted", (run) => run.why, (run) => escaped(run.why)),
  ];
  runsTable = new DataTable(byId("runs"), {
    data: board.runs,
    columns: differing(columns, board.runs, SAME_LEFT_OUT),
    order: [[0, "asc"]],
    searching: !isFew,
    ...paged(board.runs),
    select: { style: "os", keys: true },
    columnControl: [
      { target: 0, content: ["order"] },
      { target: 1, content: isFew ? [] : ["search"] },
    ],
    ordering: { indicators: false, handler: true },
    language: { emptyTable: "no runs", zeroRecords: "no runs match the filters" },
  });
  for (const cell of document.querySelectorAll("#runs_wrapper thead [data-dt-column]:has(input)")) {
    const name = runsTable.column(cell.dataset.dtColumn).title();
    cell.querySelectorAll("input, select").forEach((field) => field.setAttribute("aria-label", `filter of ${name}`));
  }
  runsTable.on("search.dt select.dt deselect.dt", redrawSoon);
  runsTable.on("select.dt deselect.dt", showDetails);
  showDetails();
}

function showDetails() {
  // Shows everything about the selected run below the table of runs.
  const place = byId("details");
  const selected = runsTable.rows({ selected: true }).data().toArray();
  place.hidden = selected.length !== 1;
  if (place.hidden) return;
  const [run] = selected;
  const of = (titles, facts) => plainTable(titles, facts.filter(([, value]) => value != null && value !== ""), () => false);
  const settings = { folder: run.folder, ...run.settings, data: run.data, status: run.status, "reason if not counted": run.why };
  const results = { ...run.metrics, "AUC of the validation split": run.auc, parameters: run.parameters, steps: run.steps, "fit (s)": run.seconds };
  const links = element("p");
  for (const file of run.files) {
    const address = [".", ...`${run.folder}/${file}`.split("/").map(encodeURIComponent)].join("/");
    links.append(element("a", file, { href: address, target: "_blank" }));
  }
  const tables = element("div", "", { class: "many" });
  tables.append(of(["setting", "value"], Object.entries(settings)), of(["result", "value"], Object.entries(results).map(([name, value]) => [name, number(value)])));
  if (run.confusion) tables.append(classTable(run.confusion));
  const curves = element("div", "", { class: "plot" });
  place.replaceChildren(element("h3", named(run)), links, ...(run.command ? [element("pre", run.command)] : []), tables, curves);
  const metric = lastName(byId("metric").value);
  const traces = run.curves.flatMap(({ steps, values }) => Object.entries(values).filter(([name]) => lastName(name) === metric && steps.length > 1).map(([name, y]) => ({ mode: "lines", x: steps, y, name: plain(name) })));
  if (traces.length) Plotly.newPlot(curves, traces, layout(metric, "step", plain(metric), { showlegend: true, height: 320 }), config);
  if (run.texts) place.append(element("pre", run.texts));
  place.scrollIntoView({ block: "nearest" });
}

function classTable({ classes, counts }) {
  // Returns the table of precision, recall and F1 of each class of a confusion matrix.
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const rows = classes.map((name, index) => {
    const [right, texts, predicted] = [counts[index][index], sum(counts[index]), sum(counts.map((row) => row[index]))];
    const share = (whole) => (whole ? right / whole : 0).toFixed(4);
    return [name, texts.toLocaleString("en"), share(predicted), share(texts), share((texts + predicted) / 2)];
  });
  return plainTable(["class", "texts", "precision", "recall", "F1"], rows, () => false);
}

// ---- choice of the runs in the plots

const passing = () => runsTable.rows({ search: "applied" }).data().toArray().sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));

const drawnRuns = () => passing().slice(0, byId("most").value === ALL ? Infinity : Number(byId("most").value));

const counted = (runs) => runs.filter((run) => run.rank !== null);

function redrawSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 60);
}

function redraw() {
  const all = passing();
  const runs = drawnRuns();
  const colours = colouring(all);
  byId("drawn").textContent =
    runs.length < all.length
      ? `The plots show the best ${runs.length} of the ${all.length} filtered runs.`
      : `The plots show all ${all.length} ${all.length < board.runs.length ? `filtered runs of ${board.runs.length}` : "runs"}.`;
  drawMeans();
  drawCurves(runs, colours);
  drawParallel(counted(runs));
  drawCosts(counted(runs), colours);
  drawNumbers(counted(all));
  drawHeat(counted(all));
  drawConfusion();
  drawTexts();
  makeScrollable();
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1); // for tests
}

function colouring(runs) {
  const key = byId("colour").value;
  const nameOf = (run) => (key === GROUP ? board.groups[run.group].name : run.keys[key]);
  const names = key === GROUP ? unique(runs.map((run) => run.group)).sort((a, b) => a - b).map((index) => board.groups[index].name) : inOrder(unique(runs.map(nameOf)));
  const place = new Map(names.map((name, index) => [name, index]));
  return (run) => {
    const index = place.get(nameOf(run));
    const round = Math.floor(index / PALETTE.length);
    return { name: `${key === GROUP ? "" : `${key} `}${nameOf(run)}`, index, count: names.length, colour: visible(PALETTE[index % PALETTE.length]), dash: DASHES[round % DASHES.length], symbol: SYMBOLS[index % SYMBOLS.length] };
  };
}

// ---- plots

const titled = (text) => ({ text: [text, ...(board.is_sample ? [report.sampleMark] : [])].map(plain).join(isNarrow() ? "<br>" : " – "), font: { size: isNarrow() ? 12 : 15 }, x: 0, xref: "container", xanchor: "left" });

function layout(title, x, y, more = {}) {
  // The caller has escaped the titles x and y for Plotly. The title of the plot is escaped here.
  const axis = { gridcolor: colourOf("pale"), zeroline: false, linecolor: colourOf("ink"), ticks: "outside", automargin: true };
  return {
    title: titled(title),
    font: { family: getComputedStyle(document.body).fontFamily, color: colourOf("ink"), size: isNarrow() ? 11 : 13 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 64, r: 16, t: 40, b: 56 },
    height: 430,
    hovermode: "closest",
    hoverlabel: { align: "left", namelength: -1 },
    ...more,
    xaxis: { ...axis, title: { text: x }, ...more.xaxis },
    yaxis: { ...axis, title: { text: y }, ...more.yaxis },
  };
}

function withLegend(names, titleLines = 1) {
  // Adds a legend below the plot, and the space for it.
  const shown = names.length > MOST_IN_LEGEND ? 1 : names.length;
  const columns = Math.max(1, Math.min(4, Math.floor(Math.min(500, innerWidth - 100) / (60 + 6.6 * Math.max(1, ...names.map((name) => short(name).length))))));
  const bottom = 40 + 20 * titleLines + 20 * Math.ceil(shown / columns);
  return {
    showlegend: true,
    height: 380 + bottom,
    margin: { l: 64, r: 16, t: 40, b: bottom },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 12 } },
  };
}

const config = { responsive: true, displaylogo: false, displayModeBar: isNarrow() ? false : "hover", modeBarButtonsToRemove: ["lasso2d", "select2d"], topojsonURL: "" };

const scale = () => [[0, colourOf("line")], [1, colourOf("for")]]; // the best is the darkest, on a dark page the brightest

function plot(id, traces, plotLayout, whenEmpty) {
  const place = byId(id);
  if (!traces.length || place.hidden) {
    if (place.data) Plotly.purge(place);
    place.replaceChildren(element("p", whenEmpty, { class: "empty" }));
    return;
  }
  if (!place.data) place.replaceChildren();
  Plotly.react(place, traces, plotLayout, config);
}

function drawMeans() {
  // Draws the mean of each of the best groups with its 95% interval over seeds.
  const groups = board.groups.filter((group) => group.sort[0] !== null && group.mean !== null).slice(0, MOST_MEANS);
  const isShown = groups.length > 1 && groups.some((group) => group.halfWidth !== null);
  showSection("means", isShown);
  if (!isShown) return;
  const trace = {
    mode: "markers",
    x: groups.map((group) => group.mean),
    y: groups.map((_, index) => index),
    error_x: { type: "data", array: groups.map((group) => group.halfWidth ?? 0), thickness: 1.5, color: colourOf("ink") },
    marker: { color: colourOf("accent"), size: 9 },
    text: groups.map((group, index) => plain(`${group.name}: ${group.cells[1]}`)),
    hovertemplate: "%{text}<extra></extra>",
  };
  const names = groups.map((group) => lines(group.name, isNarrow() ? 22 : 44).map((line) => plain(short(line, 44))).join("<br>"));
  const more = {
    yaxis: { tickvals: trace.y, ticktext: names, range: [groups.length - 0.5, -0.5], showgrid: false, ticks: "" },
    height: 120 + 26 * groups.length + 12 * (names.join("<br>").split("<br>").length - groups.length),
  };
  const left = board.groups.length > groups.length ? `, the best ${groups.length} groups` : "";
  plot("means", [trace], layout(`${board.metric} over seeds${left}`, plain(better(board.metric)), "", more), "");
}

function drawCurves(runs, colours) {
  const chosen = byId("metric").value;
  const metric = board.curves.includes(chosen) ? chosen : board.curves[0];
  const seen = new Set();
  const lines = runs.flatMap((run) => {
    const curve = run.curves.find((each) => metric in each.values);
    if (!curve) return [];
    const { name, index, count, colour, dash } = colours(run);
    const isFirst = !seen.has(name);
    seen.add(name);
    const line = {
      type: runs.length > MOST_IN_SVG ? "scattergl" : "scatter",
      mode: curve.steps.length < 30 ? "lines+markers" : "lines",
      y: curve.values[metric],
      name: plain(short(name)),
      legendgroup: name,
      legendrank: 1000 + index,
      showlegend: isFirst && count <= MOST_IN_LEGEND,
      line: { color: colour, dash, width: 1.8 },
      marker: { size: 5 },
      text: plain(run.why ? `${run.label} (${run.status}, not counted)` : run.label),
      hovertemplate: `%{text}<br>%{y:.5g} at %{x:,.6~g}<extra></extra>`,
    };
    return [{ line, curve }];
  });
  const empty = `The filtered runs have no curve of ${metric || "any metric"}.`;
  const over = (x) => lines.map(({ line, curve }) => ({ ...line, x: curve[x] }));
  const below = withLegend([...seen]);
  plot("curves-steps", over("steps"), layout(`${metric} over steps`, "step", plain(better(metric)), below), empty);
  plot("curves-seconds", over("seconds"), layout(`${metric} over time`, "time since the start of the fit (s)", plain(better(metric)), below), empty);
}

const lastName = (metric) => metric.slice(metric.lastIndexOf("/") + 1);
const lastPart = (key) => key.replace(/\._target_$/, "").split(".").at(-1);

function dimension(key, texts) {
  const values = inOrder(unique(texts));
  if (values.length > MOST_TICKS && values.every(isNumber)) return { label: lastPart(key), values: texts.map(Number) };
  const labelled = values.length <= 40;
  return {
    label: lastPart(key),
    values: texts.map((text) => values.indexOf(text)),
    range: [-0.3, values.length - 0.7],
    tickvals: labelled ? values.map((_, index) => index) : [],
    ticktext: labelled ? values.map((text) => short(text, 24)) : [],
  };
}

function drawParallel(runs) {
  const metric = byId("metric").value;
  const shown = runs.filter((run) => run.metrics[metric] != null);
  const keys = [...board.swept, "seed"];
  if (!shown.length) return plot("parallel", [], {}, `The filtered runs have no value of ${metric || "any metric"}.`);
  const values = shown.map((run) => run.metrics[metric]);
  const trace = {
    type: "parcoords",
    line: { color: values, colorscale: scale(), showscale: true, reversescale: falls(metric), colorbar: { title: { text: plain(metric), side: "right" }, thickness: 14 } },
    dimensions: [...keys.map((key) => dimension(key, shown.map((run) => run.keys[key]))), { label: metric, values }],
    labelangle: isNarrow() ? -25 : 0,
    labelfont: { size: 13, color: colourOf("ink") },
    tickfont: { size: 12, color: colourOf("ink") },
  };
  const more = { height: 440, margin: { l: 90, r: 40, t: 96, b: 30 } };
  const { xaxis, yaxis, ...withoutAxes } = layout(`${shown.length} runs: ${better(metric)}`, "", "", more);
  withoutAxes.title = { ...withoutAxes.title, yref: "container", y: 0.96 };
  withoutAxes.paper_bgcolor = colourOf("paper"); // the labels have a halo of this colour
  plot("parallel", [trace], withoutAxes, "");
}

function paretoFront(points, isFalling) {
  // Returns the points {x, y} with a better y than all points with the same or a smaller x, from left to right.
  const ordered = [...points].sort((a, b) => a.x - b.x || (isFalling ? a.y - b.y : b.y - a.y));
  const front = [];
  for (const point of ordered) {
    const last = front.at(-1);
    if (!last || (isFalling ? point.y < last.y : point.y > last.y)) front.push(point);
  }
  return front;
}

function logAxis(values) {
  // Returns a logarithmic axis. Within less than one power of ten, its ticks are evenly spaced round numbers.
  if (values.some((value) => value <= 0)) return { type: "linear" };
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(Math.log10(high / low) * 0.07, 0.02);
  const range = [Math.log10(low) - room, Math.log10(high) + room];
  const rough = (10 ** range[1] - 10 ** range[0]) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  return { type: "log", range, exponentformat: "SI", tick0: 0, dtick: high / low > 100 ? 1 : high / low > 4 ? "D2" : `L${step}` };
}

function drawCost(id, runs, colours, title, xTitle, cost, textOf) {
  const metric = byId("metric").value;
  const points = runs
    .filter((run) => run.metrics[metric] != null && cost(run) > 0)
    .map((run) => ({ x: cost(run), y: run.metrics[metric], run, ...colours(run) }));
  const names = unique(points.map((point) => point.name));
  const traces = names.map((name) => {
    const own = points.filter((point) => point.name === name);
    return {
      mode: "markers",
      x: own.map((point) => point.x),
      y: own.map((point) => point.y),
      name: plain(short(name)),
      legendrank: 1000 + own[0].index,
      showlegend: own[0].count <= MOST_IN_LEGEND,
      marker: { color: own[0].colour, symbol: own.map((point) => (point.run.is_baseline ? "x-open" : own[0].symbol)), size: 9, opacity: 0.85, line: { color: colourOf("paper"), width: 1 } },
      text: own.map((point) => plain(`${point.run.label}${point.run.is_baseline ? " (baseline)" : ""}${textOf(point.run)}`)),
      hovertemplate: "%{text}<br>%{y:.5g} at %{x:.4s}<extra></extra>",
    };
  });
  const front = paretoFront(points, falls(metric));
  if (front.length) {
    const line = { color: colourOf("ink"), width: 1.5, dash: "dash" };
    traces.push({ mode: "lines", x: front.map((point) => point.x), y: front.map((point) => point.y), name: "Pareto front", legendrank: 1, line, hoverinfo: "skip", meta: "front" });
  }
  const yAxis = logAxis(points.map((point) => point.y));
  const more = { ...withLegend(["Pareto front", ...names], xTitle.split("<br>").length), xaxis: logAxis(points.map((point) => point.x)), yaxis: yAxis };
  const yTitle = yAxis.type === "linear" ? `${better(metric)}, linear axis: some values are not positive` : better(metric);
  const missing = runs.length - points.length;
  const noted = missing ? `${title} (${some(missing, "run")} without)` : title;
  plot(id, traces, layout(noted, xTitle, plain(yTitle), more), `No filtered run has both ${metric || "a metric"} and ${title.split(" against ")[1]}.`);
}

function drawCosts(runs, colours) {
  const metric = byId("metric").value;
  drawCost("parameters", runs, colours, `${metric} against parameters`, "trainable parameters", (run) => run.parameters, () => "");
  const kinds = unique(runs.map((run) => run.computeFrom).filter(Boolean));
  const xTitle = ["compute of the training (floating-point operations)", ...kinds].map(plain).join("<br>");
  drawCost("compute", runs, colours, `${metric} against compute`, xTitle, (run) => run.compute, (run) => `, compute ${run.computeFrom}`);
}

const numbersOf = (key) => unique(counted(board.runs).map((run) => run.keys[key]));

function isAxis(key) {
  const values = numbersOf(key).filter((value) => value !== "–"); // a baseline has no value
  return values.length >= FEWEST_NUMBERS && values.every(isNumber);
}

function meansOf(runs, key, metric) {
  // Returns the points of a line: each value of the key with the mean, lowest and highest value of the metric.
  return inOrder(unique(runs.map((run) => run.keys[key]))).map((text) => {
    const values = runs.filter((run) => run.keys[key] === text).map((run) => run.metrics[metric]);
    return { x: Number(text), y: values.reduce((sum, value) => sum + value, 0) / values.length, low: Math.min(...values), high: Math.max(...values), count: values.length };
  });
}

const bestOf = (points, metric) => points.reduce((best, point) => (falls(metric) === point.y < best.y ? point : best));

function visibleRange(lines, metric) {
  // Returns the range of the metric in which the best points of the lines differ; null if that is all.
  const bests = lines.map(({ points }) => bestOf(points, metric).y);
  const spread = Math.max(...bests) - Math.min(...bests);
  const all = lines.flatMap(({ points }) => points.map((point) => point.y));
  const [low, high] = falls(metric) ? [Math.min(...bests) - 0.1 * spread, Math.min(...bests) + VISIBLE * spread] : [Math.max(...bests) - VISIBLE * spread, Math.max(...bests) + 0.1 * spread];
  return spread && (Math.min(...all) < low || Math.max(...all) > high) ? [low, high] : null;
}

function drawNumbers(runs) {
  const [key, lineKey, panelKey, metric] = [byId("number-x").value, byId("number-lines").value, byId("number-panels").value, byId("metric").value];
  if (!key) return;
  const shown = runs.filter((run) => run.metrics[metric] != null && isNumber(run.keys[key]));
  if (!shown.length) return plot("numbers", [], {}, `No filtered run has a value of ${metric || "any metric"}.`);
  const valuesOf = (each) => (each === NONE ? [NONE] : inOrder(unique(shown.map((run) => run.keys[each]))));
  const has = (run, each, value) => each === NONE || run.keys[each] === value;
  const [panels, names] = [valuesOf(panelKey), valuesOf(lineKey)];
  const lines = panels.flatMap((panel, place) =>
    names.flatMap((name, index) => {
      const own = shown.filter((run) => has(run, panelKey, panel) && has(run, lineKey, name));
      return own.length ? [{ points: meansOf(own, key, metric), name, index, place }] : [];
    }),
  );
  const named = new Set();
  const traces = lines.map(({ points, name, index, place }) => {
    const isFirst = !named.has(name);
    named.add(name);
    const colour = visible(PALETTE[index % PALETTE.length]);
    const best = bestOf(points, metric);
    return {
      mode: "lines+markers",
      x: points.map((point) => point.x),
      y: points.map((point) => point.y),
      error_y: { type: "data", symmetric: false, array: points.map((point) => point.high - point.y), arrayminus: points.map((point) => point.y - point.low), thickness: 1.2, width: 0 },
      xaxis: place ? `x${place + 1}` : "x",
      name: plain(short(lineKey === NONE ? metric : `${lastPart(lineKey)} ${name}`)),
      legendgroup: name,
      showlegend: isFirst && lineKey !== NONE,
      line: { color: colour, dash: DASHES[Math.floor(index / PALETTE.length) % DASHES.length], width: 1.8 },
      marker: { size: points.map((point) => (point === best ? 12 : 6)), color: colour },
      text: points.map((point) => `${some(point.count, "run")}`),
      hovertemplate: "%{y:.5g} at %{x:.4g}, %{text}<extra>%{fullData.name}</extra>",
    };
  });
  const numbers = inOrder(unique(shown.map((run) => run.keys[key]))).map(Number);
  const scale = numbers[0] > 0 && numbers.at(-1) / numbers[0] >= 8 ? logAxis(numbers) : {};
  const ticks = numbers.length <= MOST_TICKS ? { tickvals: numbers, ticktext: numbers.map((value) => number(value)), tickangle: isNarrow() ? 90 : 0 } : {};
  const range = visibleRange(lines, metric);
  const more = { ...withLegend([...named]), yaxis: range ? { range } : {} };
  const drawn = layout(`${metric} against ${key}`, "", plain(better(metric)), more);
  const gap = 0.06 / panels.length;
  drawn.annotations = panelKey === NONE ? [] : panels.map((panel, place) => ({ text: plain(`${lastPart(panelKey)} ${panel}`), x: (place + 0.5) / panels.length, y: 1, xref: "paper", yref: "paper", xanchor: "center", yanchor: "bottom", showarrow: false }));
  panels.forEach((_, place) => {
    const domain = [place ? place / panels.length + gap : 0, (place + 1) / panels.length - (place < panels.length - 1 ? gap : 0)];
    drawn[place ? `xaxis${place + 1}` : "xaxis"] = { ...drawn.xaxis, ...scale, ...ticks, title: { text: plain(key) }, domain };
  });
  plot("numbers", traces, drawn, "");
}

function chooseNumbers(keys) {
  // Fills the choices of the plot against a swept number: a learning rate if there is one, a line for the next number.
  const axes = board.swept.filter(isAxis);
  showSection("numbers", axes.length > 0);
  fillSelect("number-x", axes, axes.find((key) => /(^|\.)(lr|.*_lr|rate)$/.test(key)));
  const others = board.swept.filter((key) => key !== byId("number-x").value);
  const line = others.find(isAxis) ?? others[0] ?? NONE;
  const panel = others.find((key) => key !== line && numbersOf(key).length <= MOST_PANELS) ?? NONE;
  fillSelect("number-lines", [...keys, NONE], line);
  fillSelect("number-panels", [...keys.filter((key) => numbersOf(key).length <= MOST_PANELS), NONE], panel);
}

function drawHeat(runs) {
  const [across, down, metric] = [byId("heat-x").value, byId("heat-y").value, byId("metric").value];
  const shown = runs.filter((run) => run.metrics[metric] != null);
  if (!shown.length) return plot("heat", [], {}, "No filtered run has a value.");
  if (!across || across === down) return plot("heat", [], {}, board.swept.length ? "Choose two different keys." : "A heat map requires two keys, but these runs differ only in the seed.");
  const columns = inOrder(unique(shown.map((run) => run.keys[across])));
  const rows = inOrder(unique(shown.map((run) => run.keys[down])));
  const cells = rows.map((row) => columns.map((each) => shown.filter((run) => run.keys[across] === each && run.keys[down] === row).map((run) => run.metrics[metric])));
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  const fewCells = columns.length * rows.length <= 200;
  const trace = {
    type: "heatmap",
    z: cells.map((row) => row.map(mean)),
    x: columns.map((_, index) => index),
    y: rows.map((_, index) => index),
    text: cells.map((row) => row.map((values) => (values.length ? `${number(mean(values))}<br>n = ${values.length}` : ""))),
    texttemplate: fewCells ? "%{text}" : undefined,
    hovertemplate: "%{z:.5g}<extra></extra>",
    colorscale: scale(),
    textfont: { size: 14 },
    reversescale: falls(metric),
    hoverongaps: false,
    xgap: 2,
    ygap: 2,
    colorbar: { title: { text: plain(metric), side: "right" }, thickness: 14 },
  };
  const axis = (values) => ({ tickvals: values.map((_, index) => index), ticktext: values.map((value) => plain(short(value, 24))), showgrid: false, ticks: "" });
  const more = { xaxis: axis(columns), yaxis: { ...axis(rows), autorange: "reversed" }, height: Math.min(900, 190 + 62 * rows.length) };
  byId("heat").style.maxWidth = `${360 + 130 * columns.length}px`;
  plot("heat", [trace], layout(`Mean of ${better(metric)}`, plain(across), plain(down), more), "");
}

// ---- single runs

function selectedRuns(has) {
  const selected = runsTable.rows({ selected: true }).data().toArray();
  const runs = (selected.length ? selected : counted(passing())).filter(has);
  return { runs: runs.slice(0, selected.length ? 12 : SIDE_BY_SIDE), isSelected: selected.length > 0 };
}

const named = (run) => `${run.rank === null ? "" : `#${run.rank} · `}${run.label}`;

function lines(text, most = 58) {
  // Breaks a name into lines of at most about `most` characters, between its parts.
  const found = [""];
  for (const part of text.split(" · ")) {
    const last = found.at(-1);
    if (last && last.length + part.length > most) found.push(part);
    else found[found.length - 1] = last ? `${last} · ${part}` : part;
  }
  return found;
}

function noteOf(runs, isSelected, what) {
  const which = isSelected ? `The ${some(runs.length, "selected run")} with ${what}.` : `The best ${some(runs.length, "filtered run")} with ${what}. To choose others, click rows in the table of runs, with Ctrl or Shift for several.`;
  const limit = board.runs.length > report.detailed ? ` The page includes them only for the best ${report.detailed} runs.` : "";
  return runs.length ? which + limit : `No filtered run has ${what}.`;
}

function drawConfusion() {
  const { runs, isSelected } = selectedRuns((run) => run.confusion);
  byId("confusion-note").textContent = noteOf(runs, isSelected, "a confusion matrix");
  const place = byId("confusion");
  for (const old of place.children) Plotly.purge(old);
  place.replaceChildren();
  byId("cell").replaceChildren();
  for (const run of runs) {
    const { classes, counts } = run.confusion;
    const drawn = element("div", "", { class: "plot" });
    place.append(drawn);
    const names = classes.map((name) => plain(short(name, 16)));
    const shares = counts.map((row) => row.map((count) => count / Math.max(1, row.reduce((sum, each) => sum + each, 0))));
    const trace = {
      type: "heatmap",
      z: shares,
      x: classes.map((_, index) => index),
      y: classes.map((_, index) => index),
      zmin: 0,
      zmax: 1,
      text: counts.map((row, r) => row.map((count, c) => `${count.toLocaleString("en")}<br>${Math.round(100 * shares[r][c])}%`)),
      texttemplate: classes.length <= 10 ? "%{text}" : undefined,
      hovertemplate: "%{text}<extra></extra>",
      textfont: { color: colourOf("ink") },
      colorscale: [[0, colourOf("paper")], [1, colourOf("cell")]],
      xgap: 1,
      ygap: 1,
      colorbar: { title: { text: "share of the true class", side: "right" }, tickformat: ".0%", thickness: 12 },
    };
    const axis = { tickvals: trace.x, ticktext: names, showgrid: false, ticks: "" };
    const more = { xaxis: axis, yaxis: { ...axis, autorange: "reversed" } };
    const value = run.metrics[board.metric];
    const title = [...lines(named(run)), ...(value == null ? [] : [`${board.metric} ${number(value)}`])].map((line) => short(line));
    if (board.is_sample) title.push(report.sampleMark);
    const drawnLayout = layout("", "predicted", "true", { ...more, height: 400 + 17 * title.length, margin: { l: 64, r: 16, t: 30 + 17 * title.length, b: 56 } });
    drawnLayout.title = { ...titled(""), y: 1, yanchor: "top", pad: { t: 18 }, text: title.map(plain).join("<br>"), font: { size: 13 } };
    Plotly.newPlot(drawn, [trace], drawnLayout, { ...config, displayModeBar: false });
    drawn.on("plotly_click", ({ points: [{ x, y }] }) => showCell(run, y, x));
    chooseByKeys(drawn, run);
  }
}

function chooseByKeys(drawn, run) {
  // The arrow keys move from cell to cell of a confusion matrix that has the keyboard focus.
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [0, 0] };
  const last = run.confusion.classes.length - 1;
  let cell = [0, 0];
  for (const [name, value] of Object.entries({ tabindex: 0, role: "application", "aria-label": `confusion matrix of ${named(run)}; the arrow keys move to a cell` })) drawn.setAttribute(name, value);
  drawn.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    cell = cell.map((place, axis) => Math.min(last, Math.max(0, place + step[axis])));
    showCell(run, ...cell);
  });
}

function showCell(run, row, column) {
  // Shows the texts of a cell of a run's confusion matrix, the most confident first.
  const { classes, counts } = run.confusion;
  const texts = (run.cells ?? []).filter((each) => each.true === row && each.predicted === column);
  const title = element("h3", `${named(run)}: true ${classes[row]}, predicted ${classes[column]}`);
  const count = `${some(counts[row][column], "text")} of the validation split${run.cells && texts.length < counts[row][column] ? `; the ${texts.length} most confident ones are shown` : ""}.`;
  const note = run.cells ? count : `${count} The page has the texts of the best ${report.withCells} runs, if their training wrote reviews/validation.csv.`;
  const rows = texts.map((each) => [each.label, classes[each.predicted], each.probability.toFixed(3), each.text]);
  const table = element("div", "", { class: "wide" });
  if (rows.length) table.append(plainTable(["label", "prediction", "probability", "text"], rows, () => false));
  byId("cell").replaceChildren(title, element("p", note), table);
  byId("cell").scrollIntoView({ block: "nearest" });
}

function drawTexts() {
  const { runs, isSelected } = selectedRuns((run) => run.texts);
  byId("texts-note").textContent = noteOf(runs, isSelected, "texts");
  const figures = runs.map((run) => {
    const figure = element("figure");
    const short = run.texts.split(/\n+/).every((line) => line.length < SHORT); // such as names
    figure.append(element("figcaption", named(run)), element("pre", short ? run.texts.replace(/\n+/g, "\n") : run.texts, short ? { class: "short" } : {}));
    if (run.is_sample) figure.firstChild.append(" ", badge());
    return figure;
  });
  byId("texts").replaceChildren(...figures);
}

// ---- the tabs

function openBoard(index) {
  board = report.boards[index];
  [...byId("tabs").children].forEach((tab, each) => tab.setAttribute("aria-selected", String(each === index)));
  const keys = [...board.swept, "seed"];
  const curves = unique(board.runs.flatMap((run) => run.curves.filter((curve) => curve.steps.length > 1).flatMap((curve) => Object.keys(curve.values))));
  const priority = (name) => (name === board.metric ? 0 : name.startsWith("val/") ? 1 : name.startsWith("train/") ? 2 : 3);
  curves.sort((a, b) => priority(a) - priority(b) || a.localeCompare(b));
  board.curves = curves;
  const countedRuns = counted(board.runs);
  for (const cost of ["parameters", "compute"]) byId(cost).hidden = unique(countedRuns.map((run) => run[cost]?.toPrecision(2)).filter(Boolean)).length < FEWEST_NUMBERS;
  showSection("groups", board.groups.length < board.runs.length || board.headers.some((header) => header.startsWith("against ")));
  showSection("curves-steps", curves.length > 0);
  showSection("parallel", countedRuns.length >= FEWEST_NUMBERS && board.swept.length > 0);
  showSection("parameters", !byId("parameters").hidden || !byId("compute").hidden);
  showSection("heat", board.swept.length > 1 && countedRuns.length >= FEWEST_NUMBERS);
  showSection("confusion", board.runs.some((run) => run.confusion));
  showSection("texts", board.runs.some((run) => run.texts));
  const isRate = (name) => name.startsWith("lr-");  // a learning rate is logged, but is no metric
  fillSelect("metric", unique([...board.metrics, ...curves]).filter((name) => !isRate(name)), board.metric);
  const most = [20, CHOSEN_AT_FIRST, 200].filter((each) => each < board.runs.length).map(String);
  fillSelect("most", [...most, ALL], board.runs.length > CHOSEN_AT_FIRST ? String(CHOSEN_AT_FIRST) : ALL);
  fillSelect("colour", [GROUP, ...keys], board.groups.length > PALETTE.length ? (board.swept[0] ?? GROUP) : GROUP);
  fillSelect("heat-x", keys, keys[0]);
  fillSelect("heat-y", keys, keys[1]);
  if (byId("heat-x").value === byId("heat-y").value && keys.length > 1) byId("heat-y").value = keys.find((key) => key !== byId("heat-x").value);
  chooseNumbers(keys);
  showGroups();
  showRuns();
  redraw();
}

function makeScrollable() {
  // Lets the keyboard scroll what is wider than its place.
  for (const part of document.querySelectorAll("#overview, #left, .wide, .dt-scroll-body, pre")) part.tabIndex = 0;
}

const setTheme = () => document.documentElement.classList.toggle("dark", dark.matches); // for DataTables

function start() {
  setTheme();
  dark.addEventListener("change", () => {
    setTheme();
    if (board) redraw();
  });
  showOverview();
  showLeft();
  if (!report.boards.length) {
    for (const part of [byId("tabs"), byId("overview").closest("section"), byId("board")]) part.remove();
    return;
  }
  report.boards.forEach((each, index) => {
    const tab = element("button", `${each.name} (${each.runs.length})`, { role: "tab", type: "button" });
    tab.addEventListener("click", () => openBoard(index));
    byId("tabs").append(tab);
  });
  for (const select of document.querySelectorAll("main select")) select.addEventListener("change", redraw);
  openBoard(0);
}

start();
