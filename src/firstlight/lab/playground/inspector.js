// A network opened step by step: the tokens of a text, its attention, its feed-forward layers and its probabilities, with
// interventions. network.js computes the numbers. All texts are set as text, never as HTML.

// Fill an element with the panels of a network. number: of the run in the link; text: at first; examples: texts of the run;
// wrote: is called with each other text. Returns a function that sets the text.
function openInspector(place, network, { number, text, examples, wrote }) {
  const layers = layersOf(network), nameOf = namesOf(network), heads = network.options.num_heads, isTranslator = network.kind === "translator";
  const start = network.kind === "generator" ? Infinity : 0; // the last token of a generator attends to all
  const state = { text, other: "", instead: "", side: isTranslator ? "target" : "source", token: start, place: 0, layer: isTranslator ? layers.length - 1 : 0, head: 0, off: [], temperature: 1, topK: 0, topP: 1 };
  const link = () => new URLSearchParams(location.hash.slice(1));
  if (link().get("inside") === String(number)) {
    for (const [key, was] of Object.entries(state)) {
      const given = link().get(key);
      if (given !== null) state[key] = Array.isArray(was) ? given.split(" ").filter(Boolean) : typeof was === "number" ? Number(given) || 0 : given;
    }
    state.layer = Math.min(Math.max(state.layer, 0), layers.length - 1);
    state.head = Math.min(Math.max(state.head, 0), heads - 1);
    if (!isTranslator) state.side = "source";
  }
  let now = null; // what the last run computed
  let held = false; // whether a click has chosen the token; a click beside the controls ends it
  let turn = 0; // of the computations in the background; a later one ends an earlier one

  // --- its parts ---

  const chosen = (side) => (side === "target" ? state.place : state.token); // the token of the text, or of the translation
  const field = (name, label, more = {}) => make("label", {}, `${label} `, make("input", { name, value: state[name], autocomplete: "off", spellcheck: false, ...more }));
  const slider = (name, label, min, max, step) => make("label", {}, `${label} `, make("input", { type: "range", name, min, max, step, value: state[name] }), make("output", {}, String(state[name])));
  const body = Object.fromEntries(STEPS.map(([name]) => [name, make("div", { className: "body" })]));
  const panels = STEPS.map(([name, title, says], i) => make("section", { className: "step", id: `step-${number}-${name}` }, make("h4", { tabIndex: -1 }, `${i + 1}. ${title}`), make("p", { className: "sees" }, says), body[name]));
  const teaching = TEACHING[network.kind] ?? examples.filter(Boolean).map((each) => [each, each, ""]);
  const buttons = teaching.map(([name, first, second]) => make("button", { type: "button", className: "teaches", onclick: () => set({ text: first, other: second, side: "source", token: start, place: 0 }) }, name));
  const guide = make("p", { className: "guide", role: "status" });
  const bar = make("p", { className: "fields" }, ...buttons,
    make("button", { type: "button", className: "tour", onclick: () => stop(0) }, "Tour"),
    make("button", { type: "button", onclick: (event) => copy(event.target, location.href) }, "Copy link"),
    make("button", { type: "button", onclick: (event) => now && copy(event.target, results()) }, "Copy results"));
  const controls = make("form", { className: "controls fields", onsubmit: (event) => event.preventDefault() }, field("text", "Text", { className: "long" }),
    make("label", {}, "Layer ", make("select", { name: "layer" }, ...layers.map((layer, i) => make("option", { value: i, selected: i === state.layer }, layer.title)))),
    make("label", {}, "Head ", make("select", { name: "head" }, ...Array.from({ length: heads }, (_, i) => make("option", { value: i, selected: i === state.head }, `head ${i + 1}`)))));
  place.classList.add("inspector");
  place.replaceChildren(bar, guide, controls, ...panels);

  const canvases = {}; // name of a heat map -> its canvas. side: its "rows" are tokens, those of the "keys", or its "columns" are
  function picture(panel, name, caption, side) {
    canvases[name] = make("canvas", { role: "img", "data-side": side });
    body[panel].append(make("figure", {}, make("figcaption", {}, caption), canvases[name]));
  }
  const chips = {}, worths = make("p", { className: "says" }), arcs = make("div", { className: "arcs", tabIndex: 0, role: "group", "aria-label": "arcs of attention" });
  for (const side of isTranslator ? ["source", "target"] : ["source"]) {
    chips[side] = make("p", { className: "text chips", role: "group", "aria-label": isTranslator ? side : "tokens" });
    body.tokens.append(chips[side]);
  }
  body.tokens.append(worths, field("instead", "instead of it"));
  for (const [panel, name, caption, side = "rows"] of [["vectors", "embed", "of the tokens"], ["vectors", "pos", "of the positions"], ["vectors", "pre", "before the block"], ["qkv", "q", "queries"], ["qkv", "k", "keys", "keys"], ["qkv", "v", "values", "keys"], ["scores", "scores", "scores"], ["scores", "pattern", "weights"], ["mix", "z", "mix of the head"], ["mix", "attn_out", "all heads, after the output layer"], ["residual", "mid", "sum"], ["feed", "post", "units"], ["feed", "mlp_out", "result"], ["feed", "resid_post", "sum"]]) picture(panel, name, caption, side);
  const lines = Object.fromEntries(["scores", "vectors", "residual", "feed", "patch"].map((name) => [name, make("p", { className: "says" })]));
  for (const [name, line] of Object.entries(lines)) if (name !== "patch") body[name].append(line);
  body.arcs.append(arcs);
  const grid = make("div", { className: "grid" }), thumbs = new Map();
  layers.forEach((layer, i) => {
    for (let head = 0; head < heads; head++) {
      const canvas = make("canvas", { "aria-hidden": "true" }), title = `${layer.title}, head ${head + 1}`, key = `${layer.name}:${head}`;
      const choose = make("button", { type: "button", title, onclick: () => set({ layer: i, head }) }, canvas, make("span", {}, title));
      const off = make("input", { type: "checkbox", checked: !state.off.includes(key), onchange: (event) => set({ off: event.target.checked ? state.off.filter((each) => each !== key) : [...state.off, key] }) });
      thumbs.set(key, { canvas, choose, off });
      grid.append(make("div", {}, choose, make("label", {}, off, make("span", { className: "unseen" }, title), " on")));
    }
  });
  body.heads.append(grid);
  const bars = make("div", { className: "bars", role: "table", "aria-label": "probabilities" });
  body.output.append(make("form", { className: "fields", onsubmit: (event) => event.preventDefault() }, slider("temperature", "temperature", 0, 3, 0.05),
    ...(network.kind === "classifier" ? [] : [slider("topK", "top-k (0: all)", 0, 50, 1), slider("topP", "top-p", 0.05, 1, 0.05)])), bars);
  const theirs = make("p", { className: "text chips" }); // the tokens of the second text
  body.patch.append(field("other", "Second text", { className: "long" }), theirs);
  picture("patch", "patch", "share of the difference that each vector brings; rows are blocks, columns are tokens", "columns");
  body.patch.append(lines.patch);

  // --- what happens ---

  place.addEventListener("input", ({ target: { name, type, value } }) => {
    if (name in state) set({ [name]: typeof state[name] === "number" ? Number(value) : value });
  });
  const over = (event) => {
    const { target, type } = event, { side, token } = target.dataset;
    if (type === "click") held = target.closest("[data-side], .chips") !== null || (held && target.closest("button, label, select, input") !== null);
    if (!side || !now || (held && type === "mousemove")) return;
    if (token !== undefined) return mark(side, Number(token));
    const { width, height } = target.getBoundingClientRect(), layer = layers[state.layer];
    const of = { rows: layer.rows, keys: layer.columns, columns: "source" }[side], { length } = now.read.names[of];
    mark(of, Math.min(length - 1, Math.floor((side === "columns" ? event.offsetX / width : event.offsetY / height) * length)));
  };
  for (const type of ["mousemove", "click", "focusin"]) place.addEventListener(type, over);
  dark.addEventListener("change", () => now && draw());

  function set(changes, isOwn = true) {
    const isWritten = isOwn && "text" in changes && changes.text !== state.text;
    Object.assign(state, changes);
    for (const each of place.querySelectorAll("[name]")) {
      if (each.name in changes && each !== document.activeElement) each.value = state[each.name];
      if (each.type === "range" && each.name in changes) each.nextElementSibling.value = state[each.name];
    }
    thumbs.forEach(({ off }, key) => (off.checked = !state.off.includes(key)));
    if (["text", "other", "off", "instead"].some((key) => key in changes)) compute();
    else if (now) draw();
    if (isOwn || link().get("inside") === String(number)) keep();
    if (isWritten) wrote(state.text);
  }

  function mark(side, token) {
    if (side === state.side && token === chosen(side)) return;
    const isPredicted = side === "target" && token !== state.place; // the prediction after a token of the translation
    Object.assign(state, { side, [side === "target" ? "place" : "token"]: token });
    if (isPredicted) compute();
    else draw();
    keep();
  }

  function keep() {
    const values = Object.entries(state).map(([key, value]) => [key, Array.isArray(value) ? value.join(" ") : value]);
    history.replaceState(null, "", `#${new URLSearchParams([["inside", number], ...values])}`);
  }

  async function copy(button, text) {
    const was = button.textContent;
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = was), 1500);
  }

  function results() {
    const layer = layers[state.layer], weights = ofMap(now.seen.get(`${layer.name}.hook_pattern`), state.head), names = now.read.names;
    const row = chosen(layer.rows), head = `${layer.title}, head ${state.head + 1}, attention of ${names[layer.rows][row]}`;
    const table = [["prediction", "now", "all heads", ...(now.second ? ["second text"] : [])], ...rowsOfBars().map(([i, ...shares]) => [nameOf(i), ...shares.map(shareText)])];
    return [[state.text], [], ...table, [], [head], ...names[layer.columns].map((name, j) => [name, shareText(weights.at(row, j))])].map((cells) => cells.join("\t")).join("\n");
  }

  // The shares of a run with edits and other ids, and its activations.
  function shares(read, edit, seen = null) {
    const logits = network.run(inputsOf(network, read), { edit, see: seen ? (name, value) => seen.set(name, value) : undefined });
    return logitsOf(network, logits, read, Math.min(state.place, read.target?.length - 1 || 0));
  }

  function compute() {
    const seen = new Map(), others = new Map();
    try {
      const read = readInto(network, encodable(state.text));
      if (!read.source.length) throw new TextError("Type a text.");
      const second = state.other ? readInto(network, encodable(state.other)) : null;
      Object.assign(state, { token: Math.min(state.token, read.names.source.length - 1), place: Math.min(state.place, read.target?.length - 1 || 0) });
      now = { read, seen, logits: shares(read, without(state.off), seen), full: shares(read), second, others, worth: [], patches: null };
      if (second) now.otherLogits = shares(second, without(state.off), others);
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      guide.textContent = error.message;
      return;
    }
    guide.textContent = now.read.notes.join("; ");
    for (const [side, chip] of Object.entries(chips)) {
      const names = now.read.names[side].map((name) => name || "·"), areShown = Array.from(chip.children, (each) => each.textContent).join("\n") === names.join("\n");
      if (!areShown) chip.replaceChildren(...names.map((name, i) => make("button", { type: "button", className: "word", "data-side": side, "data-token": i }, name)));
    }
    draw();
    place.dataset.turn = ++turn; // for tests, as `explained`
    explain(turn);
  }

  const shareOf = (logits, wanted) => sharesOfLogits(network, logits, { temperature: 1, topP: 1 })[wanted];
  const wanted = () => best(sharesOfLogits(network, now.full, { temperature: 1, topP: 1 }), 1)[0];

  // Computes the worth of each token and the patches, a few runs at a time.
  async function explain(own) {
    const { read, second, others } = now, goal = wanted(), base = shareOf(now.logits, goal), n = read.source.length;
    if (n > MOST_TOKENS) return (place.dataset.explained = own);
    for (let i = 0; i < n; i++) {
      if (n > 1 && read.names.source[i] !== MASK) now.worth[i] = base - shareOf(shares({ ...read, source: read.source.filter((_, j) => j !== i) }, without(state.off)), goal);
      await pause();
      if (own !== turn) return;
    }
    draw();
    place.dataset.explained = own;
    if (!second || second.source.length !== n) return;
    const blocks = [...new Set(layers.filter(({ columns, rows }) => columns === rows && rows === "source").map(({ block }) => block))];
    const distance = shareOf(now.otherLogits, goal) - base, patches = blocks.map(() => new Float32Array(n));
    if (Math.abs(distance) < 1e-5) return (lines.patch.textContent = "The two texts have the same prediction.");
    for (const [b, block] of blocks.entries()) {
      const name = `${block}.hook_resid_pre`;
      for (let i = 0; i < n; i++) {
        patches[b][i] = (shareOf(shares(read, without(state.off, { [name]: withRow(i, others.get(name)) })), goal) - base) / distance;
        await pause();
        if (own !== turn) return;
      }
    }
    now.patches = patches;
    draw();
  }

  function showInstead() {
    const { read } = now, goal = wanted(), i = state.token;
    if (state.side !== "source") return (worths.textContent = `Prediction after ${read.names.target[state.place]}: ${nameOf(goal)}.`);
    const worth = now.worth[i], name = read.names.source[i], parts = [];
    if (name === MASK) return (worths.textContent = `This token is replaced by the prediction, so it has no worth.`);
    if (worth !== undefined) parts.push(`Without “${name}”, the probability of ${nameOf(goal)} is ${shareText(shareOf(now.logits, goal) - worth)} instead of ${shareText(shareOf(now.logits, goal))}.`);
    if (state.instead) {
      const ids = network.reader.tokenizer.ids(state.instead), source = Int32Array.of(...read.source.subarray(0, i), ...ids, ...read.source.subarray(i + 1)).slice(0, network.options.context_length);
      parts.push(`With “${state.instead}” in its place it is ${shareText(shareOf(shares({ ...read, source }, without(state.off)), goal))}.`);
    }
    worths.textContent = parts.join(" ");
  }

  // --- drawing ---

  function rowsOfBars() {
    const each = [now.logits, now.full, ...(now.second ? [now.otherLogits] : [])].map((logits) => sharesOfLogits(network, logits, state));
    const plain = sharesOfLogits(network, now.full, { temperature: 1, topP: 1 });
    const order = network.kind === "classifier" && plain.length <= MOST_BARS ? [...plain.keys()] : best(plain, MOST_BARS);
    return order.map((i) => [i, ...each.map((shares) => shares[i])]);
  }

  function drawBars() {
    const cell = (text, role = "cell", className = "share") => make("span", { role, className }, text);
    const header = make("div", { className: "row head", role: "row" }, cell("", "columnheader", "name"), cell("", "columnheader", ""), ...["now", "all heads", ...(now.second ? ["second text"] : [])].map((title) => cell(title, "columnheader")));
    const rows = rowsOfBars().map(([i, share, ...others]) => {
      const track = trackOf(share, { role: "cell", "aria-hidden": "true" });
      return make("div", { className: "row", role: "row" }, cell(nameOf(i), "rowheader", "name"), track, ...[share, ...others].map((each) => cell(shareText(each))));
    });
    bars.style.setProperty("--columns", now.second ? 3 : 2);
    bars.replaceChildren(header, ...rows);
  }

  function drawArcs(weights, columns, row) {
    const step = 26, width = columns.length * step + 40, x = (i) => 30 + i * step, isOne = layers[state.layer].rows === layers[state.layer].columns;
    const from = isOne ? x(row) : width / 2, height = isOne ? Math.min(90, 12 + 8 * columns.length) : 90, below = Math.min(100, 12 + 5.5 * Math.max(3, ...columns.map((name) => name.length)));
    const add = (parent, tag, attributes, text = "") => {
      const made = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.textContent = text;
      return made;
    };
    arcs.replaceChildren();
    const svg = add(arcs, "svg", { viewBox: `0 0 ${width} ${height + below}`, width, "aria-hidden": "true" });
    if (!isOne) add(svg, "text", { x: from, y: 12, "text-anchor": "middle", "font-size": 12, "font-weight": 700, fill: "var(--ink)" }, now.read.names[layers[state.layer].rows][row]);
    columns.forEach((name, j) => {
      const share = weights.at(row, j), to = x(j), bend = isOne ? Math.min(height - 8, 12 + Math.abs(to - from) / 3) : height - 8;
      if (share > 0.005) add(svg, "path", { d: isOne && j === row ? `M${from - 4} ${height} a6 9 0 1 1 8 0` : `M${from} ${isOne ? height : 18} Q${(from + to) / 2} ${isOne ? height - 1.8 * bend : 50} ${to} ${height}`, fill: "none", stroke: "var(--attention)", "stroke-width": 0.5 + 7 * share, "stroke-opacity": 0.35 + 0.65 * share });
      add(svg, "text", { transform: name.length > 3 ? `translate(${to} ${height + 8}) rotate(60)` : `translate(${to} ${height + 14})`, "text-anchor": name.length > 3 ? "start" : "middle", "font-size": 12, fill: "var(--ink)", "font-weight": isOne && j === row ? 700 : 400 }, name);
    });
    arcs.scrollLeft = from - arcs.clientWidth / 2; // a long text is wider than a phone
  }

  function draw() {
    const layer = layers[state.layer], { seen, read } = now, names = read.names, of = (name) => seen.get(name), inner = (name) => of(`${layer.name}.hook_${name}`);
    const row = chosen(layer.rows), column = chosen(layer.columns);
    const stack = layer.block.split(".")[0], prefix = isTranslator ? `${stack}.` : "", group = network.options.num_heads / network.options.num_key_value_heads;
    const show = (name, values, more = {}) => {
      const canvas = canvases[name];
      canvas.closest("figure").hidden = !values;
      if (!values) return;
      paint(canvas, values, { row, ...more });
      canvas.setAttribute("aria-label", `${canvas.previousElementSibling.textContent}: ${values.rows} by ${values.columns} numbers`);
    };
    const vectors = (tensor) => tensor && ofRows(tensor);
    show("embed", vectors(of(`${prefix}hook_embed`)));
    show("pos", vectors(of(`${prefix}hook_pos_embed`)));
    const before = vectors(of(`${layer.block}.hook_resid_${layer.part === "attn" ? "pre" : "mid"}`));
    show("pre", before);
    const [q, k] = ["q", "k"].map((name) => inner(`rot_${name}`) ?? inner(name));
    show("q", ofHead(q, state.head));
    show("k", ofHead(k, Math.floor(state.head / group)), { row: column });
    show("v", ofHead(inner("v"), Math.floor(state.head / group)), { row: column });
    const weights = ofMap(inner("pattern"), state.head), scores = ofMap(inner("attn_scores"), state.head);
    show("scores", scores, { column });
    show("pattern", weights, { column, isShare: true });
    show("z", ofHead(inner("z"), state.head));
    const change = vectors(of(`${layer.block}.hook_${layer.part}_out`));
    show("attn_out", change);
    const after = vectors(of(`${layer.block}.hook_resid_mid${layer.part === "attn" ? "" : "_cross"}`) ?? of(`${layer.block}.hook_resid_post`));
    show("mid", after);
    show("post", vectors(of(`${layer.block}.mlp.hook_post`) ?? of(`${layer.block}.mlp.hook_pre`)));
    show("mlp_out", vectors(of(`${layer.block}.hook_mlp_out`)));
    show("resid_post", vectors(of(`${layer.block}.hook_resid_post`)));
    show("patch", now.patches && { rows: now.patches.length, columns: now.patches[0].length, at: (i, j) => now.patches[i][j] }, { row: null, column: state.token });
    drawArcs(weights, names[layer.columns], row);
    drawBars();
    const token = names[layer.rows][row], order = best(Array.from({ length: weights.columns }, (_, j) => weights.at(row, j)), 4);
    lines.scores.textContent = `${token} attends to ${order.filter((j) => weights.at(row, j)).map((j) => `${names[layer.columns][j]} ${shareText(weights.at(row, j))} (score ${rounded(scores.at(row, j))})`).join(", ")}.`;
    lines.vectors.textContent = `${token} before ${layer.title}: [${Array.from({ length: Math.min(MOST_NUMBERS, before.columns) }, (_, j) => rounded(before.at(row, j))).join(", ")}, …], ${before.columns} numbers, length ${rounded(lengthOf(before, row))}.`;
    lines.residual.textContent = `${token}: length ${rounded(lengthOf(before, row))} before, ${rounded(lengthOf(change, row))} added, ${rounded(lengthOf(after, row))} after.`;
    const units = vectors(of(`${layer.block}.mlp.hook_post`));
    lines.feed.textContent = units ? `${token}: the most active units are ${best(Array.from({ length: units.columns }, (_, j) => units.at(row, j)), 4).map((j) => `${j + 1} (${rounded(units.at(row, j))})`).join(", ")}.` : "";
    showInstead();
    drawPatchLine();
    layers.forEach((each, i) => {
      for (let head = 0; head < heads; head++) {
        const { canvas, choose } = thumbs.get(`${each.name}:${head}`);
        paint(canvas, ofMap(of(`${each.name}.hook_pattern`), head), { isShare: true, row: chosen(each.rows) }, 90);
        choose.setAttribute("aria-pressed", i === state.layer && head === state.head);
      }
    });
    for (const chip of place.querySelectorAll(".chips [data-token]")) {
      const { side, token: i } = chip.dataset, worth = side === "source" ? now.worth[i] : undefined;
      chip.classList.toggle("here", Number(i) === chosen(side));
      chip.tabIndex = Number(i) === chosen(side) ? 0 : -1;
      const largest = Math.max(0.05, ...now.worth.filter((each) => each !== undefined).map(Math.abs));
      chip.style.setProperty("--shade", worth === undefined ? "" : `color-mix(in srgb, var(--${worth > 0 ? "for" : "against"}) ${Math.round((50 * Math.abs(worth)) / largest)}%, transparent)`);
    }
  }

  function drawPatchLine() {
    const { read, second, patches } = now, i = state.token;
    theirs.replaceChildren(...(second?.names.source ?? []).map((name, j) => make("span", { className: `word${j === i ? " here" : ""}` }, name)));
    if (!second) lines.patch.textContent = "Type a second text with as many tokens as the first one.";
    else if (second.source.length !== read.source.length) lines.patch.textContent = `The texts have ${read.source.length} and ${second.source.length} tokens; both must have the same number.`;
    else if (patches) lines.patch.textContent = `${read.names.source[i]} → ${second.names.source[i]}: ${patches.map((row, b) => `before block ${b + 1}: ${Math.round(100 * row[i])}%`).join(", ")} of the difference between the predictions.`;
  }

  function stop(i) {
    const [name, says] = TOUR[i];
    if (i === 0 && teaching.length && !state.other) set({ text: teaching[0][1], other: teaching[0][2] });
    const panel = place.querySelector(`#step-${number}-${name}`);
    const next = make("button", { type: "button", onclick: () => (i + 1 < TOUR.length ? stop(i + 1) : end()) }, i + 1 < TOUR.length ? "Next" : "End");
    const end = () => place.querySelector(".stop-of-tour")?.remove();
    end();
    panel.querySelector("h4").after(make("p", { className: "stop-of-tour", role: "status" }, `Stop ${i + 1} of ${TOUR.length}: ${says} `, next));
    panel.scrollIntoView({ block: "start" });
    next.focus({ preventScroll: true });
  }

  compute();
  if (state.text !== text) wrote(state.text); // that of the link
  return (other) => other !== state.text && set({ text: other }, false);
}
