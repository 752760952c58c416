// Marks and wording of node types, in the picture of a graph and next to it.
import { outline, shapeOf } from "./shapes.js";
import { makeSvg } from "./elements.js";

/** Types with a colour in graph.css. */
export const COLOURS = ["symbol", "term", "setting", "error", "flag", "variable", "command", "file", "endpoint", "schema", "name", "document"]; // prettier-ignore

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
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/**
 * A node's mark, as in the picture.
 *
 * @param {string} type
 */
export function markOf(type) {
  /** @type {string[]} */
  const parts = [];
  outline(
    {
      moveTo: (/** @type {number} */ x, /** @type {number} */ y) => parts.push(`M${x} ${y}`),
      lineTo: (/** @type {number} */ x, /** @type {number} */ y) => parts.push(`L${x} ${y}`),
      arc: () => parts.push("A5 5 0 1 1 1 6 5 5 0 1 1 11 6"),
      closePath: () => parts.push("Z"),
    },
    shapeOf(type),
    6,
    6,
    5,
  );
  const path = makeSvg("path", { d: parts.join("") });
  const style = { fill: `var(--kb-graph-${colourOf(type)})` };
  const attributes = { class: "kb-graph-mark", viewBox: "0 0 12 12", "aria-hidden": "true", style };
  return makeSvg("svg", attributes, path);
}
