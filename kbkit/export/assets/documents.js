// Scores of whole documents, by their summaries and by all of their words; counterpart of
// kbkit/retrieval/document_scores.py.

import { byScore, exactImpact, idf, impact } from "./ranking.js";

const BEST = 30; // documents that add their best chunk, by summaries and by words

/** @typedef {import("./index.js").Term} Term */
/** @typedef {import("./ranking.js").Statistics} Statistics */

export class Documents {
  /**
   * @param {ArrayLike<number>} owners  the document of each chunk
   * @param {ArrayLike<number>} lengths  number of terms of each chunk
   * @param {number} number  of documents
   */
  constructor(owners, lengths, number) {
    this.owners = owners;
    this.lengths = new Float64Array(number);
    for (let row = 0; row < owners.length; row++) this.lengths[owners[row]] += lengths[row];
    this.held = this.lengths.reduce((count, length) => count + (length ? 1 : 0), 0);
    const sum = this.lengths.reduce((total, length) => total + length, 0);
    this.average = this.held ? sum / this.held : 0;
  }

  /**
   * BM25 of all documents for some terms.
   *
   * @param {Map<string, Term>} terms
   */
  scores(terms) {
    /** @type {Map<string, Map<number, number>>} */
    const counts = new Map();
    for (const [name, term] of terms) {
      /** @type {Map<number, number>} */
      const found = new Map();
      term.rows.forEach((row, i) => {
        const owner = this.owners[row];
        found.set(owner, (found.get(owner) ?? 0) + term.counts[i]);
      });
      counts.set(name, found);
    }
    const frequencies = new Map([...counts].map(([name, found]) => [name, found.size]));
    const statistics = { chunks: this.held, average: this.average, frequencies };
    const page = new Float32Array(this.lengths.length);
    for (const [name, found] of counts) {
      const add = impact(idf(statistics, name), this.average);
      for (const [owner, count] of found) page[owner] += add(count, this.lengths[owner]);
    }
    return { counts, statistics, page };
  }

  /**
   * BM25 of one document, as for candidates.
   *
   * @param {number} owner
   * @param {Map<string, Map<number, number>>} counts
   * @param {Statistics} statistics
   */
  bm25(owner, counts, statistics) {
    let sum = 0;
    for (const name of [...counts.keys()].sort((a, b) => (a < b ? -1 : 1))) {
      const count = counts.get(name)?.get(owner) ?? 0;
      sum += exactImpact(statistics, name, count, this.lengths[owner]);
    }
    return sum;
  }

  /**
   * The best chunk of each of the best documents.
   *
   * @param {ArrayLike<number>[]} lists  scores of all documents
   * @param {ArrayLike<number>} lexical  BM25 of all chunks
   * @param {(row: number) => number} cosine  of a chunk
   * @param {((row: number) => boolean) | null} allowed
   */
  best(lists, lexical, cosine, allowed) {
    const open = new Uint8Array(this.lengths.length);
    for (let row = 0; row < this.owners.length; row++) {
      if (!allowed || allowed(row)) open[this.owners[row]] = 1;
    }
    /** @type {Set<number>} */
    const chosen = new Set();
    for (const scores of lists) {
      const there = byScore(scores).filter((owner) => open[owner] && scores[owner] > 0);
      for (const owner of there.slice(0, BEST)) chosen.add(owner);
    }
    const rows = [];
    for (let row = 0; row < this.owners.length; row++) {
      if (chosen.has(this.owners[row]) && (!allowed || allowed(row))) rows.push(row);
    }
    const near = rows.map((row) => Math.max(cosine(row), 0));
    const nearest = Math.max(
      near.reduce((highest, score) => Math.max(highest, score), 0),
      1e-9,
    );
    let highest = 1e-9;
    for (let row = 0; row < lexical.length; row++) highest = Math.max(highest, lexical[row]);
    /** @type {Map<number, [number, number]>} */
    const best = new Map();
    rows.forEach((row, i) => {
      const own = lexical[row] / highest + near[i] / nearest;
      const before = best.get(this.owners[row]);
      if (!before || own > before[1]) best.set(this.owners[row], [row, own]);
    });
    return [...best.values()].map(([row]) => row);
  }
}
