// The page of a knowledge base's graph: shows the site's data, and passages about the selected
// node, found by the site's search.

import { GraphView } from "./graph.js";
import { make } from "./elements.js";
import { SearchClient } from "./searchclient.js";

const PASSAGES = 5;
const FOUND = 20; // names beyond the picture that a search lists
const BEYOND = "name:"; // starts ids of undrawn entities
const RING = 90; // pixels between rings of neighbours
const SMALL = 5; // radius of undrawn entities
const AROUND = 60; // most neighbours of an undrawn entity in its picture

/**
 * @typedef {[number, string, number]} Place  document, anchor, whether it defines it
 * @typedef {[string, number, number, number, number, number, number, Place[], string, string[], [string, string][]]} Row
 * @typedef {[number, number, number, number, number]} Edge  ends, relation, weight, whether drawn
 * @typedef {object} Data  see kbkit/export/pages/home_page.py
 * @property {number} total
 * @property {string[]} types
 * @property {string[]} relations
 * @property {[string, string][]} documents  titles, and addresses from the site's root
 * @property {Row[]} nodes
 * @property {Edge[]} edges
 * @property {[string, string, string, Place[]][]} gaps
 * @property {boolean} further  whether there are relations outside the picture
 * @typedef {{name: string, url: string, note?: string, text?: string}} Linked
 */

class EntitySearch extends SearchClient {
  /**
   * @param {string} address  of the worker
   * @param {string} kb
   */
  constructor(address, kb) {
    super(address);
    this.kb = kb;
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

class GraphPage {
  /**
   * @param {HTMLElement} place
   * @param {Data} data
   * @param {EntitySearch | null} search
   * @param {URL} root  of the site
   * @param {string} address  of the script with nodes and relations outside the picture
   */
  constructor(place, data, search, root, address) {
    this.data = data;
    this.search = search;
    this.root = root;
    this.address = address;
    /** @type {Promise<void> | null} */
    this.loading = null;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {import("./canvas.js").GraphNode[]} */
    this.nodes = [];
    /** @type {(import("./canvas.js").GraphEdge & {drawn: number})[]} */
    this.edges = [];
    /** @type {Map<string, number>} */
    this.numbers = new Map();
    this.add(data.nodes, data.edges);
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
      nodes: this.nodes.slice(),
      edges: this.edges.filter(({ drawn }) => drawn),
      total: data.total,
    });
    view.showGaps(this.gaps);
    this.view = view;
  }

  /**
   * @param {Row[]} rows
   * @param {Edge[]} edges
   */
  add(rows, edges) {
    const { types, relations, nodes: pictured } = this.data;
    for (const row of rows) {
      const [name, type, x, y, radius] = row;
      const number = this.rows.push(row) - 1;
      const id = number < pictured.length ? String(number) : BEYOND + name;
      this.nodes.push({ id, name, type: types[type], x, y, radius });
      this.numbers.set(name, number);
    }
    for (const [source, target, relation, weight, drawn] of edges) {
      this.edges.push({ source, target, name: relations[relation], weight, drawn });
    }
  }

  /** Loads the nodes and relations outside the picture, once. */
  load() {
    if (!this.data.further) {
      return Promise.resolve();
    }
    /** @type {any} */ (window).kbkitFurther = (/** @type {Data} */ { nodes, edges }) =>
      this.add(nodes, edges);
    this.loading ??= new Promise((resolve) => {
      const script = make("script", {});
      script.onload = () => resolve();
      script.onerror = () => {
        this.loading = null; // allows a retry
        resolve();
      };
      script.src = this.address;
      document.head.append(script);
    });
    return this.loading;
  }

  /** The number of an id's node; -1 for none. @param {string} id */
  numberOf(id) {
    return id.startsWith(BEYOND) ? (this.numbers.get(id.slice(BEYOND.length)) ?? -1) : Number(id);
  }

  /** @param {string} id */
  async details(id) {
    await this.load();
    const number = this.numberOf(id);
    const gaps = this.gaps.filter((gap) => gap.id === id);
    const [name, , , , , chunks, documents, places, description, aliases, properties] =
      this.rows[number] ?? this.unknown(id, gaps);
    const isDocument = gaps.some(({ kind }) => kind === "unreached");
    const hits = this.search && !isDocument ? await this.search.passages(name) : [];
    const counts = chunks ? [["Mentioned in", `${chunks} passages of ${documents} documents`]] : [];
    return {
      item: { id, name, type: this.typeOf(number, gaps) },
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
   * @param {number} number
   * @param {{kind: string}[]} gaps
   */
  typeOf(number, gaps) {
    const isDocument = gaps.some(({ kind }) => kind === "unreached");
    return isDocument ? "document" : (this.nodes[number]?.type ?? "name");
  }

  /**
   * A row for an id without a node.
   *
   * @param {string} id
   * @param {{places: Place[]}[]} gaps
   * @returns {Row}
   */
  unknown(id, gaps) {
    return [id.slice(BEYOND.length), 0, 0, 0, 0, 0, 0, gaps[0]?.places ?? [], "", [], []];
  }

  /**
   * @param {number} number  of a node, or -1
   * @returns {import("./nodelist.js").Neighbor[]}
   */
  neighbors(number) {
    const near = this.edges.filter(({ source, target }) => source === number || target === number);
    const listed = near.map(({ source, target, name, weight }) => {
      const { id, name: called, type } = this.nodes[source === number ? target : source];
      return { id, name: called, type, relation: name, forward: source === number, weight };
    });
    return listed.sort((a, b) => b.weight - a.weight);
  }

  /**
   * The graph around an undrawn entity, with the strongest neighbours nearest.
   *
   * @param {string} id
   */
  async around(id) {
    await this.load();
    const number = this.numberOf(id);
    const gaps = this.gaps.filter((gap) => gap.id === id);
    if (number < 0 && !gaps.length) {
      return null;
    }
    const name = id.slice(BEYOND.length);
    const centre = { id, name, type: this.typeOf(number, gaps), x: 0, y: 0, radius: 2 * SMALL };
    const nodes = new Map([[id, centre]]);
    const neighbors = this.neighbors(number);
    const others = [...new Map(neighbors.map((each) => [each.id, each])).values()];
    others.splice(AROUND);
    for (let ring = 1; others.length; ring += 1) {
      const placed = others.splice(0, 8 * ring);
      placed.forEach(({ id: other, name: called, type }, place) => {
        const angle = (2 * Math.PI * (place + (ring % 2) / 2)) / placed.length;
        const [x, y] = [1.4 * RING * ring * Math.cos(angle), RING * ring * Math.sin(angle)];
        const radius = this.nodes[this.numberOf(other)].radius || SMALL;
        nodes.set(other, { id: other, name: called, type, x, y, radius });
      });
    }
    const places = new Map([...nodes.keys()].map((key, place) => [this.numberOf(key), place]));
    return {
      nodes: [...nodes.values()],
      edges: this.edges.flatMap(({ source, target, name: relation, weight }) => {
        const [from, to] = [places.get(source), places.get(target)];
        const isInside = from !== undefined && to !== undefined;
        return isInside ? [{ source: from, target: to, name: relation, weight }] : [];
      }),
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
      .filter(
        (/** @type {string} */ name) =>
          !((this.numbers.get(name) ?? Infinity) < this.data.nodes.length),
      )
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
    const search = kb ? new EntitySearch(config.search, kb) : null;
    const script = /** @type {HTMLScriptElement} */ (document.currentScript);
    const page = new GraphPage(
      place,
      data,
      search,
      root,
      script.src.replace(/\.js$/, "/further.js"),
    );
    const name = new URLSearchParams(location.search).get("entity") ?? "";
    const number = page.numbers.get(name);
    if (name) {
      page.view.go(page.nodes[number ?? -1] ?? { id: BEYOND + name, name, type: "name" });
    }
  };
}
