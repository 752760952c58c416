// MiniLM: a transformer that turns a query into a vector, as onnxruntime in Python.
// kbkit/export/mkdocs/page_head.py writes its files.

import { Products } from "./products.js";
import { Tokenizer } from "./tokenizer.js";

const WIDTH = 384;
const HIDDEN = 1536;
const LAYERS = 6;
const HEADS = 12;
const HEAD = WIDTH / HEADS;
const MAX_TOKENS = 256; // tokens read of a text
const WORDS = 64; // rows of token vectors in a file
const TOKENS = 30_522;
const LEVELS = 10_000; // steps of a row: 1,536 products of them with 8 bits fit into 32 bits
const TINY = 1e-12;

/** Outputs and inputs of a layer's matrices. */
const SHAPES = [
  [3 * WIDTH, WIDTH],
  [WIDTH, WIDTH],
  [HIDDEN, WIDTH],
  [WIDTH, HIDDEN],
];
const MATRICES = SHAPES.reduce((sum, [outputs, inputs]) => sum + outputs * inputs, 0);
const NUMBERS = SHAPES.reduce((sum, [outputs]) => sum + 2 * outputs, 4 * WIDTH);

/** @typedef {(name: string) => Promise<ArrayBuffer>} Read  returns the content of a model file */
/** @typedef {{weights: Float32Array, biases: Float32Array}} Norm */
/**
 * @typedef {object} Matrix
 * @property {Float32Array} scales
 * @property {Float32Array} biases
 * @property {number} place
 * @property {number} inputs
 * @property {number} outputs
 */
/** @typedef {{matrices: Matrix[], norms: Norm[]}} Layer */
/** @typedef {{scales: Float32Array, steps: Int8Array}} Rows  8-bit rows, each with a scale */

export class Transformer {
  #read;
  #tokenizer;
  #products;
  #places;
  #norm;
  #layers;
  #rows;
  #sums;
  /** @type {Map<number, Promise<Rows>>} */
  #words = new Map();

  /**
   * @param {Products} products
   * @param {Read} read
   * @param {string[]} vocabulary
   * @param {ArrayBuffer} embeddings
   * @param {ArrayBuffer[]} layers
   */
  constructor(products, read, vocabulary, embeddings, layers) {
    this.#read = read;
    this.#tokenizer = new Tokenizer(vocabulary);
    this.#products = products;
    this.#rows = this.#products.room(MAX_TOKENS * HIDDEN * 2);
    this.#sums = this.#products.room(MAX_TOKENS * HIDDEN * 4);
    whole(embeddings, 4 * (MAX_TOKENS + 2) * WIDTH);
    this.#norm = {
      weights: new Float32Array(embeddings, 0, WIDTH),
      biases: new Float32Array(embeddings, 4 * WIDTH, WIDTH),
    };
    this.#places = new Float32Array(embeddings, 8 * WIDTH);
    this.#layers = layers.map((data) => layer(data, this.#products));
  }

  /**
   * Load the model with the data for every query: 11 MB.
   *
   * @param {Read} read
   * @param {Read} [readWords]  reads further token vectors of a query
   */
  static async opened(read, readWords = read) {
    // first, so that a browser without the instructions loads nothing
    const products = new Products(LAYERS * MATRICES + MAX_TOKENS * HIDDEN * (2 + 4));
    const numbers = Array.from({ length: LAYERS }, (_, number) => number);
    const [vocabulary, embeddings, ...layers] = await Promise.all([
      read("vocabulary.txt"),
      read("embeddings.bin"),
      ...numbers.map((number) => read(`layer-${number}.bin`)),
    ]);
    const tokens = new TextDecoder().decode(vocabulary).split("\n");
    if (tokens.length !== TOKENS) throw new Error("vocabulary.txt is not whole");
    return new Transformer(products, readWords, tokens, embeddings, layers);
  }

  /**
   * The unit vector of a text.
   *
   * @param {string} text
   */
  async vector(text) {
    const tokens = this.#tokenizer.numbers(text, MAX_TOKENS);
    const parts = new Set(tokens.map((token) => Math.floor(token / WORDS)));
    /** @type {Map<number, Rows>} */
    const words = new Map();
    await Promise.all(Array.from(parts, async (part) => words.set(part, await this.#rowsOf(part))));
    let states = this.#places.slice(0, tokens.length * WIDTH);
    tokens.forEach((token, place) => {
      const { scales, steps } = /** @type {Rows} */ (words.get(Math.floor(token / WORDS)));
      const row = token % WORDS;
      for (let i = 0; i < WIDTH; i++) {
        states[place * WIDTH + i] += steps[row * WIDTH + i] * scales[row];
      }
    });
    normalise(states, this.#norm);
    for (const each of this.#layers) states = this.#through(each, states);
    const mean = new Float64Array(WIDTH);
    states.forEach((value, i) => (mean[i % WIDTH] += value));
    const length = Math.hypot(...mean);
    return mean.map((value) => value / length);
  }

  /** @param {number} part */
  #rowsOf(part) {
    let rows = this.#words.get(part);
    if (!rows) {
      const number = Math.min(WORDS, TOKENS - part * WORDS);
      rows = this.#read(`words-${part}.bin`).then((data) => {
        whole(data, (4 + WIDTH) * number);
        const steps = new Int8Array(data, 4 * number);
        return { scales: new Float32Array(data, 0, number), steps };
      });
      this.#words.set(part, rows);
      rows.catch(() => this.#words.delete(part)); // the next query tries again
    }
    return rows;
  }

  /** @param {Layer} layer @param {Float32Array} states */
  #through({ matrices: [inputs, output, up, down], norms }, states) {
    const attention = this.#product(output, attended(this.#product(inputs, states)));
    attention.forEach((value, i) => (attention[i] = value + states[i]));
    normalise(attention, norms[0]);
    const hidden = this.#product(up, attention);
    hidden.forEach((value, i) => (hidden[i] = gelu(value)));
    const result = this.#product(down, hidden);
    result.forEach((value, i) => (result[i] = value + attention[i]));
    normalise(result, norms[1]);
    return result;
  }

  /**
   * Rows times a matrix; each row is rounded with a separate scale.
   *
   * @param {Matrix} matrix
   * @param {Float32Array} states
   */
  #product({ scales, biases, place, inputs, outputs }, states) {
    const number = states.length / inputs;
    const rows = this.#products.rows(this.#rows, states.length);
    const steps = new Float64Array(number);
    for (let row = 0; row < number; row++) {
      let highest = TINY;
      for (let i = row * inputs; i < (row + 1) * inputs; i++) {
        highest = Math.max(highest, Math.abs(states[i]));
      }
      const step = (steps[row] = highest / LEVELS);
      for (let i = row * inputs; i < (row + 1) * inputs; i++) {
        rows[i] = Math.round(states[i] / step);
      }
    }
    this.#products.multiply(this.#rows, number, place, inputs, outputs, this.#sums);
    const sums = this.#products.sums(this.#sums, number * outputs);
    const result = new Float32Array(number * outputs);
    for (let i = 0, row = 0; row < number; row++) {
      for (let output = 0; output < outputs; output++, i++) {
        result[i] = sums[i] * steps[row] * scales[output] + biases[output];
      }
    }
    return result;
  }
}

/** @param {ArrayBuffer} data @param {number} bytes */
function whole(data, bytes) {
  if (data.byteLength !== bytes) throw new Error("a file of the model is not whole");
}

/**
 * Read a layer; its matrices are copied into the memory of `products`.
 *
 * @param {ArrayBuffer} data
 * @param {Products} products
 * @returns {Layer}
 */
function layer(data, products) {
  whole(data, 4 * NUMBERS + MATRICES);
  let number = 0;
  /** @param {number} count */
  const numbers = (count) => new Float32Array(data, 4 * (number += count) - 4 * count, count);
  let step = 4 * NUMBERS;
  const matrices = SHAPES.map(([outputs, inputs]) => {
    const place = products.keep(new Uint8Array(data, step, outputs * inputs));
    step += outputs * inputs;
    return { scales: numbers(outputs), biases: numbers(outputs), place, inputs, outputs };
  });
  const norms = [0, 1].map(() => ({ weights: numbers(WIDTH), biases: numbers(WIDTH) }));
  return { matrices, norms };
}

/**
 * Attention: each row becomes a mean of all values, weighted by queries and keys, for each head.
 *
 * @param {Float32Array} states  queries, keys and values of each row
 */
function attended(states) {
  const number = states.length / (3 * WIDTH);
  const result = new Float32Array(number * WIDTH);
  const weights = new Float64Array(number);
  const [queries, keys, values] = [0, 1, 2].map(() => new Float64Array(number * HEAD));
  for (let head = 0; head < WIDTH; head += HEAD) {
    [queries, keys, values].forEach((part, which) => {
      for (let row = 0; row < number; row++) {
        const start = (3 * row + which) * WIDTH + head;
        part.set(states.subarray(start, start + HEAD), row * HEAD);
      }
    });
    for (let row = 0; row < number; row++) {
      const query = queries.subarray(row * HEAD, (row + 1) * HEAD);
      attend(query, keys, weights);
      const mean = new Float64Array(HEAD);
      for (let other = 0, at = 0; other < number; other++) {
        const weight = weights[other];
        for (let i = 0; i < HEAD; i++, at++) mean[i] += weight * values[at];
      }
      result.set(mean, row * WIDTH + head);
    }
  }
  return result;
}

/**
 * The softmax weights of the values for a query.
 *
 * @param {Float64Array} query
 * @param {Float64Array} keys
 * @param {Float64Array} weights  receives the result
 */
function attend(query, keys, weights) {
  let highest = -Infinity;
  for (let other = 0, at = 0; other < weights.length; other++) {
    let sum = 0;
    for (let i = 0; i < HEAD; i++, at++) sum += query[i] * keys[at];
    weights[other] = sum / Math.sqrt(HEAD);
    highest = Math.max(highest, weights[other]);
  }
  let total = 0;
  for (let other = 0; other < weights.length; other++) {
    total += weights[other] = Math.exp(weights[other] - highest);
  }
  for (let other = 0; other < weights.length; other++) weights[other] /= total;
}

/** Layer normalisation of each row, in its place. @param {Float32Array} states @param {Norm} norm */
function normalise(states, { weights, biases }) {
  for (let start = 0; start < states.length; start += WIDTH) {
    const row = states.subarray(start, start + WIDTH);
    const mean = row.reduce((sum, value) => sum + value, 0) / WIDTH;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / WIDTH;
    const scale = 1 / Math.sqrt(variance + TINY);
    row.forEach((value, i) => (row[i] = (value - mean) * scale * weights[i] + biases[i]));
  }
}

/** Hendrycks and Gimpel (2016), with erf by Abramowitz and Stegun 7.1.26. @param {number} value */
function gelu(value) {
  const x = Math.abs(value) * Math.SQRT1_2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const tail = 0.5 * series * Math.exp(-x * x);
  return value * (value > 0 ? 1 - tail : tail);
}
