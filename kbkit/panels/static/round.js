// The state of a round of judging: position, judgements and open passages. A judgement counts at
// once; Python confirms when it is stored.

import { GRADES } from "./stars.js";

/**
 * @typedef {object} Candidate
 * @property {string} id
 * @property {string} title
 * @property {string} path  headings above the passage
 * @property {string} place  where its document comes from
 * @property {string} link  an address of the web, or ""
 * @property {string} html  sanitised
 * @property {number | null} score
 * @typedef {{place: number, id: string, score: number | null, since: number}} Pending
 * @typedef {[number, number | null]} Count  judged and pooled; null if not counted yet
 * @typedef {{by: string, place: number, id: string, score: number | null}} Stored  a stored judgement
 * @typedef {{place?: number, version?: number, passages?: Candidate[]}} Pool  empty before the first
 * @typedef {object} State  the round as sent by Python
 * @property {Count[]} counts
 * @property {number} version  changes when judgements change elsewhere
 * @property {Stored | null} [stored]
 * @property {number | null} start  the first query to judge
 */

const LOADING = "The passages of this query are still loading. Try again when one is shown.";
const DEAD = "Not saved: the kernel was restarted. Run the cell again to continue from here.";
/** Milliseconds after which a judgement that is not stored yet is reported. */
const SLOW = 2000;

export class JudgingRound {
  /**
   * @param {string[]} queries
   * @param {(event: string, values: object) => boolean} send  returns whether it was sent
   */
  constructor(queries, send) {
    this.queries = queries;
    this.send = send;
    /** @type {number | null} the place of the query; -1 at the end, null before it is known */
    this.place = null;
    /** @type {Map<number, Candidate[]>} */
    this.pools = new Map();
    /** @type {Map<string, Pending>} */
    this.pending = new Map();
    /** @type {Map<number, Set<string>>} */
    this.skipped = new Map();
    /** @type {[number, string][]} */
    this.judged = [];
    /** @type {Set<number>} */
    this.requested = new Set();
    /** @type {Set<number>} */
    this.outdated = new Set();
    /** @type {Count[]} */
    this.counts = [];
    /** @type {number | null} */
    this.version = null;
    this.number = 0;
    this.shown = ""; // id of the passage
    this.name = Math.random().toString(36).slice(2);
  }

  // Messages from Python

  /** @param {State} state */
  update(state) {
    this.counts = state.counts;
    if (state.version !== this.version) {
      this.version = state.version;
      this.requested.clear();
      this.outdated = new Set(this.pools.keys()); // shown until new ones arrive
    }
    if (state.stored) {
      this.confirm(state.stored);
    }
    if (this.place === null && state.start !== null) {
      this.place = state.start;
    }
    this.requestPools();
  }

  /** @param {Stored} stored */
  confirm({ by, place, id, score }) {
    this.pending.delete(by);
    const newer = [...this.pending.values()].some(
      (judgement) => judgement.place === place && judgement.id === id,
    );
    const candidate = this.pools.get(place)?.find((passage) => passage.id === id);
    if (candidate && !newer) {
      candidate.score = score;
    }
  }

  /**
   * Take a requested pool.
   *
   * @param {Pool} pool
   */
  addPool({ place, version, passages }) {
    if (place === undefined || passages === undefined || version !== this.version) {
      return;
    }
    this.pools.set(place, passages);
    this.outdated.delete(place);
    for (const judgement of this.pending.values()) {
      const candidate =
        judgement.place === place && passages.find((passage) => passage.id === judgement.id);
      if (candidate) {
        candidate.score = judgement.score;
      }
    }
    if (place === this.place && this.at < 0) {
      this.show(Math.max(0, this.firstOpen()));
    }
  }

  /** Request the current and the next pool. */
  requestPools() {
    if (this.place === null || this.place < 0) {
      return;
    }
    const upcoming = [this.place, this.nextPlace(), (this.place + 1) % this.queries.length];
    const places = [...new Set(upcoming)].filter(
      (one) =>
        one >= 0 && (!this.pools.has(one) || this.outdated.has(one)) && !this.requested.has(one),
    );
    if (places.length) {
      places.forEach((place) => this.requested.add(place));
      this.send("request", { places });
    }
  }

  // Judgements

  /** The place of the query; -1 if none is shown. */
  get here() {
    return this.place ?? -1;
  }

  get pool() {
    return this.pools.get(this.here) ?? null;
  }

  /** The place of the passage in the pool; -1 if none is shown. */
  get at() {
    return (this.pool ?? []).findIndex((passage) => passage.id === this.shown);
  }

  get candidate() {
    return this.pool?.[this.at] ?? null;
  }

  get skips() {
    return [...this.skipped.values()].reduce((sum, ids) => sum + ids.size, 0);
  }

  /** @param {Candidate} candidate */
  isSkipped(candidate) {
    return this.skipped.get(this.here)?.has(candidate.id) ?? false;
  }

  /**
   * Judged and pooled of a query.
   *
   * @param {number} place
   * @returns {Count}
   */
  count(place) {
    const pool = this.pools.get(place);
    return pool
      ? [pool.filter((passage) => passage.score !== null).length, pool.length]
      : this.counts[place];
  }

  /** Judgements that Python has not stored for some time. */
  get late() {
    return [...this.pending.values()].filter((judgement) => Date.now() - judgement.since > SLOW)
      .length;
  }

  /**
   * Judge; like the following methods, returns a status message.
   *
   * @param {number} score
   */
  judge(score) {
    if (!this.candidate) {
      return this.pool ? "" : LOADING;
    }
    if (!this.store(this.candidate, score)) {
      return DEAD;
    }
    this.skipped.get(this.here)?.delete(this.candidate.id);
    this.judged.push([this.here, this.candidate.id]);
    this.goOn();
    return `${score}, ${GRADES[score - 1]}. ${this.position()}`;
  }

  skip() {
    if (!this.candidate) {
      return this.pool ? "" : LOADING;
    }
    const ids = this.skipped.get(this.here) ?? new Set();
    this.skipped.set(this.here, ids.add(this.candidate.id));
    this.goOn();
    return `Skipped. ${this.position()}`;
  }

  /** Undo the judgement of the shown passage, or else the last one. */
  undo() {
    if (!this.candidate?.score) {
      const [place, id] = this.judged.at(-1) ?? [-1, ""];
      const at = (this.pools.get(place) ?? []).findIndex((passage) => passage.id === id);
      if (at < 0) {
        return "There is nothing to undo.";
      }
      this.place = place;
      this.show(at);
    }
    const undone = this.candidate;
    if (undone && undone.score !== null && !this.store(undone, null)) {
      return DEAD;
    }
    this.judged = this.judged.filter(([, other]) => other !== undone?.id);
    return `Undone. ${this.position()}`;
  }

  /**
   * @param {Candidate} candidate
   * @param {number | null} score
   * @returns {boolean} whether it was sent
   */
  store(candidate, score) {
    this.number += 1;
    const by = `${this.name}-${this.number}`;
    const target = { place: this.here, id: candidate.id };
    if (!this.send("judge", { ...target, score: score ?? 0, by })) {
      return false;
    }
    this.pending.set(by, { ...target, score, since: Date.now() });
    candidate.score = score;
    return true;
  }

  // Position of the reader

  /** The first passage from a place, wrapping around, that is neither judged nor skipped. */
  firstOpen(from = 0) {
    /** @type {Candidate[]} */
    const pool = this.pool ?? [];
    const places = pool.map((_, i) => (from + i) % pool.length);
    return places.find((i) => pool[i].score === null && !this.isSkipped(pool[i])) ?? -1;
  }

  /** The next query with passages that are neither judged nor skipped; -1 for none. */
  nextPlace() {
    const total = this.queries.length;
    for (let i = 1; i < total; i += 1) {
      const place = (this.here + i) % total;
      const [judged, pooled] = this.count(place);
      if (pooled === null || judged + (this.skipped.get(place)?.size ?? 0) < pooled) {
        return place;
      }
    }
    return -1;
  }

  goOn() {
    const open = this.firstOpen(this.at + 1);
    if (open >= 0) {
      this.show(open);
    } else {
      this.goTo(this.nextPlace());
    }
  }

  /**
   * Go to the first passage of a query that is not judged.
   *
   * @param {number} place
   */
  goTo(place) {
    this.place = place;
    this.show(Math.max(0, this.firstOpen()));
    this.requestPools();
    return this.position();
  }

  /** @param {number} by */
  stepQuery(by) {
    const total = this.queries.length;
    const from = this.here < 0 ? (by > 0 ? -1 : 0) : this.here;
    return this.goTo((from + by + total) % total);
  }

  /** @param {number} by */
  stepPassage(by) {
    if (this.pool?.[this.at + by]) {
      this.show(this.at + by);
    }
    return this.position();
  }

  unskip() {
    const [place] = [...this.skipped].find(([, ids]) => ids.size) ?? [0];
    this.skipped.clear();
    return this.goTo(place);
  }

  /** @param {number} at  a place in the pool */
  show(at) {
    this.shown = this.pool?.[at]?.id ?? "";
  }

  position() {
    if (this.place !== null && this.place < 0) {
      return "All judged.";
    }
    if (!this.candidate || !this.pool) {
      return `Query ${this.here + 1} of ${this.queries.length}.`;
    }
    const judged = this.candidate.score === null ? "" : ` Judged ${this.candidate.score} of 5.`;
    return `Passage ${this.at + 1} of ${this.pool.length}: ${this.candidate.title}.${judged}`;
  }
}
