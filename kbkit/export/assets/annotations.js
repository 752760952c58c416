// Annotations of an index's chunks, read when a filter needs them.

import { varints } from "./packing.js";

const SUGGESTED = 50;

/** @typedef {"domain" | "entity" | "problem" | "resolution" | "context"} Kind */
/** @typedef {{name: string, kind: Kind, count: number}} Subject */

export class Annotations {
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
   * @param {string} name  one of its names, in any case
   * @param {Kind[]} [kinds]  allowed kinds; by default all
   * @returns {Promise<Set<number>>}
   */
  async speaking(name, kinds) {
    /** @type {Set<number>} */
    const rows = new Set();
    if (!this.#there) return rows;
    const about = await this.#shard("a");
    const wanted = name.toLowerCase();
    const number = about.firsts.findLastIndex((/** @type {string} */ each) => each <= wanted);
    if (number < 0) return rows;
    const { m, d, n, p } = await this.#shard(`s/${number}`);
    const postings = varints(p);
    let at = 0;
    m.forEach((/** @type {string} */ known, /** @type {number} */ i) => {
      const end = at + n[i];
      const kind = about.kinds[d[i]];
      if (known.toLowerCase() === wanted && (!kinds || kinds.includes(kind))) {
        for (let row = 0; at < end; at++) rows.add((row += postings[at]));
      }
      at = end;
    });
    return rows;
  }

  /**
   * Subjects to offer, the most frequent first.
   *
   * @param {string} like  a part of their names; for rarer ones, their start
   * @returns {Promise<Subject[]>}
   */
  async suggested(like) {
    if (!this.#there) return [];
    const about = await this.#shard("a");
    /** @param {[string, number, number]} entry */
    const subjectOf = ([name, kind, count]) => ({ name, kind: about.kinds[kind], count });
    const low = like.toLowerCase();
    const subjects = about.top.map(subjectOf);
    if (low && about.firsts.length) {
      const number = about.firsts.findLastIndex((/** @type {string} */ each) => each <= low);
      const { d, m, n } = await this.#shard(`s/${Math.max(0, number)}`);
      m.forEach((/** @type {string} */ name, /** @type {number} */ i) => {
        if (name.toLowerCase().startsWith(low)) subjects.push(subjectOf([name, d[i], n[i]]));
      });
    }
    return subjects
      .filter((/** @type {Subject} */ { name }) => name.toLowerCase().includes(low))
      .sort((/** @type {Subject} */ a, /** @type {Subject} */ b) => b.count - a.count)
      .slice(0, SUGGESTED);
  }
}
