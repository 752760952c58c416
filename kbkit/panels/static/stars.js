// Stars to rate with, and the meaning of each score.
import { make, makeButton } from "../../export/assets/elements.js";

export const GRADES = ["not useful", "slightly useful", "useful", "very useful", "the answer"];

/**
 * A group of buttons for the scores 1 to 5.
 *
 * @param {(score: number) => void} rate
 */
export function makeStars(rate) {
  const stars = GRADES.map((meaning, i) => {
    const label = `${i + 1} ${i === 0 ? "star" : "stars"}, ${meaning}`;
    const attributes = { class: "kbkit-star", title: label, "aria-label": label };
    return makeButton("", () => rate(i + 1), attributes);
  });
  const group = make("span", { class: "kbkit-stars", role: "group", "aria-label": "Rate" }, stars);
  return { stars, group };
}

/**
 * Show a rating.
 *
 * @param {HTMLButtonElement[]} stars
 * @param {number} score  0 for none
 */
export function showStars(stars, score) {
  stars.forEach((star, i) => {
    star.classList.toggle("kbkit-on", i < score);
    star.setAttribute("aria-pressed", String(i + 1 === score));
  });
}
