"use strict";
// The answers of the runs of an exported page, computed in the page: HTML and events like those of the server. All texts
// of users and networks are escaped.

const MOST_READ = 10000; // characters of a text that a run reads
const MOST_CLASSES = 10; // classes with a bar
const MOST_OCCLUDED = 60; // passes of a network to explain a prediction; the words of a longer text are taken in groups
const NUM_CANDIDATES = 10;
const MOST_DOCUMENTS = 20; // documents, such as names, in one answer
const CHUNK = 50; // milliseconds between two events

const escaped = (text) => text.replace(/[&<>"']/g, (mark) => `&#${mark.codePointAt(0)};`);
const notice = (message) => `<p class="notice">${escaped(message)}</p>`;
const notesOf = (messages) => messages.map((message) => `<p class="note">${escaped(message)}</p>`).join("");
const pause = () => new Promise((resolve) => setTimeout(resolve));

// The places of the largest values, in descending order.
function best(values, count) {
  const found = [];
  values.forEach((value, i) => {
    let rank = found.length;
    while (rank > 0 && values[found[rank - 1]] < value) rank--;
    if (rank < count) found.splice(rank, 0, i);
    found.length = Math.min(found.length, count);
  });
  return found;
}

function shareText(share) {
  const text = `${(100 * share).toFixed(1)}%`;
  return text === "100.0%" && share < 1 ? ">99.9%" : text === "0.0%" && share > 0 ? "<0.1%" : text;
}

// A bar for each of the most probable names. Each bar is a button that requests an explanation.
function barsOf(names, shares, chosen) {
  const shown = names.length > MOST_CLASSES ? best(shares, MOST_CLASSES) : [...names.keys()];
  const bar = (i) =>
    `<button type="button" class="bar" data-label="${escaped(names[i])}" aria-pressed="${names[i] === chosen}"><span class="name">${escaped(names[i])}</span>` +
    `<span class="track"><span class="fill" style="width:${(100 * shares[i]).toFixed(2)}%"></span></span><span class="share">${escaped(shareText(shares[i]))}</span></button>`;
  return `<div class="bars">${shown.map(bar).join("")}</div>`;
}

const tokensOf = (names, ...sides) =>
  names.map((name, i) => `<span class="word" ${sides.map((side) => `data-${side}="${i}"`).join(" ")}>${escaped(name) || "·"}</span>`).join(" ");

// The weights of the chosen map of attention and its head, or the mean of all heads, with fields to choose others.
function viewOf(maps, values) {
  const number = Math.min(values.map ?? maps.length - 1, maps.length - 1), { data, shape } = maps[number].weights, [heads, rows, columns] = shape;
  const head = values.head < heads ? values.head : null, size = rows * columns;
  const bytes = Array.from({ length: size }, (_, i) => {
    const shares = Array.from({ length: heads }, (_, h) => data[h * size + i]);
    return String.fromCharCode(Math.round(255 * (head === null ? shares.reduce((a, b) => a + b) / heads : shares[head])));
  });
  const option = ([value, name, isChosen]) => `<option value="${value}"${isChosen ? " selected" : ""}>${name}</option>`;
  const select = (name, options) => `<label><select name="${name}" aria-label="${name}">${options.map(option).join("")}</select></label>`;
  const ofHeads = Array.from({ length: heads > 1 ? heads : 0 }, (_, h) => [h, `head ${h + 1}`, h === head]);
  const choices = [select("map", maps.map(({ name }, i) => [i, name, i === number])), select("head", [["", "mean of all heads", head === null], ...ofHeads])];
  return { data: `data-weights="${btoa(bytes.join(""))}" data-columns="${columns}"`, choices: `<p class="view">Attention on hover: ${choices.join(" ")}</p>` };
}

const LEGEND = '<p class="legend"><span class="says">Move the pointer over a word to see its attention.</span><span class="looks"></span></p>';

// The attention of each layer whose name has a part, such as "attn": a list of {name, weights}.
function mapsOf(network, inputs, part) {
  const maps = [];
  const see = (name, weights) => {
    const [stack, number, layer, step] = name.split(".");
    if (step === "hook_pattern" && layer === part) maps.push({ name: `${stack === "blocks" ? "" : `${stack} `}block ${Number(number) + 1}`, weights });
  };
  network.run(inputs, { see });
  return maps;
}

// The attention between words: the mean over the tokens of a query, and the sum over those of a key.
function ofWords({ name, weights: { data, shape: [heads, n] } }, wordOf) {
  const words = [...new Set(wordOf)], place = wordOf.map((word) => words.indexOf(word)), out = tensor([heads, words.length, words.length]);
  const counts = words.map((word) => wordOf.filter((other) => other === word).length);
  data.forEach((share, i) => {
    const query = place[Math.floor(i / n) % n];
    out.data[(Math.floor(i / (n * n)) * words.length + query) * words.length + place[i % n]] += share / counts[query];
  });
  return { name, weights: out };
}

// --- the kinds ---

const sharesOf = ({ data }) => (data.length > 1 ? softmax(tensor([data.length], data)).data : [1 / (1 + Math.exp(data[0])), 1 / (1 + Math.exp(-data[0]))]);

function logOdds({ data }, label) {
  if (data.length === 1) return label ? data[0] : -data[0];
  const largest = Math.max(...data), others = data.filter((_, i) => i !== label).reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return data[label] - largest - Math.log(others);
}

function verdictOf(network, names, shares) {
  const [chosen] = best(shares, 1), mean = shares.reduce((total, share, i) => total + share * (i + 1), 0);
  const stars = network.are_stars ? `, ${mean.toFixed(1)} stars on average` : "";
  return `<p class="verdict"><b>${escaped(names[chosen])}</b> ${escaped(shareText(shares[chosen]))}${stars}</p>`;
}

function chooseAnswer(network, text) {
  const parts = text.split(PAIR_SEPARATOR).map(strip), answers = parts.slice(-network.num_choices), context = parts.slice(0, -network.num_choices).join(" ");
  if (!context) return notice(`Type a context and ${network.num_choices} answers with ${PAIR_SEPARATOR} between them.`);
  const logits = network.run(answers.map((answer) => network.encode(`${context} ${PAIR_SEPARATOR} ${answer}`).ids));
  const names = answers.map((answer, i) => `${i + 1}. ${answer}`), shares = sharesOf(logits);
  return verdictOf(network, names, shares) + barsOf(names, shares, names[best(shares, 1)]);
}

// How much each word that is read raises the log-odds of a class, compared with an unknown word in its place.
async function worthOfWords(network, read, label, signal) {
  const words = [...new Set(read.wordOf)], full = logOdds(network.run(read.ids), label), step = Math.ceil(words.length / MOST_OCCLUDED), worth = new Map();
  for (let start = 0; start < words.length; start += step) {
    const group = words.slice(start, start + step), ids = read.ids.map((id, i) => (group.includes(read.wordOf[i]) && !isMark(network, id) ? UNKNOWN_ID : id));
    const value = (full - logOdds(network.run(ids), label)) / group.length;
    group.forEach((word) => worth.set(word, value));
    await pause();
    signal.throwIfAborted();
  }
  return worth;
}

const isMark = (network, id) => network.reader.tokenizer.readsPairs && id >= START_ID && id <= EXTRACT_ID;

function shadedWords(read, worth, label) {
  const largest = Math.max(0.5, ...Array.from(worth.values(), Math.abs)), place = new Map([...worth.keys()].map((word, i) => [word, i]));
  const isUnknown = new Set(read.wordOf.filter((_, i) => read.ids[i] === UNKNOWN_ID));
  const shown = read.words.map((word, i) => {
    if (!place.has(i)) return `<span class="unread" title="the network does not read this word">${escaped(word)}</span>`;
    const value = worth.get(i), strength = Math.round(65 * Math.min(Math.abs(value) / largest, 1)), row = place.get(i);
    const says = isUnknown.has(i) ? "not in the vocabulary" : `${value > 0 ? "+" : ""}${value.toFixed(2)} for ${label}`;
    const shade = `color-mix(in srgb, var(--${value > 0 ? "for" : "against"}) ${strength}%, transparent)`;
    return `<span class="word${isUnknown.has(i) ? " unknown" : ""}" data-row="${row}" data-column="${row}" style="--shade:${shade}" title="${escaped(says)}">${escaped(word)}</span>`;
  });
  return shown.join(" ");
}

const ANSWERS = {
  async classifier(network, text, values, signal) {
    if (network.num_choices) return chooseAnswer(network, text);
    if (network.reader.tokenizer.readsPairs && !text.includes(PAIR_SEPARATOR)) return notice(`Type two texts with ${PAIR_SEPARATOR} between them.`);
    const read = network.encode(text), names = network.class_names;
    if (read.words.every((word) => PAIR_MARKS.includes(word))) {
      return notice(text.trim() ? "The text has no word that the network can read." : "Type a review. The prediction changes as you type.");
    }
    const shares = sharesOf(network.run(read.ids)), label = names.includes(values.label) ? values.label : names[best(shares, 1)];
    const classes = verdictOf(network, names, shares) + barsOf(names, shares, label);
    if (values.quick) return classes;
    const worth = await worthOfWords(network, read, names.indexOf(label), signal);
    const view = viewOf(mapsOf(network, read.ids, "attn").map((map) => ofWords(map, read.wordOf)), values);
    return `<div class="classes">${classes}</div><p class="legend"><span class="says">Contribution of each word: <span class="key for">for</span> or ` +
      `<span class="key against">against</span> <b>${escaped(label)}</b>, compared with an unknown word in its place</span><span class="looks"></span></p>` +
      `<div class="text attention" ${view.data}>${shadedWords(read, worth, label)}</div>${view.choices}${notesOf(read.notes)}`;
  },

  async masked(network, text, values) {
    if (!text.includes(MASK)) return notice(`Type a text with ${MASK} in place of a word. The predictions change as you type.`);
    const read = network.encode(text), words = network.reader.tokenizer.words, logits = network.run(read.ids);
    const masks = [...read.ids.keys()].filter((place) => read.ids[place] === words.length);
    const found = masks.map((place) => {
      const shares = softmax(rowsOf(logits, place, place + 1)).data.fill(0, 0, UNKNOWN_ID + 1), total = shares.reduce((a, b) => a + b);
      return best(shares, 8).map((id) => [words[id], shares[id] / total]);
    });
    const [first, ...rest] = text.split(MASK);
    const filled = rest.reduce((done, part, i) => {
      const [[word]] = found[i];
      return (word.startsWith(CONTINUATION) ? done.trimEnd() + word.slice(CONTINUATION.length) : done + word) + part;
    }, first);
    const bars = found.slice(0, 10).map((rows) => barsOf(rows.map(([word]) => word), rows.map(([, share]) => share), rows[0][0]));
    const view = viewOf(mapsOf(network, read.ids, "attn"), values);
    return `<p class="verdict">${escaped(filled)}</p>${bars.join("")}${LEGEND}<div class="text attention" ${view.data}>${tokensOf(read.tokens, "row", "column")}</div>${view.choices}${notesOf(read.notes)}`;
  },

  async translator(network, text, values) {
    if (!text.trim()) return notice("Type a sentence. The translation changes as you type.");
    const read = network.encode(text), written = [...network.generate(text)].filter(({ id }) => id !== END_ID && id !== null).map(({ id }) => id);
    const target = network.reader.target, translation = strip(utf8(written.filter((id) => id > END_ID).map(target.piece)));
    const view = viewOf(mapsOf(network, { source: read.ids, target: Int32Array.of(START_ID, ...written) }, "cross_attn"), values);
    return `<p class="verdict translation">${escaped(translation) || "<i>The translation is empty.</i>"}</p>${LEGEND}<div class="attention" ${view.data}>` +
      `<div class="text">${tokensOf(read.tokens, "column")}</div><div class="text written">${tokensOf([...written.map((id) => nameOfSentenceToken(target, id)), "[END]"], "row")}</div></div>${view.choices}${notesOf(read.notes)}`;
  },
};

// Random numbers from 0 to below 1 that depend on a seed (a multiply-xorshift of a counter, as in SplitMix).
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}

// Yield the events of a text that a generator writes, as the server does.
async function* writtenEvents(network, values, signal) {
  const text = values.text.slice(-MOST_READ), started = performance.now(), name = (id) => nameOfTextToken(network, network.reader.tokenizer, id);
  const { notes, text: prompt } = network.encode(text), long = values.text.length > MOST_READ;
  const cut = long ? [`the prompt is long: only its last ${MOST_READ.toLocaleString("en")} characters are read`] : [];
  const sampling = { temperature: values.temperature, topK: values.top_k ?? Infinity, topP: values.top_p };
  let characters = 0, left = values.tokens, until = started;
  for (let document = 0; left > 0 && (!document || (network.separator_id !== null && document < MOST_DOCUMENTS)); document++) {
    yield { begin: (document ? "\n" : "") + prompt, notes: document ? [] : [...cut, ...notes] };
    let tokens = [];
    for (const { id, text: piece, logits, shares } of network.generate(text, { ...sampling, length: left, random: seeded(values.seed + document) })) {
      const model = id === null ? [] : network.probabilities(logits), shown = id === null ? [] : [...new Set([...best(model, NUM_CANDIDATES), id])].filter((i) => model[i] > 0);
      const mark = piece || id === null ? "" : id === network.separator_id ? name(id) : "·";
      tokens.push({ text: piece, mark, candidates: shown.map((i) => [name(i), model[i], shares[i], i === id]) });
      characters += [...piece].length;
      left -= id !== null;
      if (performance.now() < until) continue;
      yield { tokens };
      tokens = [];
      await pause();
      signal.throwIfAborted();
      until = performance.now() + CHUNK;
    }
    yield { tokens };
  }
  yield { end: { characters, seconds: ((performance.now() - started) / 1000).toFixed(2) } };
}

// --- the runs of the page ---

const opened = new Map(); // run -> its network
function networkOf(run) {
  if (!opened.has(run)) {
    const { description, tensors } = JSON.parse(document.getElementById(`run-${run}`).textContent), text = atob(tensors), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    opened.set(run, openNetwork(description, bytes.buffer));
  }
  return opened.get(run);
}

async function computedAnswer(run, values, signal) {
  const network = networkOf(run), notes = values.text.length > MOST_READ ? [`the text is long: only its first ${MOST_READ.toLocaleString("en")} characters are read`] : [];
  try {
    return (await ANSWERS[network.kind](network, encodable(values.text.slice(0, MOST_READ)), values, signal)) + notesOf(notes);
  } catch (error) {
    if (error instanceof TextError) return notice(error.message);
    throw error;
  }
}

async function* computedEvents(run, values, signal) {
  try {
    yield* writtenEvents(networkOf(run), { ...values, text: encodable(values.text) }, signal);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    yield { error: error.message };
  }
}
