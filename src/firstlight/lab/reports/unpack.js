// Unpacks the libraries of the page: LZMA in base 85, as packed.py writes it. Browsers have no LZMA of their own.
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

function unpack(text, sizes) {
  // Returns the texts whose sizes in bytes are given.
  const bytes = lzma(base85(text), sizes.reduce((sum, size) => sum + size, 0));
  let start = 0;
  return sizes.map((size) => new TextDecoder().decode(bytes.subarray(start, (start += size))));
}

function base85(text) {
  // Returns four bytes for each five digits.
  const value = new Uint8Array(128);
  for (let index = 0; index < 85; index++) value[DIGITS.charCodeAt(index)] = index;
  const bytes = new DataView(new ArrayBuffer((text.length / 5) * 4));
  for (let from = 0, to = 0; from < text.length; from += 5, to += 4) {
    let sum = 0;
    for (let index = 0; index < 5; index++) sum = sum * 85 + value[text.charCodeAt(from + index)];
    bytes.setUint32(to, sum);
  }
  return new Uint8Array(bytes.buffer);
}

function lzma(input, size) {
  // Decodes a .lzma file into `size` bytes. The names are those of the specification in the LZMA SDK (Pavlov 2015).
  const lc = input[0] % 9;
  const lp = Math.floor(input[0] / 9) % 5;
  const pb = Math.floor(input[0] / 45);
  const out = new Uint8Array(size);
  const IS_MATCH = 0, IS_REP = 192, IS_REP_G0 = 204, IS_REP_G1 = 216, IS_REP_G2 = 228, IS_REP0_LONG = 240;
  const POS_SLOT = 432, POS_SPECIAL = 688, ALIGN = 803, LENGTH = 819, REP_LENGTH = 1333, LITERAL = 1847;
  const probabilities = new Uint16Array(LITERAL + (0x300 << (lc + lp))).fill(1024);
  let next = 14; // after the header of 13 bytes, and a byte that is 0
  const coder = new Uint32Array([0xffffffff, 0]); // the range and the code; variables would be slow numbers
  for (let index = 0; index < 4; index++) coder[1] = (coder[1] << 8) | input[next++];

  const normalize = () => {
    if (coder[0] < 0x1000000) {
      coder[0] <<= 8;
      coder[1] = (coder[1] << 8) | input[next++];
    }
  };
  const bit = (place) => {
    const probability = probabilities[place];
    const bound = ((coder[0] >>> 11) * probability) >>> 0;
    const isOne = coder[1] >= bound;
    if (isOne) {
      coder[0] -= bound;
      coder[1] -= bound;
      probabilities[place] = probability - (probability >> 5);
    } else {
      coder[0] = bound;
      probabilities[place] = probability + ((2048 - probability) >> 5);
    }
    normalize();
    return isOne ? 1 : 0;
  };
  const tree = (base, bits) => {
    let symbol = 1;
    for (let index = 0; index < bits; index++) symbol = (symbol << 1) | bit(base + symbol);
    return symbol - (1 << bits);
  };
  const reversed = (base, bits) => {
    let symbol = 1;
    let value = 0;
    for (let index = 0; index < bits; index++) {
      const found = bit(base + symbol);
      symbol = (symbol << 1) | found;
      value |= found << index;
    }
    return value;
  };
  const direct = (bits) => {
    let value = 0;
    for (let index = 0; index < bits; index++) {
      coder[0] >>>= 1;
      const found = coder[1] >= coder[0] ? 1 : 0;
      if (found) coder[1] -= coder[0];
      normalize();
      value = value * 2 + found;
    }
    return value;
  };
  const length = (base, position) => {
    if (!bit(base)) return tree(base + 2 + (position << 3), 3);
    if (!bit(base + 1)) return 8 + tree(base + 130 + (position << 3), 3);
    return 16 + tree(base + 258, 8);
  };
  const distance = (matched) => {
    const slot = tree(POS_SLOT + (Math.min(matched, 3) << 6), 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const high = (2 | (slot & 1)) * 2 ** bits;
    if (slot < 14) return high + reversed(POS_SPECIAL + high - slot, bits);
    return high + direct(bits - 4) * 16 + reversed(ALIGN, 4);
  };

  let state = 0;
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0];
  let count = 0;
  while (count < size) {
    const position = count & ((1 << pb) - 1);
    if (!bit(IS_MATCH + (state << 4) + position)) {
      const before = count ? out[count - 1] : 0;
      const base = LITERAL + 0x300 * (((count & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let symbol = 1;
      if (state >= 7) {
        let matched = out[count - rep0 - 1];
        while (symbol < 0x100) {
          const expected = (matched >> 7) & 1;
          matched <<= 1;
          const found = bit(base + ((1 + expected) << 8) + symbol);
          symbol = (symbol << 1) | found;
          if (expected !== found) break;
        }
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(base + symbol);
      out[count++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let copied;
    if (bit(IS_REP + state)) {
      if (!bit(IS_REP_G0 + state)) {
        if (!bit(IS_REP0_LONG + (state << 4) + position)) {
          state = state < 7 ? 9 : 11;
          out[count] = out[count - rep0 - 1];
          count++;
          continue;
        }
      } else if (!bit(IS_REP_G1 + state)) {
        [rep0, rep1] = [rep1, rep0];
      } else if (!bit(IS_REP_G2 + state)) {
        [rep0, rep1, rep2] = [rep2, rep0, rep1];
      } else {
        [rep0, rep1, rep2, rep3] = [rep3, rep0, rep1, rep2];
      }
      copied = length(REP_LENGTH, position);
      state = state < 7 ? 8 : 11;
    } else {
      [rep1, rep2, rep3] = [rep0, rep1, rep2];
      copied = length(LENGTH, position);
      state = state < 7 ? 7 : 10;
      rep0 = distance(copied);
    }
    for (let last = Math.min(count + copied + 2, size); count < last; count++) out[count] = out[count - rep0 - 1];
  }
  return out;
}
