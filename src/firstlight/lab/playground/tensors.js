"use strict";
// Arithmetic on tensors. A tensor is {data: Float32Array, shape: number[]}, row-major and without a dimension for the
// batch.

// The number of values of a shape.
const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);
// A tensor of zeros, or of given values.
const tensor = (shape, data = new Float32Array(sizeOf(shape))) => ({ data, shape });
// The rows from start to before end of a matrix, without a copy.
const rowsOf = ({ data, shape: [, width] }, start, end) =>
  tensor([end - start, width], data.subarray(start * width, end * width));

// erf by Abramowitz and Stegun (1964), 7.1.26; its error is below 1.5e-7.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
  tanh: Math.tanh,
  relu_squared: (x) => Math.max(x, 0) ** 2,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  linear: (x) => x,
};
// A tensor with a function of each value and its place.
const mapped = ({ data, shape }, change) => tensor(shape, data.map(change));
// The sum of two tensors of the same shape.
const sum = (a, b) => mapped(a, (value, i) => value + b.data[i]);

// The product of `count` numbers of a from i on and of b from j on. Four sums run in parallel.
function dot(a, i, b, j, count) {
  let s = 0, t = 0, u = 0, v = 0, k = 0;
  for (; k + 3 < count; k += 4) {
    s += a[i + k] * b[j + k];
    t += a[i + k + 1] * b[j + k + 1];
    u += a[i + k + 2] * b[j + k + 2];
    v += a[i + k + 3] * b[j + k + 3];
  }
  for (; k < count; k++) s += a[i + k] * b[j + k];
  return s + t + u + v;
}

// The softmax over the last axis.
function softmax({ data, shape }) {
  const width = shape.at(-1), out = tensor(shape);
  for (let start = 0; start < data.length; start += width) {
    let largest = -Infinity, total = 0;
    for (let i = start; i < start + width; i++) largest = Math.max(largest, data[i]);
    for (let i = start; i < start + width; i++) total += out.data[i] = Math.exp(data[i] - largest);
    for (let i = start; i < start + width; i++) out.data[i] /= total;
  }
  return out;
}
