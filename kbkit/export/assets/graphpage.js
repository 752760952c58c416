// The page of a knowledge base's graph: shows what the site has of it, and what passages say of what
// is selected, which the search of the site finds.

import { GraphView } from "./graph.js";
import { make } from "./elements.js";

const PASSAGES = 5;
const FOUND = 20; // names beyond the picture that a search lists
const BEYOND = "name:"; // ids of what is not drawn begin with it

/**
 * @typedef {[number, string, number]} Place  document, anchor, whether it defines it
 * @typedef {[string, number, number, number, number, number, number, Place[], string, string[], [string, string][]]} Row
 * @typedef {object} Data  see kbkit/export/pages/graph_page.py
 * @property {number} total
 * @property {string[]} types
 * @property {string[]} relations
 * @property {[string, string][]} documents  titles, and addresses from the site's root
 * @property {Row[]} nodes
 * @property {[number, number, number, number, number][]} edges
 * @property {[string, string, string, Place[]][]} gaps
 * @typedef {{name: string, url: string, note?: string, text?: string}} Linked
 */

/** Asks the worker that searches the site. */
class Search {
  /** @type {Map<number, (message: any) => void>} */
  #waiting = new Map();
  /** @type {Worker | null} */
  #worker = null;
  #asked = 0;

  /**
   * @param {string} address  of the worker
   * @param {string} kb
   */
  constructor(address, kb) {
    this.address = address;
    this.kb = kb;
  }

  /**
   * @param {any} message
   * @returns {Promise<any>} null where it cannot be answered
   */
  ask(message) {
    if (!this.#worker) {
      this.#worker = new Worker(new URL(this.address, location.href));
      this.#worker.addEventListener("message", ({ data }) => this.#waiting.get(data.id)?.(data));
      this.#worker.addEventListener("error", () => this.#waiting.forEach((tell) => tell(null)));
    }
    const id = (this.#asked += 1);
    return new Promise((resolve) => {
      this.#waiting.set(id, (answer) => {
        this.#waiting.delete(id);
        resolve(answer?.kbkit === "error" ? null : answer);
      });
      this.#worker?.postMessage({ ...message, id });
    });
  }

  /** What names an entity, best first. @param {string} name */
  async passages(name) {
    const options = { kbs: [this.kb], limit: PASSAGES, filters: { entities: [name] } };
    const answer = await this.ask({ kbkit: "search", query: name, options });
    return answer?.hits ?? [];
  }

  /** Entities whose names are like a text. @param {string} text */
  async named(text) {
    const answer = await this.ask({ kbkit: "subjects", query: text, options: { kbs: [this.kb] } });
    return (answer?.subjects ?? [])
      .filter((/** @type {any} */ { kind }) => kind === "entity")
      .map((/** @type {any} */ { name }) => name);
  }
}

class GraphPage {
  /**
   * @param {HTMLElement} place
   * @param {Data} data
   * @param {Search | null} search
   * @param {URL} root  of the site
   */
  constructor(place, data, search, root) {
    this.data = data;
    this.search = search;
    this.root = root;
    this.nodes = data.nodes.map(([name, type, x, y, radius], number) => {
      return { id: String(number), name, type: data.types[type], x, y, radius };
    });
    this.edges = data.edges.map(([source, target, relation, weight, drawn]) => {
      return { source, target, name: data.relations[relation], weight, drawn };
    });
    /** @type {Map<string, number>} */
    this.numbers = new Map(this.nodes.map(({ name }, number) => [name, number]));
    this.gaps = data.gaps.map(([name, kind, reason, places]) => {
      const number = this.numbers.get(name);
      return {
        id: number === undefined ? BEYOND + name : String(number),
        name,
        kind,
        reason,
        places,
      };
    });
    const view = new GraphView(place, {
      details: (id) => this.details(id),
      link: (thing) => this.link(thing),
      ...(search && data.total > data.nodes.length ? { find: (text) => this.find(text) } : {}),
    });
    view.show({
      nodes: this.nodes,
      edges: this.edges.filter(({ drawn }) => drawn),
      total: data.total,
    });
    view.showGaps(this.gaps);
    this.view = view;
  }

  /** @param {string} id */
  async details(id) {
    const number = id.startsWith(BEYOND) ? -1 : Number(id);
    const gaps = this.gaps.filter((gap) => gap.id === id);
    const [name, , , , , chunks, documents, places, description, aliases, properties] =
      this.data.nodes[number] ?? this.beyond(id, gaps);
    const type = this.nodes[number]?.type ?? "name";
    const isDocument = gaps.some(({ kind }) => kind === "unreached");
    const hits = this.search && !isDocument ? await this.search.passages(name) : [];
    const counts = chunks ? [["Named in", `${chunks} passages of ${documents} documents`]] : [];
    return {
      item: { id, name, type: isDocument ? "document" : type },
      description,
      aliases,
      facts: /** @type {[string, string][]} */ ([...counts, ...properties]),
      neighbors: this.neighbors(number),
      documents: places.map((place) => this.placeOf(place)),
      passages: hits.map((/** @type {any} */ hit) => ({
        name: hit.heading ? `${hit.title} › ${hit.heading}` : hit.title,
        url: hit.url,
        text: hit.snippet.join(""),
      })),
      gaps,
    };
  }

  /**
   * What is known of what is not drawn.
   *
   * @param {string} id
   * @param {{places: Place[]}[]} gaps
   * @returns {Row}
   */
  beyond(id, gaps) {
    return [id.slice(BEYOND.length), 0, 0, 0, 0, 0, 0, gaps[0]?.places ?? [], "", [], []];
  }

  /** @param {number} number */
  neighbors(number) {
    const near = this.edges.filter(({ source, target }) => source === number || target === number);
    return near
      .map(({ source, target, name, weight }) => {
        const { id, name: called, type } = this.nodes[source === number ? target : source];
        return { id, name: called, type, relation: name, forward: source === number, weight };
      })
      .sort((a, b) => b.weight - a.weight);
  }

  /**
   * @param {Place} place
   * @returns {Linked}
   */
  placeOf([number, anchor, defines]) {
    const [name, address] = this.data.documents[number];
    const url = anchor ? `${address}#${encodeURIComponent(anchor)}` : address;
    return { name, url, note: defines ? "says what it is" : "" };
  }

  /** @param {Linked} thing */
  link({ name, url, note }) {
    const link = make("a", {}, name);
    link.href = new URL(url, this.root).href;
    return note ? make("span", {}, link, " ", make("small", {}, note)) : link;
  }

  /** @param {string} text */
  async find(text) {
    const names = (await this.search?.named(text)) ?? [];
    return names
      .filter((/** @type {string} */ name) => !this.numbers.has(name))
      .slice(0, FOUND)
      .map((/** @type {string} */ name) => ({ id: BEYOND + name, name, type: "name" }));
  }
}

const place = document.getElementById("kb-graph");
if (place) {
  /** @type {any} */ (window).kbkitGraph = (/** @type {Data} */ data) => {
    const config = JSON.parse(document.getElementById("__config")?.textContent ?? "{}");
    const root = new URL(`${config.base}/`, location.href);
    const { kb } = place.dataset;
    const search = kb ? new Search(config.search, kb) : null;
    const page = new GraphPage(place, data, search, root);
    const name = new URLSearchParams(location.search).get("entity") ?? "";
    const number = page.numbers.get(name);
    if (number !== undefined) page.view.select(String(number));
  };
}
