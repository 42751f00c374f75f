// The networks of firstlight in the browser: the forward pass, without a library. It follows src/firstlight/networks,
// and the tests compare the two. Activations have the names of TransformerLens, such as "blocks.0.attn.hook_pattern".
// In the shapes below, n is the number of tokens.

// Open an exported network. description: its options, tokenizers, and the names, shapes and offsets of its tensors;
// buffer: an ArrayBuffer with all tensors as float32, little-endian.
const openNetwork = (description, buffer) => new Network(description, buffer);

// A function that passes an activation through `edit` and shows it to `see`, both of which may be undefined.
const hookOf = (see, edit) => (name, value) => {
  const used = edit?.(name, value) ?? value;
  see?.(name, used);
  return used;
};

// A network that was opened: its description, its weights by name, and its forward pass.
class Network {
  constructor(description, buffer) {
    Object.assign(this, description); // kind, options, norms, stacks, …
    const read = ([name, shape, offset]) => [name, tensor(shape, new Float32Array(buffer, offset, sizeOf(shape)))];
    this.weights = new Map(description.tensors.map(read));
    this.reader = openReader(this);
    // The ids of a text as the network reads them, cut to its context, and their readable tokens. A classifier and a
    // masked language model also return `words` and `wordOf`, the number of the word of each token; all return `notes`.
    this.encode = this.reader.encode;
  }

  // The logits of an input: (outputs) of a classifier, (n, vocabulary) of the other kinds. inputs: ids; a translator's
  // {source, target}; a list of ids for multiple choice. edit: receives the name and the tensor of each activation, and
  // may return another tensor; see: receives what the network uses. A pair that is read in both orders and each
  // answer of multiple choice is a run of its own.
  run(inputs, { see, edit } = {}) {
    const at = hookOf(see, edit);
    if (this.kind === "classifier") return this.classify(inputs, at);
    if (this.kind === "masked") return this.fill(inputs, at);
    if (this.kind === "translator") return this.decode(inputs.target, this.read(inputs.source, at), { at });
    return this.score(inputs, { at });
  }

  // --- the networks ---

  classify(inputs, at) {
    if (Array.isArray(inputs)) {
      const scores = inputs.map((ids) => this.classify(ids, at).data[0]);
      return tensor([scores.length], Float32Array.from(scores));
    }
    if (!this.options.both_orders) return this.classifyText(inputs, at);
    const middle = inputs.indexOf(DELIMITER_ID);
    const [start, first, second, end] = [[0, 1], [1, middle], [middle + 1, -1], [-1]].map((part) => [...inputs.slice(...part)]);
    const swapped = Int32Array.from([...start, ...second, DELIMITER_ID, ...first, ...end]);
    return sum(this.classifyText(inputs, at), this.classifyText(swapped, at));
  }

  classifyText(ids, at) {
    const causal = this.options.causal;
    const hidden = this.last("final_norm", this.stack("blocks", this.embed("", ids, { at }), { at, causal }), at);
    const { data } = this.pool(hidden), weight = this.weights.get("head.outputs.weight"); // for the longest text
    const logit = (bias, i) => bias + dot(weight.data, i * weight.shape[1], data, 0, data.length);
    return mapped(this.weights.get("head.outputs.bias"), logit);
  }

  fill(ids, at) {
    let hidden = this.last("final_norm", this.stack("blocks", this.embed("", ids, { at }), { at }), at);
    if (this.weights.has("head_layer.linear.weight")) {
      hidden = mapped(this.linear("head_layer.linear", hidden), ACTIVATIONS[this.options.activation]);
      hidden = this.norm("head_layer.norm", hidden);
    }
    return this.linear("head", hidden);
  }

  // The logits of a generator. caches: what newCaches returned, and `start` tokens were read into; they are extended.
  score(ids, { at, start = 0, caches }) {
    const hidden = this.stack("blocks", this.embed("", ids, { at, start }), { at, start, caches, causal: this.options.causal });
    return this.linear("head", this.last("final_norm", hidden, at));
  }

  // The vectors of the source, which a translator's decoder attends to: (n, dim).
  read(ids, at) {
    return this.last("encoder_norm", this.stack("encoder", this.embed("source_", ids, { at }), { at }), at);
  }

  decode(ids, memory, { at, start = 0, caches }) {
    const hidden = this.stack("decoder", this.embed("", ids, { at, start }), { at, start, caches, causal: true, memory });
    return this.linear("head", this.last("decoder_norm", hidden, at));
  }

  // --- layers ---

  // A linear layer over the last axis; the input itself if the network does not have the layer.
  linear(path, x) {
    const weight = this.weights.get(`${path}.weight`), bias = this.weights.get(`${path}.bias`)?.data;
    if (!weight) return x;
    const [outputs, inputs] = weight.shape, rows = x.data.length / inputs, out = tensor([rows, outputs]);
    for (let row = 0, place = 0; row < rows; row++) {
      for (let i = 0; i < outputs; i++) {
        out.data[place++] = dot(x.data, row * inputs, weight.data, i * inputs, inputs) + (bias ? bias[i] : 0);
      }
    }
    return out;
  }

  // A norm of (n, dim) over the coordinates of each token, or over the tokens for each coordinate ("over_words").
  norm(path, x) {
    const norm = this.norms[path];
    if (!norm) return x;
    const [n, dim] = x.shape, out = tensor(x.shape), isOverWords = norm.kind === "over_words";
    const [groups, count, next, step] = isOverWords ? [dim, n, 1, dim] : [n, dim, dim, 1];
    const weight = this.weights.get(`${path}.weight`)?.data, bias = this.weights.get(`${path}.bias`)?.data;
    for (let group = 0; group < groups; group++) {
      const start = group * next, end = start + count * step;
      let mean = 0, variance = 0;
      if (norm.kind !== "rms") for (let i = start; i < end; i += step) mean += x.data[i] / count;
      for (let i = start; i < end; i += step) variance += (x.data[i] - mean) ** 2 / count;
      const scale = 1 / Math.sqrt(variance + norm.eps);
      for (let i = start; i < end; i += step) {
        const coordinate = isOverWords ? group : i - start;
        out.data[i] = (x.data[i] - mean) * scale * (weight ? weight[coordinate] : 1) + (bias ? bias[coordinate] : 0);
      }
    }
    return out;
  }

  // The vectors of tokens with their positions, (n, dim). side: "", or "source_" for the encoder of a translator.
  embed(side, ids, { at, start = 0 }) {
    const table = this.weights.get(`${side}embedding.weight`), [known, width] = table.shape, mask = this.weights.get("mask_vector");
    const name = side ? "encoder." : this.kind === "translator" ? "decoder." : "";
    const { embedding_scale: scale, unknown_id: unknown } = this.options;
    let hidden = tensor([ids.length, width]);
    ids.forEach((id, i) => {
      const vector = id < known ? rowsOf(table, id, id + 1) : mask ?? rowsOf(table, unknown, unknown + 1);
      hidden.data.set(vector.data.map((value) => value * scale), i * width);
    });
    hidden = this.convolve(at(`${name}hook_embed`, this.linear("projection", hidden)));
    const positions = this.weights.get(`${side}positions.table`);
    if (positions) {
      const [n, dim] = hidden.shape, columns = positions.shape[1]; // 1 column is the same number for all coordinates
      const placeOf = (i) => (start + Math.floor(i / dim)) * columns + (columns > 1 ? i % dim : 0);
      hidden = sum(hidden, at(`${name}hook_pos_embed`, tensor([n, dim], hidden.data.map((_, i) => positions.data[placeOf(i)]))));
    }
    return this.norm(side ? "source_norm" : "embedding_norm", hidden);
  }

  // A convolution over each vector and its neighbors, with a ReLU, that is added to the vectors.
  convolve(hidden) {
    const weight = this.weights.get("convolution.mixture.weight"), bias = this.weights.get("convolution.mixture.bias");
    if (!weight) return hidden;
    const [dim, , width] = weight.shape, n = hidden.shape[0];
    return mapped(hidden, (value, place) => {
      const i = Math.floor(place / dim), output = place % dim;
      let total = bias.data[output];
      for (let k = 0; k < width; k++) {
        const neighbor = i + k - (width >> 1);
        if (neighbor < 0 || neighbor >= n) continue;
        for (let d = 0; d < dim; d++) total += weight.data[(output * dim + d) * width + k] * hidden.data[neighbor * dim + d];
      }
      return value + Math.max(total, 0);
    });
  }

  // All blocks of a stack. pass: `at`, `causal`, and for decoders `start`, `caches` and `memory`.
  stack(name, hidden, pass) {
    const count = this.stacks[name];
    for (let i = 0; i < count * this.options.num_loops; i++) {
      hidden = this.block(`${name}.${i % count}`, `${name}.${i}`, hidden, { start: 0, ...pass, cache: pass.caches?.[i] });
    }
    return hidden;
  }

  // path: the block in the names of the weights; label: in those of the activations, where loops are counted on.
  block(path, label, hidden, pass) {
    const { at, memory } = pass, known = { ...pass, causal: false };
    const layers = [["self_attention", "attn", "resid_pre", (x, ...names) => this.attend(...names, x, x, pass)]];
    if (memory) layers.push(["cross_attention", "cross_attn", "resid_mid", (x, ...names) => this.attend(...names, x, memory, known)]);
    if (["expand", "linear"].some((name) => this.weights.has(`${path}.feed_forward.${name}.weight`))) {
      layers.push(["feed_forward", "mlp", memory ? "resid_mid_cross" : "resid_mid", (x, ...names) => this.feed(...names, x, at)]);
    }
    layers.forEach(([layer, part, before, compute], i) => {
      hidden = at(`${label}.hook_${before}`, hidden);
      const change = (x) => at(`${label}.hook_${part}_out`, compute(x, `${path}.${layer}`, `${label}.${part}`));
      hidden = this.add(`${path}.${layer}`, `${label}.ln${i + 1}`, hidden, change, pass);
    });
    return at(`${label}.hook_resid_post`, hidden);
  }

  // The vectors after a layer with its norm, its causal convolution and its residual connection.
  add(path, label, hidden, layer, { at, cache }) {
    const isPost = this.options.norm === "post", hasNorm = `${path}_norm` in this.norms;
    const norm = (x) => (hasNorm ? at(`${label}.hook_normalized`, this.norm(`${path}_norm`, x)) : x);
    const change = layer(this.mix(`${path}_convolution`, isPost ? hidden : norm(hidden), cache));
    const total = this.options.residual ? sum(hidden, change) : change;
    return isPost ? norm(total) : total;
  }

  // A causal convolution of each coordinate. With a cache, the last inputs are kept for the next call.
  mix(path, x, cache) {
    const weight = this.weights.get(`${path}.weight`);
    if (!weight) return x;
    const [width, dim] = weight.shape, before = (width - 1) * dim, seen = new Float32Array(before + x.data.length);
    seen.set(cache?.recent[path] ?? []);
    seen.set(x.data, before);
    if (cache) cache.recent[path] = seen.slice(-before);
    return mapped(x, (_, i) => {
      let total = 0;
      for (let k = 0; k < width; k++) total += seen[i + k * dim] * weight.data[k * dim + (i % dim)];
      return total;
    });
  }

  // Attention of the tokens x to the tokens `memory`. Queries, keys, values and heads z are (n, heads, head_dim), scores
  // and pattern (heads, n, keys). With rotary positions, rot_q and rot_k are the rotated queries and keys.
  attend(path, label, x, memory, { at, start, causal, cache }) {
    const { num_heads: heads, num_key_value_heads: shared, head_dim: width, scale, context_length: length } = this.options;
    const split = (t, count) => tensor([t.data.length / (count * width), count, width], t.data);
    const isCross = x !== memory, [n] = x.shape;
    let query = at(`${label}.hook_q`, split(this.linear(`${path}.query`, x), heads));
    let known = isCross && cache?.memory; // the keys and values of the source, which do not change
    if (!known) {
      const key = at(`${label}.hook_k`, split(this.linear(`${path}.key`, memory), shared));
      known = [key, at(`${label}.hook_v`, split(this.linear(`${path}.value`, memory), shared))];
      if (isCross && cache) cache.memory = known;
    }
    if (!isCross && this.weights.has("rotary.cos")) {
      query = at(`${label}.hook_rot_q`, this.rotate(query, start));
      known[0] = at(`${label}.hook_rot_k`, this.rotate(known[0], start));
    }
    const [key, value] = cache && !isCross ? cache.append(known, start) : known, keys = key.shape[0];
    const relative = isCross ? null : this.weights.get(`${path}.relative.table.weight`)?.data;
    let scores = tensor([heads, n, keys]);
    for (let head = 0, place = 0; head < heads; head++) {
      const of = Math.floor((head * shared) / heads);
      for (let i = 0; i < n; i++) {
        const q = (i * heads + head) * width;
        for (let j = 0; j < keys; j++, place++) {
          let score = dot(query.data, q, key.data, (j * shared + of) * width, width);
          if (relative) score += dot(query.data, q, relative, (length - 1 + j - start - i) * width, width);
          scores.data[place] = causal && j > start + i ? -Infinity : score * scale;
        }
      }
    }
    scores = at(`${label}.hook_attn_scores`, scores);
    const pattern = at(`${label}.hook_pattern`, softmax(scores)), mixed = tensor([n, heads, width]);
    for (let head = 0, place = 0; head < heads; head++) {
      const of = Math.floor((head * shared) / heads);
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < keys; j++) {
          const share = pattern.data[place++], z = (i * heads + head) * width, v = (j * shared + of) * width;
          if (share) for (let d = 0; d < width; d++) mixed.data[z + d] += share * value.data[v + d];
        }
      }
    }
    return this.linear(`${path}.output`, tensor([n, heads * width], at(`${label}.hook_z`, mixed).data));
  }

  // Queries or keys, (n, heads, head_dim), turned by the angles of their positions. Coordinates i and i + half are a pair.
  rotate({ data, shape }, start) {
    const [n, heads, width] = shape, half = width / 2, out = tensor(shape);
    const cos = this.weights.get("rotary.cos").data, sin = this.weights.get("rotary.sin").data;
    for (let i = 0; i < n * heads; i++) {
      const angle = (start + Math.floor(i / heads)) * half;
      for (let d = 0; d < half; d++) {
        const a = data[i * width + d], b = data[i * width + d + half], c = cos[angle + d], s = sin[angle + d];
        out.data[i * width + d] = a * c - b * s;
        out.data[i * width + d + half] = b * c + a * s;
      }
    }
    return out;
  }

  feed(path, label, x, at) {
    const activation = ACTIVATIONS[this.options.activation];
    if (this.weights.has(`${path}.linear.weight`)) {
      return mapped(at(`${label}.hook_pre`, this.linear(`${path}.linear`, x)), activation);
    }
    const isGated = this.weights.has(`${path}.gate.weight`);
    const before = at(`${label}.hook_pre`, this.linear(`${path}.${isGated ? "gate" : "expand"}`, x));
    let inner = mapped(before, isGated ? ACTIVATIONS.silu : activation);
    if (isGated) {
      const factor = at(`${label}.hook_pre_linear`, this.linear(`${path}.expand`, x));
      inner = mapped(inner, (value, i) => value * factor.data[i]);
    }
    return this.linear(`${path}.contract`, at(`${label}.hook_post`, inner));
  }

  // The vectors after the last norm, divided by the width multiplier of µP.
  last(path, hidden, at) {
    const name = { encoder_norm: "encoder_final_ln", decoder_norm: "decoder_final_ln" }[path] ?? "ln_final";
    hidden = this.norms[path] ? at(`${name}.hook_normalized`, this.norm(path, hidden)) : hidden;
    const divisor = path === "encoder_norm" ? 1 : this.options.width_multiplier;
    return divisor === 1 ? hidden : mapped(hidden, (value) => value / divisor);
  }

  // What the output layer of a classifier reads: one vector, or the numbers of all tokens.
  pool(hidden) {
    const { pooling } = this.options, [n, dim] = hidden.shape;
    if (pooling === "flatten") return hidden;
    if (pooling === "per_token") return this.linear("head.score", hidden);
    if (pooling === "first") return rowsOf(hidden, 0, Math.min(n, 1));
    if (pooling === "bert") return mapped(this.linear("head.pool.layer", rowsOf(hidden, 0, Math.min(n, 1))), Math.tanh);
    if (pooling === "last") return rowsOf(hidden, Math.max(n - 1, 0), n);
    const shares = pooling === "attention" ? softmax(tensor([n], this.linear("head.pool.score", hidden).data)).data : null;
    const out = tensor([dim]).data.fill(pooling === "max" && n ? -Infinity : 0);
    hidden.data.forEach((value, i) => {
      if (pooling === "max") out[i % dim] = Math.max(out[i % dim], value);
      else out[i % dim] += value * (shares ? shares[Math.floor(i / dim)] : 1 / n);
    });
    return tensor([dim], out);
  }
}
