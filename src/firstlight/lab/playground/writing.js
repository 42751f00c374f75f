// Generation token by token, with a cache of the keys and values of earlier tokens, and sampling.

const END_ID = 3; // of a translation, which starts with START_ID

// What one block keeps of earlier tokens: keys and values, the last inputs of its causal convolutions, and the keys and
// values of a translator's source.
class BlockCache {
  constructor(capacity) {
    Object.assign(this, { capacity, recent: {}, memory: null, known: null });
  }

  // The keys and values of all tokens, after those of new tokens, (n, heads, head_dim) each, from place `start` on.
  append(added, start) {
    const [n, heads, width] = added[0].shape;
    this.known ??= added.map(() => new Float32Array(this.capacity * heads * width));
    return added.map(({ data }, side) => {
      this.known[side].set(data, start * heads * width);
      return tensor([start + n, heads, width], this.known[side].subarray(0, (start + n) * heads * width));
    });
  }
}

Object.assign(Network.prototype, {
  newCaches() {
    const depth = this.stacks[this.kind === "translator" ? "decoder" : "blocks"] * this.options.num_loops;
    return Array.from({ length: depth }, () => new BlockCache(this.options.context_length));
  },

  // The probabilities from which a token is drawn: a Float64Array. logits: (vocabulary), array. Temperature 0 chooses
  // the most likely token.
  probabilities(logits, { temperature = 1, topK = Infinity, topP = 1 } = {}) {
    const scores = Float64Array.from(logits);
    for (const id of this.reader.target.unwritten) scores[id] = -Infinity;
    const largest = scores.reduce((a, b) => Math.max(a, b));
    let shares = scores.map((score) => Math.exp((score - largest) / Math.max(temperature, 1e-9)));
    if (temperature === 0) [topK, topP] = [1, 1];
    if (topK < shares.length || topP < 1) {
      const order = Uint32Array.from(shares.keys()).sort((a, b) => scores[b] - scores[a] || a - b);
      order.subarray(topK).forEach((id) => (shares[id] = 0));
      let before = 0;
      const most = topP * shares.reduce((a, b) => a + b);
      for (const id of order) {
        if (before >= most) shares[id] = 0;
        before += shares[id];
      }
    }
    const total = shares.reduce((a, b) => a + b);
    return shares.map((share) => share / total);
  },

  // Yield {id, text, logits, shares} for each token after a prompt. A translator writes its greedy translation of the
  // prompt, and both end with the separator or [END]. random: a function that returns numbers from 0 to below 1; see,
  // edit: as in `run`. When a generator's context is full, its first half is dropped.
  *generate(prompt, { length = 300, random = Math.random, see, edit, ...sampling } = {}) {
    const read = this.encode(prompt), most = this.options.context_length, isTranslator = this.kind === "translator";
    const at = hookOf(see, edit);
    const memory = isTranslator ? this.read(read.ids, at) : null, end = isTranslator ? END_ID : this.separator_id;
    const hasCache = isTranslator || this.options.causal; // without it, later tokens change earlier ones
    let known = isTranslator ? [START_ID] : [...read.ids], fresh = known, caches = hasCache ? this.newCaches() : undefined;
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    for (let written = 0; written < (isTranslator ? most : length); written++) {
      if (!hasCache) fresh = known = known.slice(-most);
      else if (known.length > most) {
        fresh = known = known.slice(-Math.max(most >> 1, 1));
        caches = this.newCaches();
      }
      const pass = { at, start: known.length - fresh.length, caches }, ids = Int32Array.from(fresh);
      const all = isTranslator ? this.decode(ids, memory, pass) : this.score(ids, pass);
      const logits = all.data.slice(-all.shape[1]);
      const shares = this.probabilities(logits, isTranslator ? { temperature: 0 } : sampling);
      let left = random(), id = shares.findIndex((share) => (left -= share) < 0);
      if (id < 0) id = shares.findLastIndex((share) => share > 0); // rounding
      if (isTranslator && written === most - 1) id = END_ID;
      const bytes = id === end ? new Uint8Array() : this.reader.target.piece(id);
      yield { id, text: decoder.decode(bytes, { stream: true }), logits, shares };
      if (id === end) break;
      known.push(id);
      fresh = [id];
    }
    const rest = decoder.decode();
    if (rest) yield { id: null, text: rest };
  },
});
