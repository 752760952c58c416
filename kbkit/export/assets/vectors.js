// Vectors of chunks or summaries, read by cluster; counterpart of IndexVectors in
// kbkit/export/published_index.py.

import { nibbles, octets, scaled, varints } from "./packing.js";
import { byScore, dot } from "./ranking.js";

const FIRST = 50; // best rows by words that select further clusters
const UNIT = 65_536; // scales are integers in units of 1 / UNIT

/** @typedef {{rows: number[], vectors: Float64Array[]}} Cluster */

/**
 * Number of clusters that a query reads: the nearest, and those with the best rows by words.
 *
 * @typedef {{near: number, further: number}} Clusters
 */

/**
 * Result of a search over clusters.
 *
 * @typedef {object} Near
 * @property {number[]} rows  rows with loaded vectors, ascending
 * @property {(row: number) => number} cosine  that of the centroid for other rows
 * @property {(row: number) => Float64Array | null} vector  a unit vector
 */

export class Vectors {
  #clusters;
  #centroids;
  #scales;
  #shard;

  /**
   * @param {any} about  their description in the core of the index, if any
   * @param {(number: number) => Promise<any>} shard  returns the content of a shard of vectors
   */
  constructor(about, shard) {
    /** @type {number} */
    this.dimensions = about?.dimensions ?? 0;
    /** Whether the browsers' model embeds queries for them. */
    this.modelled = Boolean(about?.model);
    this.#shard = shard;
    this.#scales = /** @type {number[]} */ (about?.scales ?? []);
    this.#clusters = varints(about?.clusters ?? "").map((number) => number - 1); // -1 for none
    const centroids = nibbles(about?.centroids ?? "");
    /** @type {Float64Array[]} */
    this.#centroids = (about?.steps ?? []).map(
      (/** @type {number} */ scale, /** @type {number} */ i) =>
        scaled(centroids.subarray(i * this.dimensions, (i + 1) * this.dimensions), scale / UNIT),
    );
  }

  /**
   * Whether a row has a vector.
   *
   * @param {number} row
   */
  has(row) {
    return this.#clusters[row] >= 0;
  }

  /**
   * Project a vector of the model to the index.
   *
   * @param {Float64Array} vector
   * @param {{v: string, s: number[]}} axes
   */
  projected(vector, { v, s }) {
    const values = octets(v);
    return Float64Array.from(s, (scale, axis) => {
      const start = axis * vector.length;
      return scale * vector.reduce((sum, value, i) => sum + value * values[start + i], 0);
    });
  }

  /**
   * Search the vectors.
   *
   * @param {(Float64Array | null)[]} parts  vectors whose sum is the query's
   * @param {number[]} best  best rows by words, best first
   * @param {((row: number) => boolean) | null} allowed  test for allowed rows
   * @param {Clusters} read
   * @returns {Promise<Near>}
   */
  async near(parts, best, allowed, read) {
    const query = new Float64Array(this.dimensions);
    for (const part of parts) part?.forEach((value, i) => (query[i] += value));
    const length = Math.sqrt(dot(query, query));
    if (!length) return { rows: [], cosine: () => 0, vector: () => null };
    query.forEach((value, i) => (query[i] = value / length));
    const near = this.#centroids.map((/** @type {Float64Array} */ centroid) =>
      dot(centroid, query),
    );
    /** @type {Map<number, Float64Array>} */
    const vectors = new Map();
    const numbers = this.#toRead(near, best, allowed, read);
    for (const cluster of await Promise.all(numbers.map((number) => this.#cluster(number)))) {
      cluster.rows.forEach((row, i) => vectors.set(row, cluster.vectors[i]));
    }
    const rows = [...vectors.keys()].sort((a, b) => a - b);
    /** @type {Map<number, number>} */
    const cosines = new Map();
    for (const [row, vector] of vectors) cosines.set(row, dot(vector, query));
    return {
      rows: allowed ? rows.filter(allowed) : rows,
      cosine: (row) => cosines.get(row) ?? near[this.#clusters[row]] ?? 0,
      vector: (row) => unit(vectors.get(row)),
    };
  }

  /**
   * @param {number[]} near  nearness of each cluster
   * @param {number[]} best
   * @param {((row: number) => boolean) | null} allowed
   * @param {Clusters} read
   */
  #toRead(near, best, allowed, read) {
    const weights = near.map(() => 0);
    best.slice(0, FIRST).forEach((row, place) => {
      if (this.has(row)) weights[this.#clusters[row]] += 1 / (10 + place);
    });
    let nearest = byScore(near.map((score) => Math.round(score * 1e9)));
    if (allowed) {
      const there = new Set(this.#clusters.filter((_, row) => allowed(row)));
      nearest = nearest.filter((number) => there.has(number));
    }
    const wanted = nearest.slice(0, read.near);
    for (const number of byScore(weights)) {
      if (wanted.length >= read.near + read.further || !weights[number]) break;
      if (!wanted.includes(number)) wanted.push(number);
    }
    return wanted;
  }

  /**
   * @param {number} number
   * @returns {Promise<Cluster>}
   */
  async #cluster(number) {
    const shard = await this.#shard(number);
    if (!shard.cluster) {
      const values = nibbles(shard.v);
      let row = 0;
      const rows = Array.from(varints(shard.r), (step) => (row += step));
      const width = this.dimensions;
      const vectors = rows.map((_, i) =>
        Float64Array.from(
          values.subarray(i * width, (i + 1) * width),
          (x, j) => x * this.#scales[j],
        ),
      );
      shard.cluster = { rows, vectors };
    }
    return shard.cluster;
  }
}

/** @param {Float64Array | undefined} vector */
function unit(vector) {
  if (!vector) return null;
  const length = Math.sqrt(dot(vector, vector)) || 1;
  return vector.map((value) => value / length);
}

/**
 * The row of a term in a query encoder, or null.
 *
 * @param {any} shard
 * @param {string} kind  of the encoder
 * @param {number} place  of the term
 * @param {number} width
 */
export function rowOf(shard, kind, place, width) {
  /** @type {number[] | undefined} */
  const scales = shard[`${kind}s`];
  if (!scales?.[place]) return null;
  const steps = (shard[`${kind}steps`] ??= nibbles(shard[`${kind}v`]));
  const at = width * scales.slice(0, place).filter(Boolean).length;
  return scaled(steps.subarray(at, at + width), scales[place] / UNIT);
}
