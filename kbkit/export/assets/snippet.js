// The part of a chunk with the most query terms, as in kbkit/retrieval/context.py. Texts of an
// index are already plain.

const BEGINNING = 3; // letters of a term that its words contain
const LENGTH = 240;
const END = 48; // characters of a start or end
const SIGNS = /^[-@#$._]+/;
const WORDS = /([\p{L}\p{N}_]+)/u;
const CORE = /^([^\p{L}\p{N}_]*)(.*?)([^\p{L}\p{N}_]*)$/su; // a word without marks around it

/** Finds the query terms of each word. */
export class Matches {
  /** @type {Map<string, string[]>} */
  #cached = new Map();
  #terms;
  #analyzer;

  /**
   * @param {Iterable<string>} terms
   * @param {{terms: (text: string) => string[]}} analyzer
   */
  constructor(terms, analyzer) {
    this.#terms = new Set(terms);
    this.#analyzer = analyzer;
    const beginnings = [...this.#terms].map((term) => {
      const letters = [...term.replace(SIGNS, "")].slice(0, BEGINNING).join("");
      return letters.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    });
    const pattern = [...new Set(beginnings)].sort().join("|");
    /** Matches words that may contain a term, by its first letters. */
    this.signs = new RegExp(beginnings.length ? pattern : "(?!)", "giu");
  }

  /** @param {string} word */
  of(word) {
    let terms = this.#cached.get(word);
    if (!terms) {
      terms = [...new Set(this.#analyzer.terms(word))].filter((term) => this.#terms.has(term));
      this.#cached.set(word, terms);
    }
    return terms;
  }
}

/**
 * The window of a text with the most distinct query terms.
 *
 * @param {string} lines  of the text
 * @param {Matches} matches
 * @param {number} [length]  most characters, apart from the ellipses
 */
export function snippet(lines, matches, length = LENGTH) {
  if (lines.length <= length) return lines;
  const text = lines.replaceAll("\n", " ");
  const [first, last] = bestWindow(found(text, matches, Math.floor(length / 3)), length);
  let start = Math.max(0, first - Math.floor(length / 6));
  if (start > 0) {
    const space = text.indexOf(" ", start);
    if (space >= 0 && space < first) start = space + 1;
  }
  let end = Math.min(text.length, start + length);
  if (end < text.length) {
    const space = text.lastIndexOf(" ", end);
    if (space >= Math.max(start + 1, last) && space > 0) end = space;
  }
  const excerpt = lines.slice(start, end);
  return (start ? `… ${excerpt.trim()}` : excerpt.trimEnd()) + (end < text.length ? " …" : "");
}

/**
 * The start and end of a text, for `passage.js`.
 *
 * @param {string} text
 */
export function ends(text) {
  const parts = [text];
  if (text.length > 2 * END) {
    const [first, last] = [text.slice(0, END), text.slice(-END)];
    parts.splice(0, 1, first.replace(/\s\S*$/u, ""), last.replace(/^\S*\s/u, ""));
  }
  // addresses cannot contain lone surrogates
  return parts.map((part) => part.replace(/…|\s|\p{Cs}/gu, " ")).join("…");
}

/**
 * Split a text; every second part is a word with a term.
 *
 * @param {string} text
 * @param {Matches} matches
 */
export function marked(text, matches) {
  const parts = [""];
  for (const piece of text.split(/(\s+)/u)) {
    if (!matches.of(piece).length) {
      parts[parts.length - 1] += piece;
      continue;
    }
    const words = piece.split(WORDS);
    const matched = words.map((word, i) => i % 2 > 0 && matches.of(word).length > 0);
    if (!matched.includes(true)) {
      const [, before, whole, behind] = /** @type {RegExpExecArray} */ (CORE.exec(piece));
      parts[parts.length - 1] += before;
      parts.push(whole, behind);
      continue;
    }
    words.forEach((word, i) => {
      if (matched[i]) parts.push(word, "");
      else parts[parts.length - 1] += word;
    });
  }
  return parts;
}

/**
 * The positions of words with query terms; in a long word, those of the terms themselves.
 *
 * @param {string} text
 * @param {Matches} matches
 * @param {number} long
 */
function found(text, matches, long) {
  /** @type {[number, string[]][]} */
  const places = [];
  let end = 0;
  for (const sign of text.matchAll(matches.signs)) {
    if (sign.index < end) continue;
    const start = sign.index ? text.lastIndexOf(" ", sign.index - 1) + 1 : 0;
    end = text.indexOf(" ", sign.index + sign[0].length);
    if (end < 0) end = text.length;
    const word = text.slice(start, end);
    const terms = matches.of(word);
    if (terms.length && word.length > long) {
      const folded = word.toLowerCase();
      /** @type {[number, string[]][]} */
      const offsets = terms.map((term) => [start + Math.max(0, folded.indexOf(term)), [term]]);
      places.push(...offsets.sort(([a], [b]) => a - b));
    } else if (terms.length) {
      places.push([start, terms]);
    }
  }
  return places;
}

/**
 * The starts of the first and the last word of the window with the most terms.
 *
 * @param {[number, string[]][]} places
 * @param {number} length
 * @returns {[number, number]}
 */
function bestWindow(places, length) {
  let best = 0;
  /** @type {[number, number]} */
  let window = [0, 0];
  places.forEach(([start], i) => {
    const distinct = new Set();
    let last = start;
    for (const [offset, terms] of places.slice(i)) {
      if (offset - start > Math.floor((length * 2) / 3)) break;
      if (terms.some((term) => !distinct.has(term))) last = offset;
      for (const term of terms) distinct.add(term);
    }
    if (distinct.size > best) [best, window] = [distinct.size, [start, last]];
  });
  return window;
}
