// Parts of inspector.js: the steps of a network, heat maps, what a network reads and predicts, and its interventions.

const STEPS = [ // name, heading, and what is to be seen
  ["tokens", "Tokens", "The network reads the text as these tokens; the shade of each is its worth: blue ones raise the prediction, orange ones lower it, as removing them shows."],
  ["vectors", "Vectors", "Each token is a row of numbers: first the same for each occurrence, then with its position. Blue is positive, orange is negative."],
  ["heads", "Heads", "Each small picture is a head: a row is a token that attends, and a dark cell is where it attends to. Switch a head off to see what the prediction loses."],
  ["qkv", "Queries, keys and values", "A token attends to those whose keys are similar to its query; it receives their values."],
  ["scores", "Scores, mask and softmax", "Queries times keys are the scores. A row is a token that attends. It does not attend to those with a small gray square. The softmax makes the weights of each row add up to 100%."],
  ["arcs", "Where the token attends", "Each arc leads from the chosen token to one that it attends to; its width is the weight."],
  ["mix", "Mix of the values", "Each token receives the mix of the values, weighted by its attention; the output layer combines the mixes of all heads."],
  ["residual", "Residual connection", "What attention computes is added to the vectors; rows that change much received much."],
  ["feed", "Feed-forward layer", "Each token passes alone through a wider layer; its result is added too. A strong color is an active unit."],
  ["output", "Prediction", "Logits become probabilities. The temperature sharpens or flattens them, top-k and top-p remove the rest."],
  ["patch", "Two texts", "Each cell moves one vector of the second text into the first. Blue: this vector alone brings the prediction towards that of the second text."],
];
const TEACHING = { // kind -> [name, text, second text]
  classifier: [
    ["negation", "this is not a good one", "this is such a good one"],
    ["irony", "great, i slept through all of it", "great, i laughed through all of it"],
    ["an unknown word", "a zorblax of a story", "a wonder of a story"],
  ],
  masked: [["the word after it", "it [MASK] a great one", "it [MASK] two great ones"]],
  translator: [["one word", "A man is sleeping.", "A dog is sleeping."]],
};
const TOUR = [
  ["tokens", "Move over the tokens, click one to keep it, or use the arrow keys. The chosen one is marked in every panel, and its worth is below."],
  ["heads", "Choose a head. Is there one that attends to the token before, or to one word only?"],
  ["output", "Switch this head off in the panel of heads, and compare the columns: the prediction now, and with all heads."],
  ["tokens", "Type another word into “instead of it”. How much does the prediction depend on it?"],
  ["patch", "Which vectors carry the difference between the two texts, and from which block on is it in another place?"],
];
const MOST_TOKENS = 80; // of a text whose worth and patches are computed
const MOST_BARS = 10;
const MOST_NUMBERS = 6; // of a vector, as text

const dark = matchMedia("(prefers-color-scheme: dark)");
// A color of the style; the head resolves light-dark().
const colorOf = (name) => getComputedStyle(Object.assign(document.head, { style: `color: var(--${name})` })).color;
// Whether the panels can show a network: one that reads one text at once.
const canInspect = ({ num_choices: choices, options }) => !choices && !options.both_orders;
// A number with three digits; a score of minus infinity is masked.
const rounded = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : "masked");

// An element with properties or attributes, and its children.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// The track of a bar that is filled up to a share from 0 to 1.
const trackOf = (share, attributes = {}) =>
  make("span", { className: "track", ...attributes }, make("span", { className: "fill", style: `width: ${100 * share}%` }));

// A heat map of (rows, columns) numbers. marks: rows and columns with a frame. isShare: the numbers are from 0 to 1.
function paint(canvas, { rows, columns, at }, { row = null, column = null, isShare = false } = {}, most = 520) {
  const size = Math.max(1, Math.min(24, Math.floor(most / Math.max(columns, rows / 2)))), context = canvas.getContext("2d");
  const [high, wide] = [Math.max(size, Math.min(14, Math.floor(most / Math.max(rows, 1)))), size];
  [canvas.width, canvas.height] = [columns * wide, rows * high];
  let largest = 1e-9;
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) if (Number.isFinite(at(i, j))) largest = Math.max(largest, Math.abs(at(i, j)));
  const [positive, negative, ink, masked] = [colorOf(isShare ? "attention" : "for"), colorOf("against"), colorOf("ink"), colorOf("grey")];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const value = at(i, j), isMasked = !Number.isFinite(value);
      context.globalAlpha = isMasked ? 0.35 : Math.abs(value) / largest;
      context.fillStyle = isMasked ? masked : value > 0 ? positive : negative;
      if (isMasked) context.fillRect(j * wide + wide / 4, i * high + high / 4, wide / 2, high / 2);
      else context.fillRect(j * wide, i * high, wide, high);
    }
  }
  context.globalAlpha = 1;
  [context.strokeStyle, context.lineWidth] = [ink, 2]; // still visible in a canvas that is shown smaller
  if (row !== null && row < rows) context.strokeRect(0, row * high + 1, canvas.width, high - 2);
  if (column !== null && column < columns) context.strokeRect(column * wide + 1, 0, wide - 2, canvas.height);
}

// A tensor as {rows, columns, at}, which `paint` draws: of (n, …) the vectors of all tokens,
const ofRows = ({ data, shape }) => ({ rows: shape[0], columns: data.length / shape[0], at: (i, j) => data[(i * data.length) / shape[0] + j] });
// of (n, heads, width) the vectors of one head,
const ofHead = ({ data, shape: [, heads, width] }, head) => ({ rows: data.length / (heads * width), columns: width, at: (i, j) => data[(i * heads + head) * width + j] });
// and of (heads, n, keys) the scores or weights of one head.
const ofMap = ({ data, shape: [, rows, columns] }, head) => ({ rows, columns, at: (i, j) => data[(head * rows + i) * columns + j] });
// The Euclidean length of a row.
const lengthOf = ({ columns, at }, row) => Math.hypot(...Array.from({ length: columns }, (_, j) => at(row, j)));

// --- what a network reads and predicts ---

// The ids and tokens of a text; for a translator also those of its translation, which are kept during interventions.
function readInto(network, text) {
  const read = network.encode(text);
  if (network.kind !== "translator") return { source: read.ids, names: { source: read.tokens }, notes: read.notes };
  const written = [...network.generate(text)].map(({ id }) => id).filter((id) => id !== null && id !== END_ID);
  const target = Int32Array.of(START_ID, ...written);
  return { source: read.ids, target, names: { source: read.tokens, target: [...target].map((id) => nameOfSentenceToken(network.reader.target, id)) }, notes: read.notes };
}

// The inputs of `run` for what readInto returned.
const inputsOf = (network, { source, target }) => (network.kind === "translator" ? { source, target } : source);

// The attention layers: their names, and the sides of their queries and keys.
function layersOf({ kind, stacks, options }) {
  const of = (stack, part, rows, columns, title) =>
    Array.from({ length: stacks[stack] * options.num_loops }, (_, i) => ({ block: `${stack}.${i}`, name: `${stack}.${i}.${part}`, part, rows, columns, title: `${title} ${i + 1}` }));
  if (kind !== "translator") return of("blocks", "attn", "source", "source", "block");
  return [...of("encoder", "attn", "source", "source", "encoder block"), ...of("decoder", "attn", "target", "target", "decoder block"), ...of("decoder", "cross_attn", "target", "source", "cross-attention of block")];
}

// A function from the number of an output to its name.
function namesOf(network) {
  const { tokenizer, target } = network.reader;
  if (network.kind === "classifier") return (i) => network.class_names[i];
  if (network.kind === "generator") return (i) => nameOfTextToken(network, tokenizer, i);
  return network.kind === "masked" ? (i) => nameOfPiece(tokenizer, i) : (i) => nameOfSentenceToken(target, i);
}

// The logits that are shown: of a class, of the next token, of the first [MASK], or of the word after the chosen one.
function logitsOf(network, { data, shape }, { source }, place) {
  if (network.kind === "classifier") return data.length > 1 ? data : Float32Array.of(0, data[0]);
  const width = shape[1], mask = source.indexOf(network.reader.tokenizer.words.length);
  if (network.kind === "masked") return data.slice(mask * width, (mask + 1) * width).fill(-Infinity, 0, UNKNOWN_ID + 1);
  const row = network.kind === "generator" ? shape[0] - 1 : place;
  return data.slice(row * width, (row + 1) * width);
}

// The probabilities of the outputs after temperature, top-k (0: all) and top-p.
function sharesOfLogits(network, logits, { temperature, topK, topP }) {
  if (network.kind !== "classifier") return network.probabilities(logits, { temperature, topK: topK || Infinity, topP });
  return temperature ? softmax(tensor([logits.length], logits.map((logit) => logit / temperature))).data : logits.map((logit) => Number(logit === Math.max(...logits)));
}

// An edit for `run` that sets the vectors z of some heads, "layer:head", to zero. others: replaces other activations.
function without(off, others = {}) {
  if (!off.length && !Object.keys(others).length) return undefined;
  return (name, value) => {
    if (others[name]) return others[name](value);
    if (!name.endsWith(".hook_z")) return undefined;
    const heads = off.map((each) => each.split(":")).filter(([layer]) => `${layer}.hook_z` === name).map(([, head]) => Number(head));
    const [, count, width] = value.shape;
    return heads.length ? mapped(value, (x, i) => (heads.includes(Math.floor(i / width) % count) ? 0 : x)) : undefined;
  };
}

// An edit of one activation that replaces one of its rows by that of another tensor.
const withRow = (row, from) => (value) => tensor(value.shape, value.data.map((x, i) => (Math.floor(i / value.shape[1]) === row ? from.data[i] : x)));
