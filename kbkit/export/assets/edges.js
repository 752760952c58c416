// Draws the relations of a graph: one path per opacity, or an image while many edges move.
import { Spots, between } from "./geometry.js";

/** @typedef {import("./canvas.js").Scene} Scene */

const STEPS = 4; // of opacity
const ARROWS_FROM = 0.9; // scale
const MOST_MOVED = 800; // edges to redraw for each frame
const PIXELS = 3e6; // of the image: more than the canvas has, for zooming

class EdgeLayer {
  constructor() {
    this.sources = new Int32Array();
    this.targets = new Int32Array();
    this.steps = new Uint8Array();
    /** @type {number[]} edges of the node that is looked at, as painted last */
    this.bright = [];
    /** @type {{canvas: HTMLCanvasElement, left: number, top: number, scale: number} | null} */
    this.image = null;
  }

  /** @param {import("./canvas.js").GraphEdge[]} edges */
  show(edges) {
    this.sources = Int32Array.from(edges, ({ source }) => source);
    this.targets = Int32Array.from(edges, ({ target }) => target);
    this.steps = Uint8Array.from(edges, ({ weight }) => Math.min(Math.floor(weight * STEPS), STEPS - 1)); // prettier-ignore
    this.image = null;
  }

  /** The shown edges or colours have changed. */
  forget() {
    this.image = null;
  }

  /**
   * @param {Scene} scene
   * @param {boolean} moving  whether it is drawn again at once
   */
  paint(scene, moving) {
    const { context, camera, looks, lit, focus } = scene;
    const { bright, steps } = this.seen(scene);
    const fade = lit && focus >= 0 ? 0.25 : 1;
    const count = steps.reduce((sum, { length }) => sum + length, 0);
    if (moving && count > MOST_MOVED) {
      this.paintImage(scene, fade);
    } else {
      this.strokeAll(scene, steps, fade);
      if (camera.scale >= ARROWS_FROM && fade === 1) {
        steps.forEach((numbers, step) => {
          context.globalAlpha = opacity(step);
          this.paintArrows(scene, numbers, looks.line);
        });
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
      const beside =
        (x[a] < 0 && x[b] < 0) ||
        (y[a] < 0 && y[b] < 0) ||
        (x[a] > width && x[b] > width) ||
        (y[a] > height && y[b] > height);
      if (beside) {
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
   * @param {number[][]} steps
   * @param {number} fade
   */
  strokeAll(scene, steps, fade) {
    const { context, camera, looks } = scene;
    context.strokeStyle = looks.line;
    context.lineWidth = Math.min(Math.max(camera.scale ** 0.5, 0.5), 1.4);
    steps.forEach((numbers, step) => {
      context.globalAlpha = opacity(step) * fade;
      this.stroke(scene, numbers);
    });
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

  /**
   * @param {Scene} scene
   * @param {number} fade
   */
  paintImage(scene, fade) {
    const { context, camera, size } = scene;
    this.image ??= this.drawn(scene);
    const { canvas, left, top, scale } = this.image;
    const times = camera.scale / scale;
    context.globalAlpha = fade;
    context.drawImage(
      canvas,
      (left - camera.x) * camera.scale + size.width / 2,
      (top - camera.y) * camera.scale + size.height / 2,
      canvas.width * times,
      canvas.height * times,
    );
  }

  /**
   * Draw all edges into an image.
   *
   * @param {Scene} scene
   */
  drawn(scene) {
    const all = new Spots(scene.nodes);
    const [left, top] = [all.x, all.y].map((each) => each.reduce((a, b) => Math.min(a, b)));
    const [right, bottom] = [all.x, all.y].map((each) => each.reduce((a, b) => Math.max(a, b)));
    const [width, height] = [right - left + 2, bottom - top + 2];
    const scale = (PIXELS / (width * height)) ** 0.5;
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    const size = { width: canvas.width, height: canvas.height };
    const camera = { x: left - 1 + size.width / scale / 2, y: top - 1 + size.height / scale / 2, scale }; // prettier-ignore
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const lit = scene.focus < 0 ? scene.lit : null; // edges of the focus are drawn over it
    const whole = { ...scene, context, camera, size, spots: all.seen(camera, size), lit, focus: -1 }; // prettier-ignore
    this.strokeAll(whole, this.seen(whole).steps, 1);
    return { canvas, left: left - 1, top: top - 1, scale };
  }
}

/** @param {number} step */
function opacity(step) {
  return 0.16 + (0.5 * step) / STEPS;
}

export { EdgeLayer };
