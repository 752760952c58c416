// The search index of one published knowledge base, read shard by shard; counterpart of
// kbkit/export/published_index.py, which describes the choice of candidates.

import { Annotations } from "./annotations.js";
import { Documents } from "./documents.js";
import { varints } from "./packing.js";
import { byScore, exactImpact, idf, impact } from "./ranking.js";
import { Vectors, rowOf } from "./vectors.js";

const FORMAT = 10;
const CHUNK_CLUSTERS = { near: 4, further: 6 };
const SUMMARY_CLUSTERS = { near: 2, further: 1 };
const MODEL_CLUSTERS = { near: 8, further: 4 };
const ASKED = 64; // maximum terms of a query in its vector
const LOOKED_AT = 4; // term shards read for the completions of an unfinished word
const MIN_PREFIX = 2; // letters of a word to complete
const ENDINGS = 3; // number of shorter prefixes to try: "maki" is no prefix of the stem "make"

/**
 * Conditions on chunks and their documents; all must hold.
 *
 * @typedef {object} Filters
 * @property {string[]} [kinds]  one of these types
 * @property {string[]} [tags]  all of these
 * @property {number} [rating]  least average rating
 * @property {number} [since]  earliest day of the fetch, in days since 1970-01-01
 * @property {boolean} [current]  excludes stale pages
 * @property {string[]} [frames]  has a statement of one of these types
 * @property {string[]} [subjects]  has all of these subjects, by one of their names
 * @property {string[]} [entities]  mentions all of these
 */

/**
 * @typedef {object} Term
 * @property {number[]} rows  chunks with the term, ascending
 * @property {number[]} counts  occurrences in each
 * @property {boolean[]} inTitle
 * @property {boolean[]} inHeading
 * @property {Float64Array | null} vector  its row of the query encoder for chunks
 * @property {Float64Array | null} summary  its row of the query encoder for summaries
 */

/** @typedef {(name: string) => Promise<any>} Load */
/** @typedef {import("./ranking.js").Statistics} Statistics */

export class Index {
  /** @type {Map<string, Promise<any>>} */
  #shards = new Map();
  #load;
  #core;

  /**
   * @param {any} core  the shard of that name
   * @param {Load} load  returns the content of a shard
   * @param {import("./analyzer.js").Analyzer} analyzer
   */
  constructor(core, load, analyzer) {
    if (core.format !== FORMAT) throw new Error("an index of another kbkit");
    this.#load = load;
    this.#core = core;
    this.analyzer = analyzer;
    this.annotations = new Annotations(Boolean(core.frames), (name) => this.#shard(name));
    /** @type {import("./ranking.js").Settings} */
    this.settings = core.settings;
    this.lengths = varints(core.lengths);
    this.sizes = varints(core.sizes);
    this.owners = new Int32Array(core.chunks);
    let row = 0;
    this.sizes.forEach((size, owner) => this.owners.fill(owner, row, (row += size)));
    this.prior = new Map(core.prior);
    /** Documents that are mostly links. */
    this.indexes = new Set(/** @type {number[]} */ (core.indexes));
    /** @type {string[]} */
    this.firsts = core.firsts.split(" ").filter(Boolean); // none if no chunk has a term
    /** The first chunk of each shard of texts. */
    this.texts = [0];
    for (const count of varints(core.texts)) this.texts.push(Number(this.texts.at(-1)) + count);
    this.days = varints(core.days);
    this.kinds = varints(core.kind);
    this.stale = new Set(core.stale);
    this.ratings = new Map(core.ratings);
    this.vectors = new Vectors(core.vectors, this.#numbered("v"));
    this.summaries = new Vectors(core.summaries, this.#numbered("c"));
    this.documents = new Documents(this.owners, this.lengths, this.sizes.length);
  }

  /**
   * Data of a document.
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
   * Content of a chunk for results.
   *
   * @param {number} row
   */
  async shown(row) {
    const number = this.texts.findLastIndex((first) => first <= row);
    const shard = await this.#shard(`x/${number}`);
    const [text, heading, anchor] = shard.x[row - this.texts[number]];
    const owner = this.owners[row];
    const [, page, title, section] = shard.d.find(
      (/** @type {any[]} */ entry) => entry[0] === owner,
    );
    return { text, heading, anchor, page, title, section, ...this.document(owner) };
  }

  /**
   * The candidates for a query.
   *
   * @param {string} query
   * @param {{filters?: Filters, typing?: boolean}} [options]  while a reader types, the last
   *   word may be unfinished
   * @param {() => Promise<Float64Array | null>} [embed]  returns the model's vector of the query;
   *   null without a model
   * @returns {Promise<import("./ranking.js").Pool>}
   */
  async pool(query, { filters = {}, typing = false } = {}, embed = async () => null) {
    const queryTerms = this.analyzer.queryTerms(query);
    const model = this.#modelled(embed).catch(() => null);
    const terms = await this.#terms(queryTerms, typing && /[^\s"'”“’»`.?!,;:)\]]$/u.test(query));
    const completed = [...terms.keys()].filter((name) => !queryTerms.includes(name));
    const mask = await this.#mask(filters);
    const size = Math.min(this.settings.candidates, this.lengths.length);
    const frequencies = new Map([...terms].map(([name, term]) => [name, term.rows.length]));
    const statistics = {
      chunks: this.lengths.length,
      average: this.#core.average,
      frequencies,
    };
    const allowed = mask && ((/** @type {number} */ row) => mask[row] > 0);
    const scores = this.#lexical(terms, statistics);
    const matching = [...scores.keys()].filter((row) => scores[row] && (!allowed || allowed(row)));
    const lexical = matching.sort((a, b) => scores[b] - scores[a] || a - b).slice(0, size);
    const vectorTerms = [...terms.values()].slice(0, ASKED);
    const pages = this.documents.scores(this.settings.page ? terms : new Map());
    const vectors = await model;
    const chunk = vectors?.chunk ?? vectorTerms.map((term) => term.vector);
    const [nearest, summary] = await Promise.all([
      this.vectors.near(chunk, lexical, allowed, CHUNK_CLUSTERS),
      vectors?.summary
        ? this.#summary(vectors.summary, pages.page, MODEL_CLUSTERS)
        : this.#summary(
            vectorTerms.map((term) => term.summary),
            pages.page,
            SUMMARY_CLUSTERS,
          ),
    ]);
    const cosines = Float32Array.from(nearest.rows, (row) => nearest.cosine(row));
    const dense = byScore(cosines)
      .slice(0, size)
      .map((i) => nearest.rows[i]);
    const best = this.documents.best([pages.page, summary], scores, nearest.cosine, allowed);
    const rows = [...new Set([...dense, ...lexical, ...best])].sort((a, b) => a - b);
    const owners = rows.map((row) => this.owners[row]);
    const lookups = [...terms]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, term]) => ({ name, ...found(term, rows) }));
    const termCount = Math.max(1, queryTerms.length);
    /** @param {"inTitle" | "inHeading"} where */
    const share = (where) =>
      rows.map((_, i) => lookups.filter((at) => at.term[where][at.places[i]]).length / termCount);
    return {
      settings: this.settings,
      terms: completed.length ? [...queryTerms.slice(0, -1), ...completed] : queryTerms,
      rows,
      owners,
      sizes: owners.map((owner) => this.sizes[owner]),
      cosine: rows.map(nearest.cosine),
      statistics,
      bm25: (joint) => rows.map((row, i) => this.#bm25(row, i, lookups, joint)),
      page: (joint) => owners.map((owner) => this.documents.bm25(owner, pages.counts, joint)),
      pageStatistics: pages.statistics,
      summary: owners.map((owner) => summary[owner]),
      summaryEmbedder: this.#core.summaries?.embedder ?? "",
      title: share("inTitle"),
      heading: share("inHeading"),
      indexes: owners.map((owner) => this.indexes.has(owner)),
      rating: rows.map((row) => Number(this.prior.get(row) ?? 0)),
      vector: (place) => nearest.vector(rows[place]),
    };
  }

  /**
   * Read terms of the index; with `last`, the last term may be unfinished.
   *
   * @param {string[]} asked
   * @param {boolean} last
   * @returns {Promise<Map<string, Term>>}
   */
  async #terms(asked, last) {
    const entries = await Promise.all(asked.map((term) => this.#term(term)));
    /** @type {Map<string, Term>} */
    const terms = new Map();
    entries.forEach((term, i) => term && terms.set(asked[i], term));
    const unfinished = asked.at(-1);
    if (last && unfinished && !terms.has(unfinished)) {
      const name = await this.#completed(unfinished);
      const term = name ? await this.#term(name) : null;
      if (term) terms.set(name, term);
    }
    return terms;
  }

  /**
   * The most frequent term with a prefix or a slightly shorter one, since stems lack endings.
   *
   * @param {string} word
   */
  async #completed(word) {
    let best = "";
    for (let length = word.length; !best && length > word.length - ENDINGS; length--) {
      if (length >= MIN_PREFIX) best = await this.#commonest(word.slice(0, length));
    }
    return best;
  }

  /** @param {string} beginning */
  async #commonest(beginning) {
    const first = Math.max(
      0,
      this.firsts.findLastIndex((term) => term <= beginning),
    );
    const last = this.firsts.findLastIndex((term) => term <= `${beginning}\uffff`);
    const end = Math.min(first + LOOKED_AT, last + 1);
    const numbers = Array.from({ length: end - first }, (_, i) => first + i);
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
    const number = this.firsts.findLastIndex((first) => first <= term);
    if (number < 0) return null;
    const shard = await this.#shard(`t/${number}`);
    const place = shard.t.split(" ").indexOf(term);
    if (place < 0) return null;
    const before = (/** @type {number[]} */ counts) =>
      counts.slice(0, place).reduce((a, b) => a + b, 0);
    shard.postings ??= varints(shard.p);
    const start = before(shard.n);
    /** @type {Term} */
    const result = {
      rows: [],
      counts: [],
      inTitle: [],
      inHeading: [],
      vector: rowOf(shard, "", place, this.vectors.dimensions),
      summary: rowOf(shard, "c", place, this.summaries.dimensions),
    };
    let at = 0;
    for (let i = 2 * start; i < 2 * (start + shard.n[place]); i += 2) {
      const mark = shard.postings[i + 1];
      result.rows.push((at += shard.postings[i]));
      result.counts.push((mark >> 2) + 1);
      result.inTitle.push((mark & 2) > 0);
      result.inHeading.push((mark & 1) > 0);
    }
    return result;
  }

  /**
   * BM25 of all chunks, rounded as in Python.
   *
   * @param {Map<string, Term>} terms
   * @param {Statistics} statistics
   */
  #lexical(terms, statistics) {
    const scores = new Float32Array(this.lengths.length);
    for (const [name, term] of terms) {
      const add = impact(idf(statistics, name), this.#core.average);
      term.rows.forEach((row, i) => {
        scores[row] += add(term.counts[i], this.lengths[row]);
      });
    }
    return scores;
  }

  /**
   * The model's query vectors for chunks and summaries that it embedded.
   *
   * @param {() => Promise<Float64Array | null>} embed
   */
  async #modelled(embed) {
    const isNeeded = this.vectors.modelled || this.summaries.modelled;
    const vector = isNeeded ? await embed() : null;
    if (!vector) return null;
    const axes = await this.#shard("m");
    return {
      chunk: axes.vectors && [this.vectors.projected(vector, axes.vectors)],
      summary: axes.summaries && [this.summaries.projected(vector, axes.summaries)],
    };
  }

  /**
   * Cosine of the query and each document's summary; the mean of the others without a summary.
   *
   * @param {(Float64Array | null)[]} parts  vectors whose sum is the query's
   * @param {Float32Array} page  BM25 of each document
   * @param {import("./vectors.js").Clusters} read
   */
  async #summary(parts, page, read) {
    const best = byScore(page).filter((owner) => page[owner]);
    const near = await this.summaries.near(this.settings.summary ? parts : [], best, null, read);
    const scores = Float32Array.from(page, (_, owner) => near.cosine(owner));
    let [sum, count] = [0, 0];
    scores.forEach((score, owner) => {
      if (this.summaries.has(owner)) [sum, count] = [sum + score, count + 1];
    });
    return scores.map((score, owner) => (this.summaries.has(owner) ? score : sum / (count || 1)));
  }

  /**
   * @param {number} row
   * @param {number} i  its place among the candidates
   * @param {{name: string, term: Term, places: number[]}[]} lookups
   * @param {Statistics} statistics
   */
  #bm25(row, i, lookups, statistics) {
    return lookups.reduce((sum, { name, term, places }) => {
      const count = term.counts[places[i]] ?? 0;
      return sum + exactImpact(statistics, name, count, this.lengths[row]);
    }, 0);
  }

  /**
   * The mask of chunks for filters; null without filters.
   *
   * @param {Filters} filters
   */
  async #mask({ frames = [], subjects = [], entities = [], ...ofDocuments }) {
    const documents = this.#documentMask(ofDocuments);
    if (!frames.length && !subjects.length && !entities.length) return documents;
    const mask = documents ?? new Uint8Array(this.owners.length).fill(1);
    const { annotations } = this;
    const conditions = await Promise.all([
      ...(frames.length ? [annotations.saying(frames)] : []),
      ...subjects.map((name) => annotations.speaking(name)),
      ...entities.map((name) => annotations.speaking(name, ["entity"])),
    ]);
    for (const holds of conditions) {
      const holdsFor = holds instanceof Set ? (/** @type {number} */ row) => holds.has(row) : holds;
      mask.forEach((allowed, row) => (mask[row] = Number(allowed && holdsFor(row))));
    }
    return mask;
  }

  /**
   * The mask of chunks for filters of documents; null without these.
   *
   * @param {Filters} filters
   */
  #documentMask({ kinds = [], tags = [], rating = 0, since = 0, current = false }) {
    if (!kinds.length && !tags.length && !rating && !since && !current) return null;
    const allowed = Array.from(this.sizes, (_, owner) => {
      const document = this.document(owner);
      return (
        (!kinds.length || kinds.includes(document.kind)) &&
        tags.every((tag) => document.tags.includes(tag)) &&
        (!rating || document.rating >= rating) &&
        document.day >= since &&
        !(current && document.stale)
      );
    });
    return Uint8Array.from(this.owners, (owner) => Number(allowed[owner]));
  }

  /**
   * Return a loader of vector shards by number.
   *
   * @param {string} kind
   * @returns {(number: number) => Promise<any>}
   */
  #numbered(kind) {
    return (number) => this.#shard(`${kind}/${number}`);
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
 * Positions of chunks in a term's postings; -1 for none.
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
