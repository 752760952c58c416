// Messages for the search box of Material for MkDocs. Its worker sends numbered messages; the parts
// of a hit are inserted into the page as HTML.

/** Numbers of the messages. */
export const QUERY = 2;
export const RESULT = 3;

/** @typedef {import("./engine.js").Hit} Hit */

/**
 * A place of a page in a list of results.
 *
 * @typedef {object} Item
 * @property {string} location  relative to the site's root
 * @property {string} title  HTML
 * @property {string} text  HTML
 * @property {number} score
 * @property {Record<string, boolean>} terms  words to highlight on the page
 * @property {string[]} [tags]  HTML
 */

/**
 * The answer to a query: a group of places for each page, the best page first.
 *
 * @param {string} query
 * @param {Hit[]} hits
 * @param {boolean} several  whether the site has several knowledge bases
 */
export function result(query, hits, several) {
  /** @type {Map<string, Hit[]>} */
  const pages = new Map();
  for (const hit of hits) pages.set(hit.page, [...(pages.get(hit.page) ?? []), hit]);
  const items = [...pages.values()].map((found) => group(found, several));
  return { items, suggest: suggestions(query, hits) };
}

/**
 * The places of one page. Material requires the page itself among them, shows those with the best
 * score, and folds the others.
 *
 * @param {Hit[]} hits
 * @param {boolean} several
 * @returns {Item[]}
 */
function group(hits, several) {
  /** @type {Map<string, Hit>} */
  const places = new Map();
  for (const hit of hits) if (!places.has(hit.place)) places.set(hit.place, hit);
  const items = [...places.values()].map(item);
  let page = items[[...places.keys()].indexOf(hits[0].page)];
  if (!page) {
    page = { ...item(hits[0]), location: hits[0].page, text: "", score: 0 };
    items.push(page);
  }
  page.title = html(hits[0].titleParts);
  if (several) page.tags = [escaped(hits[0].kbTitle)];
  return items;
}

/**
 * @param {Hit} hit
 * @returns {Item}
 */
function item(hit) {
  const words = [hit.snippet, hit.headingParts, hit.titleParts].flatMap(markedWords);
  return {
    location: hit.url,
    title: html(hit.heading ? hit.headingParts : hit.titleParts),
    text: html(hit.snippet),
    score: hit.score,
    terms: Object.fromEntries(words.map((word) => [word.toLowerCase(), true])),
  };
}

/**
 * A word of the hits that completes the query.
 *
 * @param {string} query
 * @param {Hit[]} hits
 */
function suggestions(query, hits) {
  const typed = /[\p{L}\p{N}_]{2,}$/u.exec(query)?.[0];
  if (!typed) return [];
  const lower = typed.toLowerCase();
  for (const { title, heading } of hits) {
    for (const [word] of `${title} ${heading}`.matchAll(/[\p{L}\p{N}_]+/gu)) {
      if (word.length > typed.length && word.toLowerCase().startsWith(lower)) {
        return [typed + word.slice(typed.length)];
      }
    }
  }
  return [];
}

/** @param {string[]} parts */
function markedWords(parts) {
  return parts.filter((_, i) => i % 2);
}

/**
 * Parts of a text, every second of them marked, as HTML.
 *
 * @param {string[]} parts
 */
function html(parts) {
  return parts.map((part, i) => (i % 2 ? `<mark>${escaped(part)}</mark>` : escaped(part))).join("");
}

/** @param {string} text */
function escaped(text) {
  /** @type {Record<string, string>} */
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (mark) => names[mark]);
}
