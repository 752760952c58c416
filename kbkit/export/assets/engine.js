// Search in the knowledge bases of a site.

import { Analyzer, fold } from "./analyzer.js";
import { Index } from "./index.js";
import { isWeak, rank } from "./ranking.js";
import { Matches, ends, marked, snippet } from "./snippet.js";
import { Transformer } from "./transformer.js";

const LONGEST = 1_000; // characters of a query that are read

/**
 * A knowledge base of the site. Paths are relative to the site's root.
 *
 * @typedef {object} KnowledgeBase
 * @property {string} name
 * @property {string} title
 * @property {string} base  where its pages are; empty or with a slash at its end
 * @property {string} folder  where its index is
 */

/**
 * @typedef {object} Site
 * @property {KnowledgeBase[]} kbs
 * @property {string} annotations  name of the script that reads annotations
 * @property {string} [model]  where the model is that embeds queries, if there is one
 * @property {boolean} directories  whether `a/b.md` is found at `a/b/`, and not at `a/b.html`
 */

/**
 * How files are read, by their path from the site's root.
 *
 * @typedef {object} Files
 * @property {(path: string) => Promise<any>} load  gives what a shard holds
 * @property {(path: string) => Promise<void> | void} run  runs a script
 * @property {(path: string) => Promise<ArrayBuffer>} [bytes]  gives a file of the model; not where
 *   there is no server
 */

/**
 * @typedef {object} Options
 * @property {string[]} [kbs]  names of the knowledge bases to search; all where there are none
 * @property {import("./index.js").Filters} [filters]
 * @property {number} [limit]
 * @property {boolean} [typing]  the last word may be the beginning of one
 */

/**
 * A hit. `snippet` and `headingParts` are in parts, every second of which is a word that was asked.
 *
 * @typedef {object} Hit
 * @property {string} kb
 * @property {string} kbTitle
 * @property {number} row  number of the chunk in the index
 * @property {number} score
 * @property {boolean} weak  whether it hardly answers the query
 * @property {boolean} [phrased]  holds the phrases in quotation marks that were asked
 * @property {string} url  relative to the site's root, with what `passage.js` marks
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
 * @property {string} frame  the kind of statement that it makes, if that can be told
 * @property {string[]} entities  names that stand in it
 */

class Engine {
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
   * @param {() => Promise<void>} [pause]  what is waited for before anything is loaded that not
   *   every query needs; a query that is not wanted any more ends where this fails
   */
  constructor(site, files, pause = async () => undefined) {
    this.#site = site;
    this.#files = files;
    this.#pause = pause;
  }

  /** Loads what every query needs. */
  async warm() {
    await Promise.all(this.#site.kbs.map((kb) => this.#index(kb)));
  }

  /**
   * Loads the model, which embeds queries from then on. Those before, and all where it cannot be
   * had, are embedded by the index: as sums of what it has of their words.
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
   * What the model makes of a query; null without it. A query that is asked again, with filters
   * or for more hits, stays as it was embedded, so that what is on show does not change places.
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
   * The chunks that answer a query, best first, each place of a page once.
   *
   * @param {string} query
   * @param {Options} [options]
   * @returns {Promise<Hit[]>}
   */
  async search(query, { kbs = [], filters = {}, limit = 10, typing = false } = {}) {
    const text = query.slice(0, LONGEST);
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
   * Subjects to choose from, those first that most chunks speak of; of equal names the commonest.
   *
   * @param {string} like  a part of their names
   * @param {string[]} kbs  names of the knowledge bases; all where there are none
   */
  async subjects(like, kbs = []) {
    const chosen = this.#site.kbs.filter((kb) => !kbs.length || kbs.includes(kb.name));
    const found = await Promise.all(
      chosen.map(async (kb) => (await (await this.#index(kb)).annotations()).suggested(like)),
    );
    return found.flat().sort((a, b) => b.count - a.count);
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
        phrases.every((each) => folded(`${shown.title} ${text}`).includes(each)),
      titleParts: marked(shown.title, matches),
      headingParts: marked(shown.heading, matches),
      snippet: marked(snippet(text, matches), matches),
    };
  }

  /**
   * Where the site has what a Markdown file says.
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
    const patient = (/** @type {string} */ name) => this.#pause().then(() => load(name));
    return new Index(core, patient, analyzer, () => this.#annotationCode());
  }

  async #annotationCode() {
    const all = /** @type {any} */ (globalThis);
    if (!all.kbkitAnnotations) {
      await this.#files.run(`assets/kbkit/${this.#site.annotations}`);
    }
    return all.kbkitAnnotations;
  }

  /**
   * The stemmers there are once that of an index was run. What it put there is read at once, since
   * another index may have another one for the same language.
   *
   * @param {string} folder
   */
  async #stemmer(folder) {
    await this.#files.run(`${folder}/stem.js`);
    const { kbkitStemmers } = /** @type {any} */ (globalThis);
    return { ...kbkitStemmers };
  }
}

/** Whether the reader has asked for little to be loaded. */
function savesData() {
  return Boolean(/** @type {any} */ (globalThis).navigator?.connection?.saveData);
}

// As kbkit/retrieval/phrases.py says it: hits with a phrase in quotation marks go first.
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

export { Engine };
