// Plots of differences, query by query.
import { make, makeSvg } from "../../export/assets/elements.js";

const WIDEST = 28; // pixels of a column, so that few queries look like bars

/** @param {number} value */
export const signed = (value, digits = 2) => (value > 0 ? "+" : "") + value.toFixed(digits);

/**
 * Wins up, losses down, one column a query.
 *
 * @param {[string, number, number][]} queries  each with nDCG@10 of A and of B
 * @param {Element} cursor  marks one of them
 */
export function bars(queries, cursor) {
  const most = Math.max(0.05, ...queries.map(([, a, b]) => Math.abs(b - a)));
  const columns = queries.map(([, a, b], i) => {
    const height = (b - a) / most;
    return makeSvg("rect", {
      class: height > 0 ? "kbkit-eval-win" : height < 0 ? "kbkit-eval-loss" : "kbkit-eval-same",
      x: i + 0.1,
      y: height > 0 ? -height : height < 0 ? 0 : -0.015,
      width: 0.8,
      height: Math.abs(height) || 0.03,
    });
  });
  const svg = makeSvg("svg", { viewBox: `0 -1.1 ${queries.length} 2.2`, "aria-hidden": "true" });
  svg.setAttribute("preserveAspectRatio", "none");
  svg.style.maxWidth = `${queries.length * WIDEST}px`;
  svg.append(cursor, ...columns);
  /** @type {(text: string, place: string) => HTMLElement} */
  const label = (text, place) => make("span", { class: `kbkit-eval-${place}` }, text);
  const box = document.createDocumentFragment();
  box.append(svg, label(signed(most), "high"), label(signed(-most), "low"));
  return box;
}

/**
 * How many queries differ by how much, and their mean.
 *
 * @param {number[]} bins
 * @param {number} mean
 */
export function spread(bins, mean) {
  const most = Math.max(...bins, 1);
  const middle = (bins.length - 1) / 2;
  const columns = bins.map((count, i) =>
    makeSvg("rect", {
      class: i > middle ? "kbkit-eval-win" : i < middle ? "kbkit-eval-loss" : "kbkit-eval-same",
      x: i + 0.1,
      y: 1 - count / most,
      width: 0.8,
      height: count / most,
    }),
  );
  const label = `Differences of nDCG@10: mean ${signed(mean, 3)}`;
  const svg = makeSvg("svg", { viewBox: `0 0 ${bins.length} 1`, role: "img", "aria-label": label });
  svg.setAttribute("preserveAspectRatio", "none");
  svg.append(...columns);
  const ends = ["−1", "0", "+1"].map((text) => make("span", {}, text));
  return [svg, make("div", { class: "kbkit-eval-axis" }, ends), make("figcaption", {}, label)];
}
