// Search in the knowledge bases of a site.

import { Analyzer, fold } from "./analyzer.js";
import { Index } from "./index.js";
import { isWeak, rank } from "./ranking.js";
import { Matches, ends, marked, snippet } from "./snippet.js";
import { Transformer } from "./transformer.js";

const MAX_QUERY_LENGTH = 1_000; // characters read of a query

/**
 * A knowledge base of the site. Paths are relative to the site's root.
 *
 * @typedef {object} KnowledgeBase
 * @property {string} name
 * @property {string} title
 * @property {string} base  path of its pages; empty or with a trailing slash
 * @property {string} folder  path of its index
 */

/**
 * @typedef {object} Site
 * @property {KnowledgeBase[]} kbs
 * @property {string} [model]  path of the model that embeds queries, if any
 * @property {boolean} directories  whether the page of `a/b.md` is `a/b/`, not `a/b.html`
 */

/**
 * Readers of files, by path from the site's root.
 *
 * @typedef {object} Files
 * @property {(path: string) => Promise<any>} load  returns the content of a shard
 * @property {(path: string) => Promise<void> | void} run  runs a script
 * @property {(path: string) => Promise<ArrayBuffer>} [bytes]  returns a file of the model; missing
 *   without a server
 */

/**
 * @typedef {object} Options
 * @property {string[]} [kbs]  names of the knowledge bases to search; by default all
 * @property {import("./index.js").Filters} [filters]
 * @property {number} [limit]
 * @property {boolean} [typing]  the last word may be unfinished
 */

/**
 * A hit. In `snippet` and lists of parts, every second part is a word of the query.
 *
 * @typedef {object} Hit
 * @property {string} kb
 * @property {string} kbTitle
 * @property {number} row  number of the chunk in the index
 * @property {number} score
 * @property {boolean} weak  whether it hardly answers the query
 * @property {boolean} [phrased]  contains the query's phrases in quotation marks
 * @property {string} url  relative to the site's root, with the passage for `passage.js`
 * @property {string} place  the page's address and the anchor
 * @property {string} page  the page's address alone
 * @property {string} title
 * @property {string} section  titles of the sections above it
 * @property {string} heading
 * @property {string[]} titleParts
 * @property {string[]} headingParts
 * @property {string[]} snippet
 * @property {string} kind
 * @property {string[]} tags
 * @property {number} day
 * @property {boolean} stale
 * @property {number} rating
 */

export class Engine {
  /** @type {Map<string, Promise<Index>>} */
  #indexes = new Map();
  #site;
  #files;
  #pause;
  /** @type {Promise<boolean> | null} */
  #loading = null;
  /** @type {Transformer | null} */
  #model = null;
  /** @type {{text: string, vector: Promise<Float64Array | null>} | null} */
  #embedded = null;

  /**
   * @param {Site} site
   * @param {Files} files
   * @param {() => Promise<void>} [pause]  fulfilled when data of a single query may be
   *   loaded; rejected if the query is outdated
   */
  constructor(site, files, pause = async () => undefined) {
    this.#site = site;
    this.#files = files;
    this.#pause = pause;
  }

  /** Loads the data for every query. */
  async warm() {
    await Promise.all(this.#site.kbs.map((kb) => this.#index(kb)));
  }

  /**
   * Loads the model, which then embeds queries. Until then, or without it, the index embeds queries
   * as sums of term vectors.
   *
   * @returns {Promise<boolean>} whether it is there
   */
  loadModel() {
    this.#loading ??= this.#modelLoaded().catch(() => false);
    return this.#loading;
  }

  async #modelLoaded() {
    const { model } = this.#site;
    const { bytes } = this.#files;
    if (!model || !bytes || savesData()) return false;
    const read = (/** @type {string} */ name) => bytes(`${model}/${name}`);
    this.#model = await Transformer.opened(read, (name) => this.#pause().then(() => read(name)));
    return true;
  }

  /**
   * The model's vector of a query; null without a model. A repeated query, with filters or for more
   * hits, keeps its embedding, so that shown hits keep their order.
   *
   * @param {string} text
   */
  #vector(text) {
    if (this.#embedded?.text !== text) {
      const vector = this.#model?.vector(text).catch(() => {
        this.#embedded = null;
        return null;
      });
      this.#embedded = { text, vector: vector ?? Promise.resolve(null) };
    }
    return this.#embedded.vector;
  }

  /**
   * The hits of a query, best first, each place of a page once.
   *
   * @param {string} query
   * @param {Options} [options]
   * @returns {Promise<Hit[]>}
   */
  async search(query, { kbs = [], filters = {}, limit = 10, typing = false } = {}) {
    const text = query.slice(0, MAX_QUERY_LENGTH);
    const chosen = this.#site.kbs.filter((kb) => !kbs.length || kbs.includes(kb.name));
    const embed = () => this.#vector(text);
    const pools = await Promise.all(
      chosen.map(async (kb) => {
        const index = await this.#index(kb);
        return { ...(await index.pool(text, { filters, typing }, embed)), kb, index };
      }),
    );
    const phrases = phrasesIn(text);
    const hits = await Promise.all(
      rank(pools, phrases.length ? Math.max(limit, PHRASED) : limit).map(
        async ({ pool, place, score }) => {
          const { kb, index } = /** @type {typeof pools[number]} */ (pool);
          const hit = await this.#hit(kb, index, pool.rows[place], pool.terms, phrases);
          return { ...hit, score, weak: isWeak(score, pools) };
        },
      ),
    );
    const held = hits.filter(({ phrased }) => phrased);
    return held.concat(hits.filter(({ phrased }) => !phrased)).slice(0, limit);
  }

  /**
   * Subjects to offer, the most frequent first; of equal names the most frequent.
   *
   * @param {string} like  a part of their names
   * @param {string[]} kbs  names of the knowledge bases; all if empty
   */
  async subjects(like, kbs = []) {
    const chosen = this.#site.kbs.filter((kb) => !kbs.length || kbs.includes(kb.name));
    const lists = await Promise.all(
      chosen.map(async (kb) => (await this.#index(kb)).annotations.suggested(like)),
    );
    return lists.flat().sort((a, b) => b.count - a.count);
  }

  /**
   * @param {KnowledgeBase} kb
   * @param {Index} index
   * @param {number} row
   * @param {string[]} terms
   * @param {string[]} phrases
   */
  async #hit(kb, index, row, terms, phrases) {
    const { text, anchor, page, ...shown } = await index.shown(row);
    const matches = new Matches(terms, index.analyzer);
    const path = kb.base + this.#address(page);
    const place = anchor ? `#${encodeURIComponent(anchor)}` : "";
    return {
      kb: kb.name,
      kbTitle: kb.title,
      row,
      url: `${path}?passage=${encodeURIComponent(ends(text))}${place}`,
      place: path + place,
      page: path,
      ...shown,
      phrased:
        phrases.length > 0 &&
        phrases.every((phrase) => folded(`${shown.title} ${text}`).includes(phrase)),
      titleParts: marked(shown.title, matches),
      headingParts: marked(shown.heading, matches),
      snippet: marked(snippet(text, matches), matches),
    };
  }

  /**
   * The address of a Markdown file's page.
   *
   * @param {string} page
   */
  #address(page) {
    if (!page.endsWith(".md")) return page; // an address already
    const bare = page.slice(0, -3).split("/").map(encodeURIComponent).join("/");
    if (!this.#site.directories) return `${bare}.html`;
    return bare === "index" || bare.endsWith("/index") ? bare.slice(0, -5) : `${bare}/`;
  }

  /**
   * @param {KnowledgeBase} kb
   * @returns {Promise<Index>}
   */
  #index(kb) {
    let index = this.#indexes.get(kb.name);
    if (!index) {
      index = this.#opened(kb.folder);
      this.#indexes.set(kb.name, index);
      index.catch(() => this.#indexes.delete(kb.name)); // the next query tries again
    }
    return index;
  }

  /** @param {string} folder */
  async #opened(folder) {
    const load = (/** @type {string} */ name) => this.#files.load(`${folder}/${name}.js`);
    const [core, stem] = await Promise.all([load("core"), this.#stemmer(folder)]);
    const analyzer = new Analyzer({
      language: core.language,
      stopWords: core.stop.split(" "),
      stem: stem[core.language],
    });
    const loadPaused = (/** @type {string} */ name) => this.#pause().then(() => load(name));
    return new Index(core, loadPaused, analyzer);
  }

  /**
   * The stemmers after the script of an index was run. They are read immediately, since another
   * index may define another stemmer for the same language.
   *
   * @param {string} folder
   */
  async #stemmer(folder) {
    await this.#files.run(`${folder}/stem.js`);
    const { kbkitStemmers } = /** @type {any} */ (globalThis);
    return { ...kbkitStemmers };
  }
}

/** Whether the reader's browser saves data. */
function savesData() {
  return Boolean(/** @type {any} */ (globalThis).navigator?.connection?.saveData);
}

// As in kbkit/retrieval/ranking.py: hits with a phrase in quotation marks come first.
const PHRASED = 50;
const QUOTED = /["“„«]([^"“”„«»]*\S\s+\S[^"“”„«»]*)["”“»]/gu;

/** @param {string} query */
function phrasesIn(query) {
  return [...query.matchAll(QUOTED)].map(([, phrase]) => folded(phrase));
}

/** @param {string} text */
function folded(text) {
  return fold(text).split(/\s+/u).filter(Boolean).join(" ");
}
