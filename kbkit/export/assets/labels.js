// Writes the names of nodes that fit, and the relations of one node.
import { between, drawnRadius, labelMiddle, placeLabels, shortened } from "./geometry.js";

/** @typedef {import("./canvas.js").Scene} Scene */

const MAX_LENGTH = 36;
const MIN_NAMED_RADIUS = 3.4; // pixels
const OBSTACLES = 60; // nodes that names must not cover
const LEVEL = 1.12; // ratio of scales between changes of the shown names
const MAX_NAMED_EDGES = 24;

export class LabelLayer {
  constructor() {
    /** @type {Map<string, [string, number]>} drawn names and their widths */
    this.widths = new Map();
    /** @type {Map<number, [number[], Int8Array]>} nodes and sides of their names, by scale */
    this.levels = new Map();
  }

  /** The shown nodes have changed. */
  forget() {
    this.levels.clear();
  }

  /** The font has changed. */
  forgetFont() {
    this.widths.clear();
    this.levels.clear();
  }

  /** @param {Scene} scene */
  paint(scene) {
    const { context, looks, nodes, lit, focus, size, spots } = scene;
    context.font = `12px ${looks.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const [numbers, sides] = this.placed(scene);
    numbers.forEach((number, i) => {
      if (sides[i] >= 0 && spots.inside(number, size, 100)) {
        const [text, width] = this.measured(context, nodes[number].name, lit !== null && number === focus); // prettier-ignore
        write(scene, text, labelMiddle({ ...spots.at(number), width }, sides[i]));
      }
    });
  }

  /**
   * The named nodes and the sides of their names. They depend only on the scale, so that names stay
   * in place while the picture moves, and mostly while it is zoomed.
   *
   * @param {Scene} scene
   * @returns {[number[], Int8Array]}
   */
  placed({ context, camera, nodes, shown, lit, focus }) {
    const level = Math.floor(Math.log(camera.scale) / Math.log(LEVEL));
    const cached = this.levels.get(level);
    if (cached) {
      return cached;
    }
    const scale = LEVEL ** level; // the smallest of these, where there is the least room
    const numbers = [...(lit ?? nodes.keys())].filter((number) => shown.nodes[number] && (lit || drawnRadius(nodes[number].radius, scale) >= MIN_NAMED_RADIUS)); // prettier-ignore
    numbers.sort((a, b) => Number(b === focus) - Number(a === focus) || a - b);
    const places = numbers.map((number) => {
      const { name, x, y, radius } = nodes[number];
      const width = this.measured(context, name, lit !== null && number === focus)[1];
      return { x: x * scale, y: y * scale, radius: drawnRadius(radius, scale), width };
    });
    /** @type {[number[], Int8Array]} */
    const placed = [numbers, placeLabels(places, lit ? 1 : OBSTACLES)];
    this.levels.set(level, placed);
    return placed;
  }

  /**
   * A drawn name and its width.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {string} name
   * @param {boolean} whole
   * @returns {[string, number]}
   */
  measured(context, name, whole) {
    const key = `${whole} ${name}`;
    let cached = this.widths.get(key);
    if (!cached) {
      const text = shortened(name, whole ? 2 * MAX_LENGTH : MAX_LENGTH);
      cached = [text, context.measureText(text).width];
      this.widths.set(key, cached);
    }
    return cached;
  }

  /**
   * Write the relations of the focused node, if they are legible.
   *
   * @param {Scene} scene
   * @param {number[]} bright  numbers of its relations
   */
  paintRelations(scene, bright) {
    const { context, looks, edges, spots, focus } = scene;
    if (focus < 0 || bright.length > MAX_NAMED_EDGES) {
      return;
    }
    context.font = `10px ${looks.font}`;
    context.globalAlpha = 0.8;
    const named = new Set();
    for (const number of bright) {
      const { source, target, name } = edges[number];
      const other = source === focus ? target : source;
      if (named.has(other)) {
        continue; // its strongest relation is named
      }
      named.add(other);
      const line = between(spots.at(source), spots.at(target));
      const text = name.replaceAll("_", " ");
      if (line && Math.hypot(line[2] - line[0], line[3] - line[1]) > 6 * text.length + 24) {
        write(scene, text, { x: (line[0] + line[2]) / 2, y: (line[1] + line[3]) / 2 });
      }
    }
    context.globalAlpha = 1;
  }
}

/**
 * @param {Scene} scene
 * @param {string} text
 * @param {{x: number, y: number}} middle
 */
function write({ context, looks }, text, { x, y }) {
  context.strokeStyle = looks.page;
  context.lineWidth = 3.5;
  context.strokeText(text, x, y);
  context.fillStyle = looks.text;
  context.fillText(text, x, y);
}
