// Shows the answers of the runs to the user's texts, their attention and their candidates. The parts of the answers come
// from the server; in an exported page, answers.js computes them. It makes their HTML, in which all texts are escaped.

const MOST_CHARACTERS = 200000; // characters that are sent; the server reads fewer
const WAIT = 60; // milliseconds from a key press to the requests
const SILENT = "The playground does not answer. Check that it is still running in its terminal.";

const panelsOf = (form) => [...form.closest("section").querySelectorAll(".panel")];
const formOf = (panel) => panel.closest("section").querySelector("form");
const element = (tag, className, ...children) => make(tag, { className }, ...children);
const answerOf = (panel) => panel.querySelector(".answer");

const numberIn = ({ value }) => (value === "" ? null : Number(value));

function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (field.name) values[field.name] = field.type === "number" ? numberIn(field) : field.value;
  }
  const isPrompt = form.classList.contains("written"); // a long prompt is cut at its beginning
  values.text = isPrompt ? values.text.slice(-MOST_CHARACTERS) : values.text.slice(0, MOST_CHARACTERS);
  return values;
}

// A signal of the next request of a panel, which ends the one before.
function signalOf(panel) {
  panel.running?.abort();
  panel.running = new AbortController();
  return panel.running.signal;
}

const HEADERS = { "Content-Type": "application/json" };
const post = (run, what, values, signal) =>
  fetch(`runs/${run}/${what}`, { method: "POST", headers: HEADERS, body: JSON.stringify(values), signal });

const served = {
  answer: async (run, values, signal) => shownAnswer(await (await post(run, "answer", values, signal)).json()),
  async *events(run, values, signal) {
    const response = await post(run, "write", values, signal);
    if (!response.ok) return yield { refused: shownAnswer(await response.json()) };
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop();
      yield* lines.map((line) => JSON.parse(line));
    }
  },
};
const isExported = document.getElementById("run-0") !== null;
const source = isExported ? { answer: computedAnswer, events: computedEvents } : served;

function complain(panel, error) {
  if (error.name === "AbortError") return;
  if (isExported) throw error; // a defect of the page
  if (!panel.querySelector(".silent")) answerOf(panel).append(element("p", "notice error silent", SILENT));
}

// --- classifiers, translators and masked language models: answers while the user types ---

// Each panel has one request at a time. Changes during a request are sent together in the next one.
async function ask(panel) {
  panel.isStale = true;
  if (panel.isAsking && isExported) panel.running?.abort(); // it would occupy the page
  if (panel.isAsking) return;
  panel.isAsking = true;
  while (panel.isStale) {
    panel.isStale = false;
    await askOnce(panel);
  }
  panel.isAsking = false;
}

async function askOnce(panel) {
  const values = valuesOf(formOf(panel)), answer = answerOf(panel);
  if (panel.dataset.label) values.label = panel.dataset.label;
  for (const choice of answer.querySelectorAll("select")) values[choice.name] = numberIn(choice);
  try {
    const classes = answer.querySelector(".classes"); // available long before their explanation
    if (classes) {
      fill(classes, await source.answer(panel.dataset.run, { ...values, quick: 1 }, signalOf(panel)));
      if (panel.isStale) return;
    }
    fill(answer, await source.answer(panel.dataset.run, values, signalOf(panel)));
    answer.classList.remove("looking");
  } catch (error) {
    complain(panel, error);
  }
}

// Keeps the keyboard focus on the same bar or field.
function fill(part, html) {
  const { dataset, name } = part.contains(document.activeElement) ? document.activeElement : {};
  part.innerHTML = html;
  if (dataset?.label) part.querySelector(`[data-label="${CSS.escape(dataset.label)}"]`)?.focus();
  else if (name) part.querySelector(`[name="${name}"]`)?.focus();
  for (const map of part.querySelectorAll(".attention")) map.querySelector(".word")?.setAttribute("tabindex", 0);
}

function askSoon(form) {
  clearTimeout(form.waiting);
  form.waiting = setTimeout(() => form.checkValidity() && panelsOf(form).forEach(ask), WAIT);
}

// Makes a text that of a form, and of each look inside its runs.
function setText(form, text) {
  form.elements.text.value = text;
  for (const panel of panelsOf(form)) {
    delete panel.dataset.label;
    panel.look?.(text);
  }
  if (form.matches(".typed")) askSoon(form);
}

document.addEventListener("input", ({ target }) => {
  const form = target.closest("form.typed, form.written");
  if (form && target.name === "text") setText(form, target.value);
  else if (form?.matches(".typed")) askSoon(form);
});

document.addEventListener("change", (event) => {
  if (event.target.matches(".view select")) ask(event.target.closest(".panel"));
});

// --- attention: the row of a query, or the column of a key ---

function look(word) {
  const map = word.closest(".attention"), answer = word.closest(".answer");
  map.weights ??= bytesOfBase64(map.dataset.weights);
  const columns = Number(map.dataset.columns);
  const isRow = "row" in word.dataset;
  const own = Number(isRow ? word.dataset.row : word.dataset.column);
  const others = [...map.querySelectorAll(isRow ? "[data-column]" : "[data-row]")];
  const weights = others.map((_, i) => map.weights[isRow ? own * columns + i : i * columns + own] / 255);
  const largest = Math.max(...weights, 0.02);
  for (const each of map.querySelectorAll(".word")) {
    each.style.removeProperty("--look");
    each.classList.toggle("here", each === word);
  }
  others.forEach((other, i) => {
    const part = Math.round((50 * weights[i]) / largest);
    other.style.setProperty("--look", `color-mix(in srgb, var(--attention) ${part}%, var(--paper))`);
  });
  const largestFirst = best(weights, 4).filter((i) => weights[i] > 0);
  const looks = answer.querySelector(".looks");
  looks.replaceChildren(element("b", "", word.textContent), isRow ? " attends to " : " is attended to by ");
  looks.append(largestFirst.map((i) => `${others[i].textContent} ${Math.round(100 * weights[i])}%`).join(", "));
  answer.classList.add("looking");
}

for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const word = event.target.closest?.(".attention .word");
    if (word) look(word);
    else document.querySelectorAll(".looking").forEach(lookAway);
  });
}

// Moves the keyboard focus to the next word, so that Tab stops at one word of a text.
function moveTo(word, step) {
  const words = [...word.closest(".attention, .chips").querySelectorAll(".word")];
  const next = words[words.indexOf(word) + step];
  if (!next) return;
  word.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function lookAway(answer) {
  answer.classList.remove("looking");
  answer.querySelectorAll(".here").forEach((word) => word.classList.remove("here"));
}

// --- generators: a stream of text ---

async function write(panel) {
  const answer = answerOf(panel);
  const output = element("div", "output");
  output.tabIndex = 0;
  const said = element("div", "said");
  answer.replaceChildren(output, element("div", "considered"), said);
  panel.written = []; // tokens with their candidates
  try {
    for await (const event of source.events(panel.dataset.run, valuesOf(formOf(panel)), signalOf(panel))) {
      if (event.refused) return (answer.innerHTML = event.refused);
      show(panel, event);
    }
  } catch (error) {
    if (error.name === "AbortError") said.append(element("p", "note", "stopped"));
    complain(panel, error);
  }
}

function show(panel, event) {
  const output = panel.querySelector(".output"), said = panel.querySelector(".said");
  if ("begin" in event) {
    output.append(element("span", "prompt", event.begin));
    event.notes.forEach((note) => said.append(element("p", "note", note)));
  }
  if (event.tokens) {
    const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    for (const token of event.tokens) {
      const shown = element("span", "token");
      if (token.text.includes("\n")) shown.append(element("span", "mark", "⏎"));
      if (token.mark) shown.append(element("span", "mark", token.mark));
      shown.append(token.text);
      shown.dataset.token = panel.written.push(token) - 1;
      output.append(shown);
    }
    if (isAtEnd) output.scrollTop = output.scrollHeight;
  }
  if (event.end) {
    const { characters, seconds } = event.end;
    said.append(element("p", "note", `${characters} characters in ${seconds} s; click a character to see the candidates for its token`));
  }
  if (event.error) said.append(element("p", "notice error", event.error));
}

function consider(panel, number) {
  const token = panel.written?.[number];
  const shown = panel.querySelector(`[data-token="${number}"]`);
  if (!token || !shown) return;
  panel.querySelector(".token.chosen")?.classList.remove("chosen");
  shown.classList.add("chosen");
  shown.scrollIntoView({ block: "nearest" });
  const box = panel.querySelector(".considered");
  if (!token.candidates.length) return box.replaceChildren();
  const titles = ["token", "", "network", "sampled"].map((name, i) => element("span", i > 1 ? "share" : "", name));
  const rows = token.candidates.map(([name, model, drawn, isDrawn]) => {
    const shares = [model, drawn].map((share) => element("span", "share", shareText(share)));
    const state = isDrawn ? " drawn" : drawn ? "" : " never";
    return element("div", `row${state}`, element("span", "name", name), trackOf(model), ...shares);
  });
  const text = "Probability of each candidate according to the network, and after temperature, top-k and top-p. The keys ← → move to the next token.";
  box.replaceChildren(element("p", "", text), element("div", "row head", ...titles), ...rows);
}

async function writeAll(form) {
  if (!form.reportValidity()) return;
  const panels = panelsOf(form);
  const writing = (form.writing = {});
  form.querySelector(".stop").disabled = false;
  await Promise.all(panels.map(write));
  if (form.writing === writing) form.querySelector(".stop").disabled = true;
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target.matches(".written")) writeAll(event.target);
});

document.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const output = event.target.closest(".output");
  const word = event.target.closest(":is(.attention, .chips) .word");
  if (step && word) {
    event.preventDefault();
    moveTo(word, step);
  }
  if (step && output) {
    event.preventDefault();
    const number = Number(output.querySelector(".chosen")?.dataset.token ?? -1) + step;
    consider(output.closest(".panel"), Math.max(number, 0));
  }
  if (event.key === "Enter" && !event.shiftKey && event.target.matches(".written textarea")) {
    event.preventDefault();
    writeAll(event.target.form);
  }
});

document.addEventListener("click", (event) => {
  const { target } = event;
  const form = target.closest("form");
  const panel = target.closest(".panel");
  const token = target.closest(".token");
  const bar = target.closest(".bar");
  if (token) consider(panel, Number(token.dataset.token));
  if (bar) {
    panel.dataset.label = bar.dataset.label;
    ask(panel);
  }
  if (target.matches(".example")) setText(form, target.value);
  if (target.matches(".again")) {
    form.elements.seed.value = Number(form.elements.seed.value) + 1;
    writeAll(form);
  }
  if (target.matches(".stop")) panelsOf(form).forEach((each) => each.running?.abort());
});

// --- a look inside a network, which the page computes ---

async function openInside(details) {
  const panel = details.closest(".panel"), place = details.querySelector("div"), form = formOf(panel), { run } = panel.dataset;
  details.classList.add("opened");
  try {
    const network = isExported ? networkOf(run) : openSaved(await (await fetch(`runs/${run}/network`)).json());
    const examples = Array.from(form.querySelectorAll(".example"), (button) => button.value);
    const wrote = (text) => setText(form, text);
    if (canInspect(network)) panel.look = openInspector(place, network, { number: run, text: form.elements.text.value, examples, wrote });
    else place.append(element("p", "note", "The network reads several texts at once, which this view does not show."));
  } catch (error) {
    complain(panel, error);
  }
}

document.addEventListener("toggle", ({ target }) => {
  if (target.matches(".inside:not(.opened)") && target.open) openInside(target);
}, true);

const inside = document.querySelector(`[data-run="${CSS.escape(new URLSearchParams(location.hash.slice(1)).get("inside") ?? "")}"] .inside`);
if (inside) inside.open = true;

for (const form of document.querySelectorAll("form")) {
  if (isExported) form.elements.beam_size?.closest(".fields").remove(); // its translations are greedy
  const first = form.querySelector(".example");
  if (first && !form.elements.text.value) form.elements.text.value = first.value;
  if (form.matches(".typed")) askSoon(form);
}
