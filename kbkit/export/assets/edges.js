// Draws the relations of a graph: one path per opacity.
import { between } from "./geometry.js";

/** @typedef {import("./canvas.js").Scene} Scene */

const STEPS = 4; // of opacity
const ARROWS_FROM = 0.9; // scale
const MAX_MOVED = 1_500; // edges of a moving picture, the strongest

export class EdgeLayer {
  constructor() {
    this.sources = new Int32Array();
    this.targets = new Int32Array();
    this.steps = new Uint8Array();
    /** @type {number[]} edges of the node that is looked at, as painted last */
    this.bright = [];
  }

  /** @param {import("./canvas.js").GraphEdge[]} edges */
  show(edges) {
    this.sources = Int32Array.from(edges, ({ source }) => source);
    this.targets = Int32Array.from(edges, ({ target }) => target);
    this.steps = Uint8Array.from(edges, ({ weight }) => Math.min(Math.floor(weight * STEPS), STEPS - 1)); // prettier-ignore
  }

  /** @param {Scene} scene */
  paint(scene) {
    const { context, camera, looks, lit, focus, moving } = scene;
    const { bright, steps } = this.seen(scene);
    const fade = lit && focus >= 0 ? 0.25 : 1;
    context.lineWidth = Math.min(Math.max(camera.scale ** 0.5, 0.5), 1.4);
    let room = moving ? MAX_MOVED : Infinity;
    for (let step = STEPS - 1; step >= 0; step -= 1) {
      const numbers = steps[step].slice(0, room);
      room -= numbers.length;
      context.globalAlpha = opacity(step) * fade;
      context.strokeStyle = looks.line;
      this.stroke(scene, numbers);
      if (camera.scale >= ARROWS_FROM && fade === 1) {
        this.paintArrows(scene, numbers, looks.line);
      }
    }
    context.globalAlpha = 0.9;
    context.strokeStyle = looks.accent;
    context.lineWidth = 1.5;
    this.stroke(scene, bright);
    this.paintArrows(scene, bright, looks.accent);
    context.globalAlpha = 1;
    this.bright = bright;
  }

  /**
   * The visible edges: those of the focused node, and others by opacity.
   *
   * @param {Scene} scene
   */
  seen({ shown, lit, focus, spots, size: { width, height } }) {
    const steps = Array.from({ length: STEPS }, () => /** @type {number[]} */ ([]));
    /** @type {number[]} */
    const bright = [];
    const chosen = focus < 0 ? lit : null;
    const { sources, targets } = this;
    const { x, y } = spots;
    for (let number = 0; number < sources.length; number += 1) {
      const a = sources[number];
      const b = targets[number];
      if (!shown.edges[number] || !shown.nodes[a] || !shown.nodes[b]) {
        continue;
      }
      const isOutside =
        (x[a] < 0 && x[b] < 0) ||
        (y[a] < 0 && y[b] < 0) ||
        (x[a] > width && x[b] > width) ||
        (y[a] > height && y[b] > height);
      if (isOutside) {
        continue;
      }
      if (focus >= 0 && (a === focus || b === focus)) {
        bright.push(number);
      } else if (!chosen || (chosen.has(a) && chosen.has(b))) {
        steps[this.steps[number]].push(number);
      }
    }
    return { bright, steps };
  }

  /**
   * @param {Scene} scene
   * @param {number[]} numbers
   */
  stroke({ context, spots: { x, y } }, numbers) {
    const { sources, targets } = this;
    context.beginPath();
    for (const number of numbers) {
      context.moveTo(x[sources[number]], y[sources[number]]);
      context.lineTo(x[targets[number]], y[targets[number]]);
    }
    context.stroke();
  }

  /**
   * @param {Scene} scene
   * @param {number[]} numbers
   * @param {string} colour
   */
  paintArrows({ context, spots }, numbers, colour) {
    context.fillStyle = colour;
    context.beginPath();
    for (const number of numbers) {
      const line = between(spots.at(this.sources[number]), spots.at(this.targets[number]));
      if (line && Math.hypot(line[2] - line[0], line[3] - line[1]) > 12) {
        const angle = Math.atan2(line[3] - line[1], line[2] - line[0]);
        context.moveTo(line[2], line[3]);
        for (const side of [-0.42, 0.42]) {
          context.lineTo(
            line[2] - 8 * Math.cos(angle + side),
            line[3] - 8 * Math.sin(angle + side),
          );
        }
        context.closePath();
      }
    }
    context.fill();
  }
}

/** @param {number} step */
function opacity(step) {
  return 0.16 + (0.5 * step) / STEPS;
}
