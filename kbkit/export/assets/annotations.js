// Annotations of an index's chunks, read when a filter needs them; counterpart of IndexFilters in
// kbkit/export/index_vectors.py.

import { lastNotAbove, varints } from "./packing.js";
import { subjectKey } from "./subjects.js";

const SUGGESTED = 50;

/** @typedef {import("./subjects.js").Kind} Kind */
/** @typedef {{name: string, kind: Kind, count: number}} Subject */

class Annotations {
  #shard;
  #there;

  /**
   * @param {boolean} there  whether the index has annotations
   * @param {(name: string) => Promise<any>} shard  returns the content of a shard
   */
  constructor(there, shard) {
    this.#there = there;
    this.#shard = shard;
  }

  /**
   * Return a test of whether a chunk has a statement of one of the given types.
   *
   * @param {string[]} frames
   * @returns {Promise<(row: number) => boolean>}
   */
  async saying(frames) {
    if (!this.#there) return () => false;
    const about = await this.#shard("a");
    const masks = (about.masks ??= varints(about.f));
    let bits = 0;
    about.frames.forEach((/** @type {string} */ name, /** @type {number} */ place) => {
      if (frames.includes(name)) bits |= 1 << place;
    });
    return (row) => (masks[row] & bits) > 0;
  }

  /**
   * The chunks with a subject.
   *
   * @param {string} name  one of its names
   * @param {Kind[]} [kinds]  allowed kinds; by default all
   * @returns {Promise<Set<number>>}
   */
  async speaking(name, kinds) {
    /** @type {Set<number>} */
    const rows = new Set();
    if (!this.#there) return rows;
    const about = await this.#shard("a");
    const stop = (about.stopWords ??= new Set(about.stop.split(" ")));
    for (const kind of kinds ?? about.kinds) {
      const wanted = subjectKey(kind, name, stop);
      const number = lastNotAbove(about.firsts, wanted);
      if (number < 0) continue;
      const shard = await this.#shard(`s/${number}`);
      const place = shard.k.findIndex(
        (/** @type {string} */ key, /** @type {number} */ i) =>
          key === wanted && about.kinds[shard.d[i]] === kind,
      );
      if (place < 0) continue;
      const postings = (shard.postings ??= varints(shard.p));
      const counts = (/** @type {number} */ to) =>
        shard.n.slice(0, to).reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
      let row = 0;
      for (let i = counts(place); i < counts(place + 1); i++) rows.add((row += postings[i]));
    }
    return rows;
  }

  /**
   * Subjects to offer, the most frequent first.
   *
   * @param {string} like  a part of their names; for rarer ones, the start of their normal form
   * @returns {Promise<Subject[]>}
   */
  async suggested(like) {
    if (!this.#there) return [];
    const about = await this.#shard("a");
    /** @param {[string, number, number]} entry */
    const told = ([name, kind, count]) => ({ name, kind: about.kinds[kind], count });
    const low = like.toLowerCase();
    const found = about.top.map(told);
    const first = low ? Math.max(0, lastNotAbove(about.firsts, low)) : -1;
    if (first >= 0) {
      const { k, d, m, n } = await this.#shard(`s/${first}`);
      k.forEach((/** @type {string} */ key, /** @type {number} */ i) => {
        if (key.toLowerCase().startsWith(low)) found.push(told([m[i] || key, d[i], n[i]]));
      });
    }
    return found
      .filter((/** @type {Subject} */ { name }) => name.toLowerCase().includes(low))
      .sort((/** @type {Subject} */ a, /** @type {Subject} */ b) => b.count - a.count)
      .slice(0, SUGGESTED);
  }
}

export { Annotations };
