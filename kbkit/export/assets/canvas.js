// Draws a graph on a canvas; `graph.js` adds the list and controls.
import { EdgeLayer } from "./edges.js";
import { Spots, drawnRadius, fit, nearest } from "./geometry.js";
import { LabelLayer } from "./labels.js";
import { NodeLayer } from "./nodes.js";
import { Viewport } from "./viewport.js";

/**
 * @typedef {object} GraphNode
 * @property {string} id
 * @property {string} name
 * @property {string} type
 * @property {number} x
 * @property {number} y
 * @property {number} radius
 * @typedef {object} GraphEdge
 * @property {number} source  number of a node
 * @property {number} target
 * @property {string} name
 * @property {number} weight  above 0 to 1
 * @typedef {object} Looks  CSS colours
 * @property {string} page
 * @property {string} text
 * @property {string} line
 * @property {string} accent
 * @property {string} gap
 * @property {(type: string) => string} fill
 * @property {string} font
 * @typedef {object} Shown  the drawn parts and their state
 * @property {Uint8Array} nodes  1 for each that is drawn
 * @property {Uint8Array} edges
 * @property {number} selected  number of a node, or -1
 * @property {number} pointed
 * @property {Set<number> | null} marked  nodes that are not faint; null for all
 * @property {Set<number>} gaps
 * @typedef {object} Scene  input of a drawing
 * @property {CanvasRenderingContext2D} context
 * @property {import("./geometry.js").Camera} camera
 * @property {import("./geometry.js").Size} size
 * @property {import("./geometry.js").Spots} spots  of the nodes, in pixels
 * @property {GraphNode[]} nodes
 * @property {GraphEdge[]} edges
 * @property {Shown} shown
 * @property {Looks} looks
 * @property {number} focus  pointed or selected node, or -1
 * @property {Set<number> | null} lit  nodes that are not faint; null for all
 * @property {boolean} moving
 */

export class GraphCanvas {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {object} handlers
   * @param {(node: number) => void} handlers.onSelect  -1 without a node
   * @param {(node: number) => void} handlers.onPoint
   * @param {AbortSignal} handlers.signal  ends it
   */
  constructor(canvas, { onSelect, onPoint, signal }) {
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.view = new Viewport(canvas, {
      paint: () => this.paint(),
      overview: () => this.overview(),
      point: (x, y) => onPoint(this.at(x, y)),
      unpoint: () => onPoint(-1),
      press: (x, y, coarse) => onSelect(this.at(x, y, coarse ? 12 : 4)),
      escape: () => onSelect(-1),
      signal,
    });
    this.edgeLayer = new EdgeLayer();
    this.nodeLayer = new NodeLayer();
    this.labelLayer = new LabelLayer();
    /** @type {GraphNode[]} */
    this.nodes = [];
    /** @type {GraphEdge[]} */
    this.edges = [];
    /** @type {Set<number>[]} */
    this.near = [];
    this.spots = new Spots([]);
    /** @type {Shown} */
    this.shown = {
      nodes: new Uint8Array(),
      edges: new Uint8Array(),
      selected: -1,
      pointed: -1,
      marked: null,
      gaps: new Set(),
    };
    /** @type {Set<number> | null} */
    this.lit = null;
    /** @type {Looks} */
    this.looks = { page: "#fff", text: "#000", line: "#888", accent: "#06c", gap: "#c30", fill: () => "#888", font: "sans-serif" }; // prettier-ignore
  }

  /**
   * @param {GraphNode[]} nodes  the most important first
   * @param {GraphEdge[]} edges
   */
  show(nodes, edges) {
    const before = new Map(this.nodes.map((node) => [node.id, node]));
    const stayed = nodes.filter(({ id, x, y }) => before.get(id)?.x === x && before.get(id)?.y === y); // prettier-ignore
    this.nodes = nodes;
    this.edges = edges;
    this.near = nodes.map(() => new Set());
    edges.forEach(({ source, target }) => {
      this.near[source].add(target);
      this.near[target].add(source);
    });
    this.spots = new Spots(nodes);
    this.nodeLayer.show(nodes);
    this.edgeLayer.show(edges);
    this.change({
      nodes: new Uint8Array(nodes.length).fill(1),
      edges: new Uint8Array(edges.length).fill(1),
      selected: -1,
      pointed: -1,
      marked: null,
      gaps: new Set(),
    });
    if (2 * stayed.length <= Math.max(nodes.length, before.size)) {
      this.view.fitAll(false);
    }
  }

  /** @param {Partial<Shown>} shown */
  change(shown) {
    const { lit, focus } = this;
    this.shown = { ...this.shown, ...shown };
    const { marked } = this.shown;
    this.lit = this.focus >= 0 ? new Set([this.focus, ...this.near[this.focus]]) : marked;
    if (shown.nodes || this.focus !== focus || this.lit !== lit) {
      this.labelLayer.forget();
    }
    this.view.draw();
  }

  /** The pointed or selected node, or -1. */
  get focus() {
    return this.shown.pointed >= 0 ? this.shown.pointed : this.shown.selected;
  }

  /** @param {Looks} looks */
  paintWith(looks) {
    this.looks = looks;
    this.labelLayer.forgetFont();
    this.view.draw();
  }

  /** @returns {import("./geometry.js").Camera} that sees all */
  overview() {
    const seen = this.nodes.filter((_, number) => this.shown.nodes[number]);
    return fit(seen, this.view.size, 28);
  }

  /**
   * Move the camera to a node and its neighbours, unless they are in view.
   *
   * @param {number} number
   */
  reveal(number) {
    const { x, y } = this.nodes[number];
    const numbers = [number, ...this.near[number]].filter((each) => this.shown.nodes[each]);
    const circles = numbers.map((each) => this.nodes[each]);
    let wanted = fit(circles, this.view.size, 70, 1.2);
    if (wanted.scale < 0.35) {
      wanted = { x, y, scale: 0.35 }; // some are far away
    }
    const [px, py] = this.view.pixel(x, y);
    const { width, height } = this.view.size;
    const inside = px > 40 && py > 40 && px < width - 40 && py < height - 40;
    const { scale } = this.view.camera;
    if (!inside || scale < wanted.scale / 1.5 || scale > wanted.scale * 2.5) {
      this.view.moveTo(wanted, true);
    }
  }

  /**
   * The node at a place of the picture, or -1.
   *
   * @param {number} x  in pixels
   * @param {number} y
   * @param {number} [slack]  tolerated distance of the pointer, in pixels
   */
  at(x, y, slack = 4) {
    const { shown } = this;
    const { camera, size } = this.view;
    const { scale } = camera;
    const [wx, wy] = [
      (x - size.width / 2) / scale + camera.x,
      (y - size.height / 2) / scale + camera.y,
    ];
    /** @param {number} number */
    const reach = (number) =>
      shown.nodes[number] ? (drawnRadius(this.nodes[number].radius, scale) + slack) / scale : -1;
    return nearest(this.nodes, wx, wy, reach);
  }

  paint() {
    const { context } = this;
    const { canvas, camera, moving, size } = this.view;
    if (!size.width) {
      return;
    }
    const ratio = canvas.width / size.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    const { nodes, edges, shown, looks, lit, focus } = this;
    const spots = this.spots.seen(camera, size);
    const scene = {
      context,
      camera,
      size,
      spots,
      nodes,
      edges,
      shown,
      looks,
      lit,
      focus,
      moving: moving > 0,
    };
    this.edgeLayer.paint(scene);
    this.nodeLayer.paint(scene);
    this.nodeLayer.paintRings(scene);
    this.labelLayer.paint(scene);
    this.labelLayer.paintRelations(scene, this.edgeLayer.bright);
  }
}
