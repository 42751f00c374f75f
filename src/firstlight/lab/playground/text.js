// Texts as token ids and back: the normalization and the tokenizers of src/firstlight/text, with the same results.

const [PAD_ID, UNKNOWN_ID, START_ID, DELIMITER_ID, EXTRACT_ID] = [0, 1, 2, 3, 4];
const PAIR_MARKS = ["[START]", "[DELIMITER]", "[EXTRACT]"]; // around two texts
const PAIR_SEPARATOR = "|||"; // between two texts in one string
const [MASK, CONTINUATION] = ["[MASK]", "##"];
const SPACE = "[\\p{White_Space}\\x1c-\\x1f]"; // what Python counts as white space
const NOT_SPACE = SPACE.replace("[", "[^");
const MARK = "[^\\p{L}\\p{N}_\\p{White_Space}\\x1c-\\x1f]";
const WORD = /[\p{L}\p{N}_]{2,}/gu;
const WORD_OR_MARK = new RegExp(`[\\p{L}\\p{N}_]+|(${MARK})\\1{0,2}`, "gu");
const TEXT_WORD = / ?[\p{L}\p{M}\p{N}_]{1,50}| ?([^\p{L}\p{M}\p{N}_\p{White_Space}])\1{0,2}|\n{1,2}|\p{White_Space}/gu;
const GPT2_WORD = // of byte-level byte-pair encoding
  /'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const READABLE = { " ": "␣", "\n": "⏎", "\t": "⇥" };

// A text in which each half of a surrogate pair without the other is a question mark.
const encodable = (text) => text.replace(/\p{Surrogate}/gu, "?");
// A text without white space at its beginning and end.
const strip = (text) => text.replace(new RegExp(`^${SPACE}+|${SPACE}+$`, "gu"), "");

// The text of HTML entities, even if they were escaped twice. A text area decodes one without running anything.
function unescapeEntities(text) {
  const decoded = (entity) => Object.assign(document.createElement("textarea"), { innerHTML: entity }).value;
  const once = (escaped) => escaped.replace(/&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)/g, decoded);
  return text.includes("&") ? once(once(text)) : text;
}

// A text in lower case, without accents, apostrophes and zero-width joiners.
function simplified(text) {
  const lower = [...text].map((letter) => letter.toLowerCase()).join(""); // letter by letter: Σ is always σ
  return lower.normalize("NFD").replace(/[\p{M}'`’‘\u200c\u200d]/gu, "").replace(/\r\n?|\n/g, " ");
}

const wordsOf = (text) => simplified(encodable(unescapeEntities(text))).match(WORD) ?? [];
function wordsAndMarksOf(text) {
  return simplified(encodable(unescapeEntities(text)).replace(/<[^<>]{1,20}>/gu, " ")).match(WORD_OR_MARK) ?? [];
}

// GPT-2's printable symbol for each byte: itself if it is printable, else the next free code point.
const SYMBOLS = (() => {
  let free = 256;
  const isPrintable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : free++));
})();
const BYTE_OF_SYMBOL = new Map(SYMBOLS.map((symbol, byte) => [symbol, byte]));
const symbolsOf = (text) => Array.from(new TextEncoder().encode(text), (byte) => SYMBOLS[byte]).join("");
const bytesOf = (symbols) => Uint8Array.from(symbols, (symbol) => BYTE_OF_SYMBOL.get(symbol));
// The text of UTF-8 bytes.
const utf8 = (parts) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(parts.flatMap((part) => [...part])));

// A function from a word to its ids, for a model of the library `tokenizers`, read from its JSON.
function openModel({ type, vocab, merges, unk_token, continuing_subword_prefix: prefix }) {
  const ids = new Map(Object.entries(vocab)), unknown = ids.get(unk_token), found = new Map();
  const ranks = new Map((merges ?? []).map((pair, rank) => [pair.join(" "), rank]));
  const models = {
    WordLevel: (word) => [ids.get(word) ?? unknown],
    WordPiece(word) { // the longest tokens that spell the word
      const pieces = [];
      for (let start = 0, end; start < word.length; start = end) {
        for (end = word.length; !ids.has(word.slice(start, end)); end--) if (end <= start) return [unknown];
        pieces.push(ids.get(word.slice(start, end)));
      }
      return pieces;
    },
    BPE(word) { // letters, joined in the order of the merges; letters without an id are one unknown token
      const letters = [...word].map((letter, i) => (i && prefix ? prefix + letter : letter));
      const parts = letters.filter((letter, i) => ids.has(letter) || (unknown !== undefined && (!i || ids.has(letters[i - 1]))));
      for (;;) {
        let best = Infinity, place = -1;
        for (let i = 0; i + 1 < parts.length; i++) {
          const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
          if (rank < best) [best, place] = [rank, i];
        }
        if (place < 0) return parts.map((part) => ids.get(part) ?? unknown);
        parts.splice(place, 2, parts[place] + parts[place + 1].slice(prefix ? prefix.length : 0));
      }
    },
  };
  return (word) => {
    if (!found.has(word)) found.set(word, models[type](word));
    return found.get(word);
  };
}

// A tokenizer from its JSON: `words` by id, `ids(text)`, and `piece(id)`, the bytes that a token writes.
function openTokenizer(json) {
  if (json.kind === "characters") return openCharacters(json);
  const backend = json.backend ?? json, idsOf = openModel(backend.model), words = [];
  for (const [word, id] of Object.entries(backend.model.vocab)) words[id] = word;
  if (!json.kind) return openWords(backend, idsOf, words);
  const isOfSentences = json.kind === "sentences", pattern = json.kind === "text_words" ? TEXT_WORD : GPT2_WORD;
  const ids = (text) => {
    const tidy = isOfSentences ? tidied(text) : encodable(text);
    return ((isOfSentences && tidy ? " " : "") + tidy).match(pattern)?.flatMap((word) => idsOf(symbolsOf(word))) ?? [];
  };
  return { words, ids, unwritten: isOfSentences ? [PAD_ID, UNKNOWN_ID, START_ID] : [], piece: (id) => bytesOf(words[id]) };
}

const tidied = (text) => encodable(strip(text).replace(new RegExp(`${SPACE}+`, "gu"), " ").normalize("NFC"));

function openCharacters({ characters, unknown_symbol: symbol }) {
  const words = [...(symbol === null ? [] : [symbol]), ...characters], unknownId = symbol === null ? undefined : 0;
  const idOf = new Map(words.map((word, id) => [word, id]));
  const id = (letter) => {
    const found = idOf.get(letter) ?? unknownId;
    if (found !== undefined) return found;
    throw new TextError(`the character '${letter}' is not in the vocabulary, which has no unknown symbol; remove it`);
  };
  const piece = (token) => new TextEncoder().encode(words[token]);
  return { words, ids: (text) => [...text].map(id), unknownId, unwritten: symbol === null ? [] : [0], piece };
}

// Words or subwords. `split` returns the words of a text; with pairs, the three marks are words, too.
function openWords(backend, idsOf, words) {
  const hasMarks = backend.pre_tokenizer?.pattern.Regex.startsWith("[\\p{L}\\p{N}_]+|");
  const simple = hasMarks ? wordsAndMarksOf : wordsOf, readsPairs = PAIR_MARKS.every((mark, i) => words[START_ID + i] === mark);
  const split = (text) => {
    if (!readsPairs) return simple(text);
    const [first, ...rest] = text.split(PAIR_SEPARATOR);
    return [PAIR_MARKS[0], ...simple(first), PAIR_MARKS[1], ...simple(rest.join(PAIR_SEPARATOR)), PAIR_MARKS[2]];
  };
  const idsOfWord = (word) => (readsPairs && PAIR_MARKS.includes(word) ? [START_ID + PAIR_MARKS.indexOf(word)] : idsOf(word));
  const text = (id) => (id === PAD_ID ? "\n" : ` ${words[id]}`.replace(` ${CONTINUATION}`, ""));
  const ids = (asked) => simple(asked).flatMap(idsOf), piece = (id) => new TextEncoder().encode(text(id));
  const kind = { readsPairs, isOfWords: backend.model.type === "WordLevel", unknownId: UNKNOWN_ID, unwritten: [UNKNOWN_ID] };
  return { words, split, idsOfWord, ids, piece, ...kind };
}

// An error of a text that a network cannot read.
class TextError extends Error {}

// --- a text as the network of each kind reads it ---

// The tokenizers of a network, and `encode`, which returns a text as its kind reads it.
function openReader(network) {
  const [tokenizer, target] = network.tokenizers.map(openTokenizer);
  const readers = { classifier: readWords, masked: readMasked, generator: readPrompt, translator: readSentence };
  return { tokenizer, target: target ?? tokenizer, encode: (text) => readers[network.kind](network, tokenizer, text) };
}

const read = (ids, more) => ({ ids: Int32Array.from(ids), ...more });

function readWords(network, tokenizer, text) {
  const words = tokenizer.split(text), ids = [], wordOf = [];
  words.forEach((word, i) => tokenizer.idsOfWord(word).forEach((id) => wordOf.push(i) && ids.push(id)));
  const kept = tokenizer.readsPairs ? keptOfPair(ids, network) : keptOfText(ids, network);
  const chosen = kept.map((place) => ids[place]), unknown = chosen.filter((id) => id === UNKNOWN_ID).length, notes = [];
  const most = network.options.context_length, isCut = network.long_texts !== "windows";
  const reads = isCut ? "the network reads" : "the prediction is the mean over windows of all of them, and this explains";
  if (kept.length < ids.length) notes.push(`the text has ${ids.length} tokens; ${reads} ${kept.length} of them`);
  if (unknown) notes.push(`not in the vocabulary and read as [UNK]: ${unknown} of ${chosen.length}`);
  const name = (id, place) => tokenizer.isOfWords && id === UNKNOWN_ID ? `[${words[wordOf[place]]}]` : nameOfPiece(tokenizer, id);
  const tokens = chosen.map((id, i) => name(id, kept[i]));
  const windows = isCut ? [Int32Array.from(chosen)] : windowsOf(ids, most);
  return read(chosen, { tokens, words, wordOf: kept.map((place) => wordOf[place]), notes, windows });
}

// The fewest windows with `most` ids that contain all ids, at equal distances.
function windowsOf(ids, most) {
  const room = Math.max(0, ids.length - most), count = 1 + Math.ceil(room / most);
  const firsts = Array.from({ length: count }, (_, i) => Math.floor((i * room) / Math.max(1, count - 1)));
  return firsts.map((first) => Int32Array.from(ids.slice(first, first + most)));
}

// The readable name of a word or piece; the id after the last one is [MASK].
const nameOfPiece = (tokenizer, id) => (tokenizer.words[id] ?? MASK).replace(CONTINUATION, "·");

// The places start, …, start + length - 1 without those that the truncation leaves out of `most`.
function keptPlaces(start, length, most, truncation) {
  const kept = Math.min(length, most), head = { head: kept, tail: 0, head_tail: (kept + 1) >> 1 }[truncation];
  return Array.from({ length: kept }, (_, i) => start + (i < head ? i : i + length - kept));
}

const keptOfText = (ids, { options, truncation }) => keptPlaces(0, ids.length, options.context_length, truncation);

// The places of a pair. Tokens are left out of the longer text until both fit.
function keptOfPair(ids, { options, truncation }) {
  const middle = ids.indexOf(DELIMITER_ID), first = middle - 1, second = ids.length - middle - 2;
  const budget = options.context_length - PAIR_MARKS.length;
  const ofFirst = Math.min(first, Math.max(budget - second, (budget + 1) >> 1)), ofSecond = Math.min(second, budget - ofFirst);
  const [before, after] = [keptPlaces(1, first, ofFirst, truncation), keptPlaces(middle + 1, second, ofSecond, truncation)];
  return [0, ...before, middle, ...after, ids.length - 1];
}

function readMasked(network, tokenizer, text) {
  const [first, ...others] = text.split(MASK), mask = tokenizer.words.length;
  if (!others.length) throw new TextError(`the text does not contain ${MASK}; write ${MASK} for each word to fill in`);
  const ids = [...tokenizer.ids(first), ...others.flatMap((part) => [mask, ...tokenizer.ids(part)])];
  const kept = keptOfText(ids, network).map((place) => ids[place]), reads = `only ${kept.length} of them are read`;
  if (kept.filter((id) => id === mask).length < others.length) {
    throw new TextError(`the text has ${ids.length} tokens, but ${reads}, and a ${MASK} is cut off; shorten the text`);
  }
  return read(kept, { tokens: kept.map((id) => nameOfPiece(tokenizer, id)), notes: [] });
}

function readSentence(network, tokenizer, text) {
  const ids = tokenizer.ids(text), most = network.options.context_length, kept = ids.slice(0, most);
  const notes = ids.length > most ? [`the text has more than ${most} tokens, the most that the run reads; the rest is cut`] : [];
  return read(kept, { tokens: kept.map((id) => nameOfSentenceToken(tokenizer, id)), notes });
}

// The readable name of a token of a translator.
const nameOfSentenceToken = ({ words, piece }, id) => (id < 4 ? words[id] : strip(utf8([piece(id)])));

function readPrompt(network, tokenizer, text) {
  const { separator_id: separator, options: { context_length: length } } = network;
  const prepared = network.is_of_plays ? cleanPlay(text) : text;
  const notes = prepared === text ? [] : [`the prompt was prepared like the plays: '${prepared}'`];
  let ids = tokenizer.ids(prepared);
  const unknown = ids.filter((id) => id === tokenizer.unknownId).length;
  if (unknown) notes.push(`tokens unknown to the run, read as ${tokenizer.words[tokenizer.unknownId]}: ${unknown}`);
  if (!ids.length) notes.push(`the prompt is empty; the text begins as ${separator === null ? "a new line" : "a document"} does`);
  if (separator !== null || !ids.length) ids = [network.first_id, ...ids];
  if (ids.length > length) notes.push(`the prompt has ${ids.length} tokens, but the network sees only the last ${length}`);
  ids = ids.slice(-length);
  return read(ids, { tokens: ids.map((id) => nameOfTextToken(network, tokenizer, id)), text: prepared, notes });
}

// The readable name of a generator's token, with ␣ for a space, ⏎ for a new line and [end] for a separator.
function nameOfTextToken(network, tokenizer, id) {
  if (id === network.separator_id) return "[end]";
  return tokenizer.split ? tokenizer.words[id] : utf8([tokenizer.piece(id)]).replace(/[ \n\t]/g, (mark) => READABLE[mark]);
}

// A prompt with English letters and common marks, as the training text of plays.
const ALIKE = {
  ...{ Æ: "AE", æ: "ae", Œ: "OE", œ: "oe", Ø: "O", ø: "o", ß: "ss" },
  ...{ "«": "“", "»": "”", "„": "“", "‟": "“", "‚": "‘", "‛": "‘", "–": "-", "―": "—" },
};
function cleanPlay(text) {
  let clean = text.replace(/ *\t */g, " ").replace(/[^]/gu, (letter) => ALIKE[letter] ?? letter).normalize("NFKD");
  clean = clean.replace(/&c(?![\p{L}\p{N}_])\.?/gu, "etc.").replaceAll("&", "AND");
  clean = clean.replace(/(?<![^\n])([ _]*)\p{Nd}+\.? +/gu, "$1");
  clean = clean.replace(new RegExp(`(?<!${NOT_SPACE.replace("]", "(\\[—_\\-]")})"`, "gu"), "“").replaceAll('"', "”");
  if ((clean.split("'").length - 1) * 100 > clean.split("’").length - 1) clean = clean.replaceAll("'", "’");
  return clean.replace(/[^\n !(),\-.:;?A-Z[\]_a-z—‘’“”]/gu, "");
}
