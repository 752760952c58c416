// Marks of node types, in the picture of a graph and next to it: a colour and a shape.
import { make } from "./elements.js";

/** Types with a colour in graph.css. */
export const COLOURS = ["symbol", "term", "setting", "error", "flag", "variable", "command", "file", "endpoint", "schema", "name", "document"]; // prettier-ignore

const SQUARE = [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]]; // prettier-ignore
const DIAMOND = [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]]; // prettier-ignore
const TRIANGLE = [[0, -1.2], [1.04, 0.6], [-1.04, 0.6]]; // prettier-ignore
const HEXAGON = [[1.08, 0], [0.54, 0.94], [-0.54, 0.94], [-1.08, 0], [-0.54, -0.94], [0.54, -0.94]]; // prettier-ignore

/** Corners of types that are no circles, in units of their radius. @type {Record<string, number[][]>} */
const CORNERS = { document: SQUARE, error: DIAMOND, flag: TRIANGLE, setting: HEXAGON, variable: HEXAGON, command: TRIANGLE, file: SQUARE, endpoint: DIAMOND, schema: SQUARE }; // prettier-ignore

/** @param {string} type */
export function colourOf(type) {
  return COLOURS.includes(type) ? type : "other";
}

/** @param {string} name */
export function spoken(name) {
  return name.replaceAll("_", " ");
}

/**
 * @param {number} count
 * @param {string} one
 */
export function counted(count, one) {
  return `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
}

/**
 * Add a node's outline to a path.
 *
 * @param {{moveTo: Function, lineTo: Function, arc: Function, closePath: Function}} path
 * @param {string} type
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function outline(path, type, x, y, radius) {
  if (!Object.hasOwn(CORNERS, type)) {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  CORNERS[type].forEach(([right, down], corner) => {
    const at = [x + right * radius, y + down * radius];
    corner ? path.lineTo(...at) : path.moveTo(...at);
  });
  path.closePath();
}

/**
 * A node's mark, as in the picture.
 *
 * @param {string} type
 */
export function markOf(type) {
  const percent = (/** @type {number} */ part) => `${50 + part * 41}%`;
  const corners = Object.hasOwn(CORNERS, type) && CORNERS[type].map((at) => at.map(percent).join(" ")); // prettier-ignore
  const style = {
    background: `var(--kb-graph-${colourOf(type)})`,
    clipPath: corners ? `polygon(${corners.join()})` : "circle(41%)",
  };
  return make("span", { class: "kb-graph-mark", "aria-hidden": "true", style });
}
