// The page of a knowledge base's graph: shows the site's data, and passages about the selected
// node, found by the site's search.

import { GraphView } from "./graph.js";
import { make } from "./elements.js";

const PASSAGES = 5;
const FOUND = 20; // names beyond the picture that a search lists
const BEYOND = "name:"; // starts ids of undrawn entities
const RING = 90; // pixels between rings of neighbours
const SMALL = 5; // radius of undrawn entities

/**
 * @typedef {[number, string, number]} Place  document, anchor, whether it defines it
 * @typedef {[string, number, number, number, number, number, number, Place[], string, string[], [string, string][]]} Row
 * @typedef {object} Data  see kbkit/export/pages/home_page.py
 * @property {number} total
 * @property {string[]} types
 * @property {string[]} relations
 * @property {[string, string][]} documents  titles, and addresses from the site's root
 * @property {Row[]} nodes
 * @property {[number, number, number, number, number][]} edges
 * @property {[string, string, string, Place[]][]} gaps
 * @property {string[]} parts  the first name of each part with undrawn entities
 * @typedef {[string, number, number, number, Place[], any[][]]} PartRow  name, type, passages,
 *   documents, places, and neighbours: relation, direction, weight, and the number of a drawn node,
 *   or name and type
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
   * @returns {Promise<any>} null without an answer
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

  /** Passages with an entity, best first. @param {string} name */
  async passages(name) {
    const options = { kbs: [this.kb], limit: PASSAGES, filters: { entities: [name] } };
    const answer = await this.ask({ kbkit: "search", query: name, options });
    return answer?.hits ?? [];
  }

  /** Entities with names similar to a text. @param {string} text */
  async named(text) {
    const answer = await this.ask({ kbkit: "subjects", query: text, options: { kbs: [this.kb] } });
    return (answer?.subjects ?? [])
      .filter((/** @type {any} */ { kind }) => kind === "entity")
      .map((/** @type {any} */ { name }) => name);
  }
}

/** Loads the scripts with undrawn entities, each once. */
class Parts {
  /**
   * @param {string[]} first  the first name of each
   * @param {string} folder
   */
  constructor(first, folder) {
    this.first = first;
    this.folder = folder;
    /** @type {Map<number, Promise<PartRow[]>>} */
    this.read = new Map();
  }

  /** @param {string} name @returns {Promise<PartRow | undefined>} */
  async row(name) {
    const number = this.first.findLastIndex((first) => first <= name);
    if (number < 0) {
      return undefined;
    }
    const read = this.read.get(number) ?? this.load(number);
    this.read.set(number, read);
    return (await read).find(([called]) => called === name);
  }

  /** @param {number} number @returns {Promise<PartRow[]>} empty if it cannot be read */
  load(number) {
    return new Promise((resolve) => {
      const script = make("script", {});
      Parts.waiting.set(number, resolve);
      script.onerror = () => {
        this.read.delete(number); // allows a retry
        resolve([]);
      };
      script.src = `${this.folder}${number}.js`;
      document.head.append(script);
    });
  }
}
/** @type {Map<number, (rows: PartRow[]) => void>} */
Parts.waiting = new Map();

class GraphPage {
  /**
   * @param {HTMLElement} place
   * @param {Data} data
   * @param {Search | null} search
   * @param {URL} root  of the site
   * @param {string} folder  of the parts
   */
  constructor(place, data, search, root, folder) {
    this.data = data;
    this.search = search;
    this.root = root;
    this.parts = new Parts(data.parts, folder);
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
      around: (id) => this.around(id),
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
    const [name, row] = await this.rowOf(id);
    const [, , , , , chunks, documents, places, description, aliases, properties] =
      this.data.nodes[number] ?? this.undrawn(name, row, gaps);
    const isDocument = gaps.some(({ kind }) => kind === "unreached");
    const hits = this.search && !isDocument ? await this.search.passages(name) : [];
    const counts = chunks ? [["Mentioned in", `${chunks} passages of ${documents} documents`]] : [];
    return {
      item: { id, name, type: this.typeOf(id, row, gaps) },
      description,
      aliases,
      facts: /** @type {[string, string][]} */ ([...counts, ...properties]),
      neighbors: this.neighbors(number, row),
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
   * The name of an id, and its data from the parts.
   *
   * @param {string} id
   * @returns {Promise<[string, PartRow | undefined]>}
   */
  async rowOf(id) {
    const name = id.startsWith(BEYOND) ? id.slice(BEYOND.length) : this.nodes[Number(id)].name;
    return [name, await this.parts.row(name)];
  }

  /**
   * @param {string} id
   * @param {PartRow | undefined} row
   * @param {{kind: string}[]} gaps
   */
  typeOf(id, row, gaps) {
    if (gaps.some(({ kind }) => kind === "unreached")) {
      return "document";
    }
    return this.nodes[id.startsWith(BEYOND) ? -1 : Number(id)]?.type ?? (row ? this.data.types[row[1]] : "name"); // prettier-ignore
  }

  /**
   * The data of an undrawn entity, in the form of a drawn one.
   *
   * @param {string} name
   * @param {PartRow | undefined} row
   * @param {{places: Place[]}[]} gaps
   * @returns {Row}
   */
  undrawn(name, row, gaps) {
    const [, type, chunks, documents, places] = row ?? [name, 0, 0, 0, gaps[0]?.places ?? []];
    return [name, type, 0, 0, 0, chunks, documents, places, "", [], []];
  }

  /**
   * @param {number} number  of a drawn node, or -1
   * @param {PartRow | undefined} row
   * @returns {import("./nodelist.js").Neighbor[]}
   */
  neighbors(number, row) {
    const near = this.edges.filter(({ source, target }) => source === number || target === number);
    const drawn = near.map(({ source, target, name, weight }) => {
      const { id, name: called, type } = this.nodes[source === number ? target : source];
      return { id, name: called, type, relation: name, forward: source === number, weight };
    });
    const further = (row?.[5] ?? []).map(([relation, forward, weight, other, type]) => {
      const { id, name, type: called } = this.nodes[other] ?? { id: BEYOND + other, name: other, type: this.data.types[type] }; // prettier-ignore
      return { id, name, type: called, relation: this.data.relations[relation], forward: Boolean(forward), weight }; // prettier-ignore
    });
    return [...drawn, ...further].sort((a, b) => b.weight - a.weight);
  }

  /**
   * The graph around an undrawn entity, with the strongest neighbours nearest.
   *
   * @param {string} id
   */
  async around(id) {
    const [name, row] = await this.rowOf(id);
    const gaps = this.gaps.filter((gap) => gap.id === id);
    if (!row && !gaps.length) {
      return null;
    }
    /** @type {Map<string, import("./canvas.js").GraphNode>} */
    const nodes = new Map();
    nodes.set(id, { id, name, type: this.typeOf(id, row, gaps), x: 0, y: 0, radius: 2 * SMALL });
    const neighbors = this.neighbors(-1, row);
    const others = [...new Map(neighbors.map((each) => [each.id, each])).values()];
    for (let ring = 1; others.length; ring += 1) {
      const placed = others.splice(0, 8 * ring);
      placed.forEach(({ id: other, name: called, type }, place) => {
        const angle = (2 * Math.PI * (place + (ring % 2) / 2)) / placed.length;
        const [x, y] = [1.4 * RING * ring * Math.cos(angle), RING * ring * Math.sin(angle)];
        const radius = this.nodes[Number(other)]?.radius ?? SMALL;
        nodes.set(other, { id: other, name: called, type, x, y, radius });
      });
    }
    const numbers = new Map([...nodes.keys()].map((key, number) => [key, number]));
    /** @type {(end: number | string) => number} */
    const numberOf = (end) => numbers.get(String(end)) ?? -1;
    const among = this.edges.filter(({ source, target }) => numberOf(source) >= 0 && numberOf(target) >= 0); // prettier-ignore
    return {
      nodes: [...nodes.values()],
      edges: [
        ...neighbors.map(({ id: other, relation, forward, weight }) => {
          const ends = forward ? [id, other] : [other, id];
          return { source: numberOf(ends[0]), target: numberOf(ends[1]), name: relation, weight };
        }),
        ...among.map(({ source, target, name: relation, weight }) => {
          return { source: numberOf(source), target: numberOf(target), name: relation, weight };
        }),
      ],
      total: this.data.total,
    };
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
    const script = /** @type {HTMLScriptElement} */ (document.currentScript);
    const page = new GraphPage(place, data, search, root, script.src.replace(/\.js$/, "/"));
    const name = new URLSearchParams(location.search).get("entity") ?? "";
    const number = page.numbers.get(name);
    if (name) {
      page.view.go(page.nodes[number ?? -1] ?? { id: BEYOND + name, name, type: "name" });
    }
  };
  /** @type {any} */ (window).kbkitGraphPart = (/** @type {number} */ number, /** @type {PartRow[]} */ rows) => Parts.waiting.get(number)?.(rows); // prettier-ignore
}
