// The HTML of answers, and the answers of the runs of an exported page, which the page computes: parts and events like those
// of the server, without the attention, which inspector.js shows. All texts of users and networks are escaped.

const MOST_READ = 10000; // characters of a text that a run reads
const MOST_CLASSES = 10; // classes with a bar
const MOST_OCCLUDED = 60; // passes of a network to explain a prediction; the words of a longer text are taken in groups
const MOST_UNREAD = 30; // consecutive words outside the context that are shown
const SMALL_SCORE = 0.5; // nats; a text with smaller scores only has pale colors
const NUM_CANDIDATES = 10;
const NUM_FILLINGS = 8; // words for each [MASK]
const MOST_MASKS = 10; // masks with bars
const MOST_DOCUMENTS = 20; // documents, such as names, in one answer
const CHUNK = 50; // milliseconds between two events

// A piece of HTML from a template. Values are escaped, except pieces and lists of pieces.
class Html {
  constructor(text) {
    this.text = text;
  }
}
// A text in which no character is a mark of HTML.
const escaped = (text) => text.replace(/[&<>"']/g, (mark) => `&#${mark.codePointAt(0)};`);
const inserted = (value) =>
  Array.isArray(value) ? value.map(inserted).join("") : value instanceof Html ? value.text : escaped(String(value));
// The tag of templates of HTML: html`<b>${name}</b>`.
const html = (parts, ...values) => new Html(parts.reduce((text, part, i) => text + inserted(values[i - 1]) + part));

// Lets the page show what is computed, and read the user's input.
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

// A share from 0 to 1 as a percentage with one digit; never 0.0% or 100.0% for another number.
function shareText(share) {
  const text = `${(100 * share).toFixed(1)}%`;
  return text === "100.0%" && share < 1 ? ">99.9%" : text === "0.0%" && share > 0 ? "<0.1%" : text;
}

// A bar for each of the most probable names. Each bar is a button that requests an explanation.
function barsOf(names, shares, chosen) {
  const shown = names.length > MOST_CLASSES ? best(shares, MOST_CLASSES) : [...names.keys()];
  const bars = shown.map((i) => html`
    <button type="button" class="bar" data-label="${names[i]}" aria-pressed="${names[i] === chosen}">
      <span class="name">${names[i]}</span>
      <span class="track"><span class="fill" style="width:${(100 * shares[i]).toFixed(2)}%"></span></span>
      <span class="share">${shareText(shares[i])}</span>
    </button>`);
  return html`<div class="bars">${bars}</div>`;
}

function verdictOf({ names, shares, are_stars }) {
  const [chosen] = best(shares, 1), mean = shares.reduce((total, share, i) => total + share * (i + 1), 0);
  const stars = are_stars ? `, ${mean.toFixed(1)} stars on average` : "";
  return html`<p class="verdict"><b>${names[chosen]}</b> ${shareText(shares[chosen])}${stars}</p>`;
}

// The words of a text; those that the network reads have the colors of their scores.
function shadedWords({ words, read, scores, unknown, label }) {
  const largest = Math.max(SMALL_SCORE, ...scores.map(Math.abs)), placeOf = new Map(read.map((word, place) => [word, place]));
  const parts = [];
  let unread = [];
  const skip = () => {
    const more = unread.length > MOST_UNREAD ? ` … and ${readable(unread.length - MOST_UNREAD)} more` : "";
    const shown = unread.slice(0, MOST_UNREAD).join(" ") + more;
    if (shown) parts.push(html`<span class="unread" title="the network does not read these words">${shown}</span> `);
    unread = [];
  };
  words.forEach((word, i) => {
    if (!placeOf.has(i)) return unread.push(word);
    skip();
    const place = placeOf.get(i), score = scores[place], strength = Math.round(50 * Math.min(Math.abs(score) / largest, 1));
    const says = unknown.includes(i) ? "not in the vocabulary" : `${score > 0 ? "+" : ""}${score.toFixed(2)} for ${label}`;
    const shade = `color-mix(in srgb, var(--${score > 0 ? "for" : "against"}) ${strength}%, transparent)`;
    parts.push(html`<span class="word${unknown.includes(i) ? " unknown" : ""}" data-row="${place}" data-column="${place}"
      style="--shade:${shade}" title="${says}">${word}</span> `);
  });
  skip();
  return parts;
}

// Tokens as words; their places are those of rows, of columns, or of both in the attention.
const tokensOf = (names, isRow, isColumn) => names.map((name, i) => {
  const places = new Html(`${isRow ? ` data-row="${i}"` : ""}${isColumn ? ` data-column="${i}"` : ""}`);
  return html`<span class="word"${places}>${name || "·"}</span> `;
});

// A field with the choice of one of some pairs of a value and a text.
function fieldOf(name, options, chosen) {
  const shown = options.map(([value, text]) => html`<option value="${value}"${new Html(value === chosen ? " selected" : "")}>${text}</option>`);
  return html`<select name="${name}" aria-label="${name}">${shown}</select>`;
}

// Two fields for the choice of the attention that is shown: a map, and a head or the mean of all heads.
function choicesOf({ maps, map, heads, head }) {
  const ofHeads = Array.from({ length: heads > 1 ? heads : 0 }, (_, i) => [i, `head ${i + 1}`]);
  const fields = [fieldOf("map", maps.map((name, i) => [i, name]), map), fieldOf("head", [["", "mean of all heads"], ...ofHeads], head ?? "")];
  return html`<p class="view">Attention on hover: <label>${fields[0]}</label> <label>${fields[1]}</label></p>`;
}

const POINT = "Point at a word, or move to it with Tab and the arrow keys, to see its attention.";
const legendOf = (says) => html`<p class="legend"><span class="says">${says}</span><span class="looks"></span></p>`;
const contributionOf = ({ label, method }) => html`Contribution of each word: <span class="key for">for</span> or
  <span class="key against">against</span> <b>${label}</b>, ${method}`;

// The HTML of an answer from its parts, which `Panel.answer` in kind/panel.py lists.
function shownAnswer({ notice, html: own, verdict, translation, classes, bars = [], words, tokens, pair, view, notes = [] }) {
  if (notice !== undefined) return html`<p class="notice">${notice}</p>`.text;
  const parts = own === undefined ? [] : [new Html(own)];
  if (verdict !== undefined) parts.push(html`<p class="verdict">${verdict}</p>`);
  if (translation !== undefined) {
    parts.push(html`<p class="verdict translation">${translation || html`<i>The translation is empty.</i>`}</p>`);
  }
  if (classes) {
    const shown = html`${verdictOf(classes)}${barsOf(classes.names, classes.shares, classes.label)}`;
    parts.push(words ? html`<div class="classes">${shown}</div>` : shown);
  }
  parts.push(...bars.map(({ names, shares }) => barsOf(names, shares, names[0])));
  if (words || view) parts.push(legendOf(words ? contributionOf(words) : POINT));
  const weights = new Html(view ? ` data-weights="${view.weights}" data-columns="${view.columns}"` : "");
  if (words) parts.push(html`<div class="text${view ? " attention" : ""}"${weights}>${shadedWords(words)}</div>`);
  if (tokens) parts.push(html`<div class="text attention"${weights}>${tokensOf(tokens, true, true)}</div>`);
  if (pair) {
    parts.push(html`<div class="attention"${weights}><div class="text">${tokensOf(pair.columns, false, true)}</div>
      <div class="text written">${tokensOf(pair.rows, true, false)}</div></div>`);
  }
  if (view) parts.push(choicesOf(view));
  return html`${parts}${[...new Set(notes)].map((message) => html`<p class="note">${message}</p>`)}`.text;
}

// --- the kinds ---

// The probabilities of the classes. One logit stands for two classes.
const sharesOf = ({ data }) => softmax(tensor([Math.max(data.length, 2)], data.length > 1 ? data : Float32Array.of(0, data[0]))).data;

// The mean outputs of the windows of a text.
const meanOf = (outputs) => ({ data: outputs[0].data.map((_, i) => outputs.reduce((sum, { data }) => sum + data[i], 0) / outputs.length) });

function logOdds({ data }, label) {
  if (data.length === 1) return label ? data[0] : -data[0];
  const largest = Math.max(...data), others = data.filter((_, i) => i !== label);
  return data[label] - largest - Math.log(others.reduce((total, logit) => total + Math.exp(logit - largest), 0));
}

function chooseAnswer(network, text) {
  const { num_choices: count, num_contexts: contexts } = network, parts = text.split(PAIR_SEPARATOR).map(strip);
  if (![1, contexts].includes(parts.length - count)) {
    return { notice: `Type a context and ${count} answers with ${PAIR_SEPARATOR} between them.` };
  }
  const answers = parts.slice(-count), context = parts.slice(0, -count).join(" ");
  const shares = sharesOf(network.run(answers.map((answer) => network.encode(`${context} ${PAIR_SEPARATOR} ${answer}`).ids)));
  const names = answers.map((answer, i) => `${i + 1}. ${answer}`);
  return { classes: { names, shares, label: names[best(shares, 1)] } };
}

// How much each word that is read raises the log-odds of a class, compared with an unknown word in its place.
async function worthOfWords(network, read, label, signal) {
  const isMark = (id) => network.reader.tokenizer.readsPairs && id >= START_ID && id <= EXTRACT_ID;
  const words = [...new Set(read.wordOf)], step = Math.ceil(words.length / MOST_OCCLUDED), worth = new Map();
  const full = logOdds(network.run(read.ids), label);
  for (let start = 0; start < words.length; start += step) {
    const group = words.slice(start, start + step);
    const ids = read.ids.map((id, i) => (group.includes(read.wordOf[i]) && !isMark(id) ? UNKNOWN_ID : id));
    const value = (full - logOdds(network.run(ids), label)) / group.length;
    group.forEach((word) => worth.set(word, value));
    await pause();
    signal.throwIfAborted();
  }
  return worth;
}

const ANSWERS = {
  async classifier(network, text, values, signal) {
    if (network.num_choices) return { ...chooseAnswer(network, text), notes: values.notes };
    if (network.reader.tokenizer.readsPairs && !text.includes(PAIR_SEPARATOR)) {
      return { notice: `Type two texts with ${PAIR_SEPARATOR} between them.` };
    }
    const read = network.encode(text), names = network.class_names;
    if (read.words.every((word) => PAIR_MARKS.includes(word))) {
      const empty = "Type a review. The prediction changes as you type.";
      return { notice: text.trim() ? "The text has no word that the network can read." : empty };
    }
    const shares = sharesOf(meanOf(read.windows.map((ids) => network.run(ids)))), label = names.includes(values.label) ? values.label : names[best(shares, 1)];
    const classes = { names, shares, label, are_stars: network.are_stars };
    if (values.quick) return { classes };
    const worth = await worthOfWords(network, read, names.indexOf(label), signal);
    const unknown = read.wordOf.filter((_, i) => read.ids[i] === UNKNOWN_ID), method = "compared with an unknown word in its place";
    const words = { words: read.words, read: [...worth.keys()], scores: [...worth.values()], unknown, label, method };
    return { classes, words, notes: [...values.notes, ...read.notes] };
  },

  async masked(network, text, values) {
    if (!text.includes(MASK)) {
      return { notice: `Type a text with ${MASK} in place of a word. The predictions change as you type.` };
    }
    const read = network.encode(text), { words } = network.reader.tokenizer, logits = network.run(read.ids);
    const masks = [...read.ids.keys()].filter((place) => read.ids[place] === words.length);
    const found = masks.map((place) => {
      const scores = rowsOf(logits, place, place + 1);
      scores.data.fill(-Infinity, 0, UNKNOWN_ID + 1);
      const shares = softmax(scores).data, ids = best(shares, NUM_FILLINGS);
      return { words: ids.map((id) => words[id]), shares: ids.map((id) => shares[id]) };
    });
    const filled = text.split(MASK).reduce((done, part, i) => {
      const [word] = found[i - 1].words;
      return (word.startsWith(CONTINUATION) ? done.trimEnd() + word.slice(CONTINUATION.length) : done + word) + part;
    });
    const bars = found.slice(0, MOST_MASKS).map((each) => ({ names: each.words, shares: each.shares }));
    return { verdict: filled, bars, notes: values.notes };
  },

  async translator(network, text, values) {
    if (!text.trim()) return { notice: "Type a sentence. The translation changes as you type." };
    const { target } = network.reader;
    const written = Array.from(network.generate(text), ({ id }) => id).filter((id) => id !== END_ID && id !== null);
    const translation = strip(utf8(written.filter((id) => id > END_ID).map(target.piece)));
    return { translation, notes: [...values.notes, ...network.encode(text).notes] };
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
  const text = values.text.slice(-MOST_READ), { notes, text: prompt } = network.encode(text), started = performance.now();
  const name = (id) => nameOfTextToken(network, network.reader.tokenizer, id);
  const sampling = { temperature: values.temperature, topK: values.top_k ?? Infinity, topP: values.top_p };
  if (text !== values.text) notes.unshift(`the prompt is long: only its last ${readable(MOST_READ)} characters are read`);
  let characters = 0, left = values.tokens, until = started;
  const isOver = (number) => left < 1 || (number && (network.separator_id === null || number === MOST_DOCUMENTS));
  for (let number = 0; !isOver(number); number++) {
    yield { begin: (number ? "\n" : "") + prompt, notes: number ? [] : notes };
    let tokens = [];
    const random = seeded(values.seed + number);
    for (const { id, text: piece, logits, shares } of network.generate(text, { ...sampling, length: left, random })) {
      const candidates = id === null ? [] : candidatesOf(network.probabilities(logits), shares, id, name);
      const mark = piece || id === null ? "" : id === network.separator_id ? name(id) : "·";
      tokens.push({ text: piece, mark, candidates });
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

function candidatesOf(model, shares, drawn, name) {
  const ids = best(model, NUM_CANDIDATES).filter((id) => model[id] > 0);
  return [...new Set([...ids, drawn])].map((id) => [name(id), model[id], shares[id], id === drawn]);
}

// --- the runs of the page ---

const readable = (number) => number.toLocaleString("en");
// The bytes of a text in base64.
const bytesOfBase64 = (text) => Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
// The network of a run as `packed` of page.py writes it.
const openSaved = ({ description, tensors }) => openNetwork(description, bytesOfBase64(tensors).buffer);

const opened = new Map(); // run -> its network
// The network of a run of an exported page, which is opened at its first use.
function networkOf(run) {
  if (!opened.has(run)) opened.set(run, openSaved(JSON.parse(document.getElementById(`run-${run}`).textContent)));
  return opened.get(run);
}

// The answer of a run to the values of a form, as HTML. signal: aborts it.
async function computedAnswer(run, values, signal) {
  const network = networkOf(run), text = encodable(values.text.slice(0, MOST_READ));
  const notes = values.text.length > MOST_READ ? [`the text is long: only its first ${readable(MOST_READ)} characters are read`] : [];
  try {
    return shownAnswer(await ANSWERS[network.kind](network, text, { ...values, notes }, signal));
  } catch (error) {
    if (error instanceof TextError) return shownAnswer({ notice: error.message });
    throw error;
  }
}

// The events of a text that a run writes, as those of the server. signal: aborts it.
async function* computedEvents(run, values, signal) {
  try {
    yield* writtenEvents(networkOf(run), { ...values, text: encodable(values.text) }, signal);
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    yield { error: error.message };
  }
}
