// Draws the nodes of a graph, the most important on top, and rings around some.
import { outline } from "./marks.js";

/** @typedef {import("./canvas.js").Scene} Scene */

const MIN_SHAPED_RADIUS = 2; // pixels of a radius, below which shapes are invisible
const MIN_OUTLINED_RADIUS = 3; // outlines are slow

export class NodeLayer {
  constructor() {
    /** @type {Map<string, number[]>} the least important of each type first */
    this.types = new Map();
  }

  /** @param {import("./canvas.js").GraphNode[]} nodes */
  show(nodes) {
    this.types = new Map();
    for (let number = nodes.length - 1; number >= 0; number -= 1) {
      const { type } = nodes[number];
      const numbers = this.types.get(type) ?? [];
      numbers.push(number);
      this.types.set(type, numbers);
    }
  }

  /** @param {Scene} scene */
  paint(scene) {
    const { context, looks, shown, lit, spots, size } = scene;
    context.strokeStyle = looks.page;
    context.lineWidth = 1;
    for (const faint of lit ? [true, false] : [false]) {
      context.globalAlpha = faint ? 0.16 : 1;
      for (const [type, all] of this.types) {
        const numbers = all.filter((number) => shown.nodes[number] && spots.inside(number, size) && (!lit || lit.has(number) !== faint)); // prettier-ignore
        context.fillStyle = looks.fill(type);
        this.paintAlike(scene, type, numbers, !faint);
      }
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {Scene} scene
   * @param {string} type
   * @param {number[]} numbers
   * @param {boolean} outlined
   */
  paintAlike({ context, spots }, type, numbers, outlined) {
    const { x, y, radius } = spots;
    const [plain, edged] = [new Path2D(), new Path2D()];
    for (const number of numbers) {
      const far = radius[number];
      if (far < MIN_SHAPED_RADIUS) {
        const half = 0.886 * far; // the area of the circle
        context.fillRect(x[number] - half, y[number] - half, 2 * half, 2 * half);
      } else {
        const path = outlined && far >= MIN_OUTLINED_RADIUS ? edged : plain;
        outline(path, type, x[number], y[number], far);
      }
    }
    context.fill(plain);
    context.fill(edged);
    if (outlined) {
      context.stroke(edged);
    }
  }

  /** @param {Scene} scene */
  paintRings({ context, looks, shown, spots, size }) {
    /** @type {(number: number, colour: string, away: number, wide: number, dashes: number[]) => void} */
    const ring = (number, colour, away, wide, dashes) => {
      if (number >= 0 && shown.nodes[number] && spots.inside(number, size, 8)) {
        context.strokeStyle = colour;
        context.lineWidth = wide;
        context.setLineDash(dashes);
        context.beginPath();
        const { x, y, radius } = spots.at(number);
        context.arc(x, y, radius + away, 0, 2 * Math.PI);
        context.stroke();
      }
    };
    shown.gaps.forEach((number) => ring(number, looks.gap, 3.5, 2, [4, 3]));
    ring(shown.pointed, looks.accent, 2.5, 1.5, []);
    ring(shown.selected, looks.accent, 3.5, 3, []);
    context.setLineDash([]);
  }
}
