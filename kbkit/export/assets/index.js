// The search index of one published knowledge base, read shard by shard: the twin of
// kbkit/publishing/published_index.py, whose docstring says how candidates are come by.

import { nibbles, varints } from "./packing.js";
import { byScore, dot, idf } from "./ranking.js";

const FORMAT = 2;
const NEAR = 4;
const FURTHER = 6;
const FIRST = 50;
const ASKED = 64; // terms of a query that count in its vector
const UNIT = 65_536; // parts of 1 that scales are written in
const K1 = 1.2;
const B = 0.75;
const LOOKED_AT = 4; // term shards that are read for the ends of an unfinished word
const SHORTEST = 2; // letters of a word before its end is guessed
const ENDINGS = 3; // how many shorter beginnings are tried: "maki" is no beginning of the stem "make"

const { fround } = Math;

/**
 * What is asked of documents; all of it must hold.
 *
 * @typedef {object} Filters
 * @property {string[]} [kinds]  one of these types
 * @property {string[]} [tags]  all of these
 * @property {number} [rating]  least average rating
 * @property {number} [since]  fetched at this day or later, in days since 1970-01-01
 * @property {boolean} [current]  no page that could not be fetched of late
 */

/**
 * @typedef {object} Term
 * @property {number[]} rows  chunks that hold it, ascending
 * @property {number[]} counts  how often each does
 * @property {boolean[]} inTitle
 * @property {boolean[]} inHeading
 * @property {Float64Array | null} vector
 */

/** @typedef {{rows: number[], vectors: Float64Array[]}} Cluster */
/** @typedef {(name: string) => Promise<any>} Load */
/** @typedef {import("./ranking.js").Statistics} Statistics */

class Index {
  /** @type {Map<string, Promise<any>>} */
  #shards = new Map();
  #load;
  #core;

  /**
   * @param {any} core  the shard of that name
   * @param {Load} load  gives what a shard holds
   * @param {import("./analyzer.js").Analyzer} analyzer
   */
  constructor(core, load, analyzer) {
    if (core.format !== FORMAT) throw new Error("an index of another kbkit");
    this.#load = load;
    this.#core = core;
    this.analyzer = analyzer;
    /** @type {import("./ranking.js").Settings} */
    this.settings = core.settings;
    this.lengths = varints(core.lengths);
    this.sizes = varints(core.sizes);
    this.owners = new Int32Array(core.chunks);
    let row = 0;
    this.sizes.forEach((size, owner) => this.owners.fill(owner, row, (row += size)));
    this.prior = new Map(core.prior);
    /** @type {string[]} */
    this.firsts = core.firsts.split(" ");
    /** The first chunk of each shard of texts. */
    this.texts = [0];
    for (const count of varints(core.texts)) this.texts.push(Number(this.texts.at(-1)) + count);
    this.days = varints(core.days);
    this.kinds = varints(core.kind);
    this.stale = new Set(core.stale);
    this.ratings = new Map(core.ratings);
    /** @type {number} */
    this.dimensions = core.dimensions ?? 0;
    this.clusters = varints(core.clusters ?? "");
    const steps = nibbles(core.centroids ?? "");
    /** @type {Float64Array[]} */
    this.centroids = (core.steps ?? []).map(
      (/** @type {number} */ scale, /** @type {number} */ i) =>
        scaled(steps.subarray(i * this.dimensions, (i + 1) * this.dimensions), scale / UNIT),
    );
  }

  /**
   * What is known of a document.
   *
   * @param {number} owner
   */
  document(owner) {
    return {
      kind: String(this.#core.kinds[this.kinds[owner]]),
      tags: /** @type {string[]} */ (
        (this.#core.tag[owner] ?? []).map((/** @type {number} */ n) => this.#core.tags[n])
      ),
      day: this.days[owner],
      stale: this.stale.has(owner),
      rating: Number(this.ratings.get(owner) ?? 0),
    };
  }

  /**
   * What is shown of a chunk.
   *
   * @param {number} row
   */
  async shown(row) {
    const number = lastNotAbove(this.texts, row);
    const shard = await this.#shard(`x/${number}`);
    const [text, heading, anchor] = shard.x[row - this.texts[number]];
    const owner = this.owners[row];
    const [, page, title] = shard.d.find((/** @type {any[]} */ known) => known[0] === owner);
    return { text, heading, anchor, page, title, ...this.document(owner) };
  }

  /**
   * The candidates for a query.
   *
   * @param {string} query
   * @param {{filters?: Filters, typing?: boolean}} [options]  while somebody is typing, the last
   *   word is taken for the beginning of one
   * @returns {Promise<import("./ranking.js").Pool>}
   */
  async pool(query, { filters = {}, typing = false } = {}) {
    const asked = this.analyzer.queryTerms(query);
    const terms = await this.#terms(asked, typing && /[^\s"'”“’»`.?!,;:)\]]$/u.test(query));
    const mask = this.#mask(filters);
    const size = Math.min(this.settings.candidates, this.lengths.length);
    const frequencies = new Map([...terms].map(([name, term]) => [name, term.rows.length]));
    const statistics = { chunks: this.lengths.length, average: this.#core.average, frequencies };
    const lexical = this.#lexical(terms, statistics, size, mask);
    const near = await this.#near([...terms.values()].slice(0, ASKED), lexical, mask);
    const cosines = Float32Array.from(near.rows, (row) => near.cosine(row));
    const dense = byScore(cosines)
      .slice(0, size)
      .map((i) => near.rows[i]);
    const rows = [...new Set([...dense, ...lexical])].sort((a, b) => a - b);
    const owners = rows.map((row) => this.owners[row]);
    const lookups = [...terms]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, term]) => ({ name, ...found(term, rows) }));
    const whole = Math.max(1, asked.length);
    /** @param {"inTitle" | "inHeading"} where */
    const share = (where) =>
      rows.map((_, i) => lookups.filter((at) => at.term[where][at.places[i]]).length / whole);
    return {
      settings: this.settings,
      terms: [...new Set([...asked, ...terms.keys()])],
      rows,
      owners,
      sizes: owners.map((owner) => this.sizes[owner]),
      cosine: rows.map(near.cosine),
      statistics,
      bm25: (joint) => rows.map((row, i) => this.#bm25(row, i, lookups, joint)),
      title: share("inTitle"),
      heading: share("inHeading"),
      rating: rows.map((row) => Number(this.prior.get(row) ?? 0)),
      vector: (place) => near.vector(rows[place]),
    };
  }

  /**
   * What the index has of terms; with `last`, the last one may be the beginning of another.
   *
   * @param {string[]} asked
   * @param {boolean} last
   * @returns {Promise<Map<string, Term>>}
   */
  async #terms(asked, last) {
    const known = await Promise.all(asked.map((term) => this.#term(term)));
    /** @type {Map<string, Term>} */
    const terms = new Map();
    known.forEach((term, i) => term && terms.set(asked[i], term));
    const unfinished = asked.at(-1);
    if (last && unfinished && !terms.has(unfinished)) {
      const name = await this.#completed(unfinished);
      const term = name ? await this.#term(name) : null;
      if (term) terms.set(name, term);
    }
    return terms;
  }

  /**
   * The commonest term that begins so, or nearly so: stems lack what words end in.
   *
   * @param {string} word
   */
  async #completed(word) {
    let best = "";
    for (let length = word.length; !best && length > word.length - ENDINGS; length--) {
      if (length >= SHORTEST) best = await this.#commonest(word.slice(0, length));
    }
    return best;
  }

  /** @param {string} beginning */
  async #commonest(beginning) {
    const first = Math.max(0, lastNotAbove(this.firsts, beginning));
    const behind = Math.min(first + LOOKED_AT, lastNotAbove(this.firsts, `${beginning}\uffff`) + 1);
    const numbers = Array.from({ length: behind - first }, (_, i) => first + i);
    const shards = await Promise.all(numbers.map((number) => this.#shard(`t/${number}`)));
    let [most, best] = [0, ""];
    for (const { t, n } of shards) {
      t.split(" ").forEach((/** @type {string} */ name, /** @type {number} */ i) => {
        if (name.startsWith(beginning) && n[i] > most) [most, best] = [n[i], name];
      });
    }
    return best;
  }

  /**
   * @param {string} term
   * @returns {Promise<Term | null>}
   */
  async #term(term) {
    const number = lastNotAbove(this.firsts, term);
    if (number < 0) return null;
    const shard = await this.#shard(`t/${number}`);
    const place = shard.t.split(" ").indexOf(term);
    if (place < 0) return null;
    const before = (/** @type {number[]} */ counts) =>
      counts.slice(0, place).reduce((a, b) => a + b, 0);
    shard.postings ??= varints(shard.p);
    const start = before(shard.n);
    /** @type {Term} */
    const known = { rows: [], counts: [], inTitle: [], inHeading: [], vector: null };
    let row = 0;
    for (let i = 2 * start; i < 2 * (start + shard.n[place]); i += 2) {
      const about = shard.postings[i + 1];
      known.rows.push((row += shard.postings[i]));
      known.counts.push((about >> 2) + 1);
      known.inTitle.push((about & 2) > 0);
      known.inHeading.push((about & 1) > 0);
    }
    if (shard.s?.[place]) {
      shard.steps ??= nibbles(shard.v);
      const at = this.dimensions * shard.s.slice(0, place).filter(Boolean).length;
      known.vector = scaled(shard.steps.subarray(at, at + this.dimensions), shard.s[place] / UNIT);
    }
    return known;
  }

  /**
   * Chunks with the highest BM25, best first, rounded as Python rounds it.
   *
   * @param {Map<string, Term>} terms
   * @param {Statistics} statistics
   * @param {number} size
   * @param {Uint8Array | null} mask
   */
  #lexical(terms, statistics, size, mask) {
    const scores = new Float32Array(this.lengths.length);
    const [low, slope] = [fround(K1 * (1 - B)), fround((K1 * B) / (this.#core.average || 1))];
    for (const [name, term] of terms) {
      const weight = fround(idf(statistics, name) * (K1 + 1));
      term.rows.forEach((row, i) => {
        const norm = fround(low + fround(slope * this.lengths[row]));
        const count = term.counts[i];
        scores[row] += fround(fround(weight * count) / fround(count + norm));
      });
    }
    const matching = [];
    for (let row = 0; row < scores.length; row++) {
      if (scores[row] && (!mask || mask[row])) matching.push(row);
    }
    return matching.sort((a, b) => scores[b] - scores[a] || a - b).slice(0, size);
  }

  /**
   * @param {number} row
   * @param {number} i  its place among the candidates
   * @param {{name: string, term: Term, places: number[]}[]} lookups
   * @param {Statistics} statistics
   */
  #bm25(row, i, lookups, statistics) {
    const norm = K1 * (1 - B + (B * this.lengths[row]) / statistics.average);
    return lookups.reduce((sum, { name, term, places }) => {
      const count = term.counts[places[i]] ?? 0;
      return sum + idf(statistics, name) * ((count * (K1 + 1)) / (count + norm));
    }, 0);
  }

  /**
   * The chunks whose vectors are at hand, and what is known of every chunk's.
   *
   * @param {Term[]} terms
   * @param {number[]} lexical
   * @param {Uint8Array | null} mask
   */
  async #near(terms, lexical, mask) {
    /** @type {Map<number, Float64Array>} */
    const vectors = new Map();
    const query = new Float64Array(this.dimensions);
    for (const { vector } of terms) vector?.forEach((value, i) => (query[i] += value));
    const length = Math.sqrt(dot(query, query));
    if (!length) return { rows: [], cosine: () => 0, vector: () => null };
    query.forEach((value, i) => (query[i] = value / length));
    const near = this.centroids.map((centroid) => dot(centroid, query));
    const clusters = await Promise.all(
      this.#clustersToRead(near, lexical, mask).map((number) => this.#cluster(number)),
    );
    for (const cluster of clusters) {
      cluster.rows.forEach((row, i) => vectors.set(row, cluster.vectors[i]));
    }
    const at = [...vectors.keys()].sort((a, b) => a - b);
    /** @type {Map<number, number>} */
    const cosines = new Map(
      at.map((row) => [row, dot(/** @type {any} */ (vectors.get(row)), query)]),
    );
    return {
      rows: mask ? at.filter((row) => mask[row]) : at,
      cosine: (/** @type {number} */ row) => cosines.get(row) ?? near[this.clusters[row]],
      vector: (/** @type {number} */ row) => unit(vectors.get(row)),
    };
  }

  /**
   * The clusters that are nearest, and those that hold most of the best lexical candidates.
   *
   * @param {number[]} near  how near each is
   * @param {number[]} lexical
   * @param {Uint8Array | null} mask
   */
  #clustersToRead(near, lexical, mask) {
    const weights = near.map(() => 0);
    lexical
      .slice(0, FIRST)
      .forEach((row, place) => (weights[this.clusters[row]] += 1 / (10 + place)));
    let nearest = byScore(near);
    if (mask) {
      const there = new Set(this.clusters.filter((_, row) => mask[row]));
      nearest = nearest.filter((number) => there.has(number));
    }
    const wanted = nearest.slice(0, NEAR);
    for (const number of byScore(weights)) {
      if (wanted.length >= NEAR + FURTHER || !weights[number]) break;
      if (!wanted.includes(number)) wanted.push(number);
    }
    return wanted;
  }

  /**
   * @param {number} number
   * @returns {Promise<Cluster>}
   */
  async #cluster(number) {
    const shard = await this.#shard(`v/${number}`);
    if (!shard.cluster) {
      const steps = nibbles(shard.v);
      let row = 0;
      const rows = Array.from(varints(shard.r), (step) => (row += step));
      const width = this.dimensions;
      const vectors = rows.map((_, i) =>
        Float64Array.from(
          steps.subarray(i * width, (i + 1) * width),
          (x, j) => x * this.#core.scales[j],
        ),
      );
      shard.cluster = { rows, vectors };
    }
    return shard.cluster;
  }

  /**
   * Which chunks the filters let through; null where there are none.
   *
   * @param {Filters} filters
   */
  #mask({ kinds = [], tags = [], rating = 0, since = 0, current = false }) {
    if (!kinds.length && !tags.length && !rating && !since && !current) return null;
    const allowed = Array.from(this.sizes, (_, owner) => {
      const known = this.document(owner);
      return (
        (!kinds.length || kinds.includes(known.kind)) &&
        tags.every((tag) => known.tags.includes(tag)) &&
        (!rating || known.rating >= rating) &&
        known.day >= since &&
        !(current && known.stale)
      );
    });
    return Uint8Array.from(this.owners, (owner) => Number(allowed[owner]));
  }

  /**
   * @param {string} name
   * @returns {Promise<any>}
   */
  #shard(name) {
    let shard = this.#shards.get(name);
    if (!shard) {
      shard = this.#load(name);
      this.#shards.set(name, shard);
      shard.catch(() => this.#shards.delete(name)); // the next query tries again
    }
    return shard;
  }
}

/**
 * The place of the last of some values that is not above another; -1 where all are.
 *
 * @template {string | number} T
 * @param {T[]} values  ascending
 * @param {T} value
 */
function lastNotAbove(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * Where a term's postings are that speak of some chunks; -1 for none.
 *
 * @param {Term} term
 * @param {number[]} rows  ascending
 */
function found(term, rows) {
  let at = 0;
  const places = rows.map((row) => {
    while (term.rows[at] < row) at++;
    return term.rows[at] === row ? at : -1;
  });
  return { term, places };
}

/**
 * @param {Int8Array} steps
 * @param {number} scale
 */
function scaled(steps, scale) {
  return Float64Array.from(steps, (step) => step * scale);
}

/** @param {Float64Array | undefined} vector */
function unit(vector) {
  if (!vector) return null;
  const length = Math.sqrt(dot(vector, vector)) || 1;
  return vector.map((value) => value / length);
}

export { Index };
