// Finds a passage in a page by its first and last words, as in the addresses of pages and panels.
// Compares only letters and digits, since marks and spaces differ between a passage and its page.

const MAX_LETTERS = 8_000; // letters of a passage
const BLOCKS = "p, pre, tr, li, dt, dd, h1, h2, h3, h4, h5, h6, blockquote";
const NO_TEXT = ".headerlink, .kb-meta, .md-code__nav, nav, script, style, svg";

/**
 * The blocks of a page with a passage, and the text node of its start.
 *
 * @param {Element} root  the page
 * @param {string} ends  its first words, or these, `…` and its last ones
 * @param {Element | null} place  element to start from, if any
 * @returns {{blocks: Element[], first: Text} | null}
 */
export function findPassage(root, ends, place) {
  const [first, last = ""] = ends.split("…").map(letters);
  if (!first) return null;
  const { all, texts } = read(root);
  const behind = texts.find(
    ([text]) =>
      place &&
      (place.contains(text) ||
        place.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING),
  );
  const match = find(all, first, last, behind ? behind[1] : 0);
  if (!match) return null;
  const nodes = texts.filter(
    ([text, begin]) => begin < match.end && begin + letters(text.data).length > match.start,
  );
  const parents = nodes.map(([text]) => text.parentElement?.closest(BLOCKS));
  const blocks = parents.flatMap((block) => (block && root.contains(block) ? [block] : []));
  return { blocks, first: nodes[0][0] };
}

/** @param {string} text */
function letters(text) {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
}

/**
 * The letters of a page, and the start of each text node in them.
 *
 * @param {Element} root
 */
function read(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ALL, (node) =>
    node instanceof Element && node.matches(NO_TEXT)
      ? NodeFilter.FILTER_REJECT
      : NodeFilter.FILTER_ACCEPT,
  );
  /** @type {[Text, number][]} */
  const texts = [];
  let all = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!(node instanceof Text)) continue;
    texts.push([node, all.length]);
    all += letters(node.data);
  }
  return { all, texts };
}

/**
 * Start and end of the first passage after a position.
 *
 * @param {string} all
 * @param {string} first
 * @param {string} last
 * @param {number} from
 */
function find(all, first, last, from) {
  let start = all.indexOf(first, from);
  if (start < 0) start = all.indexOf(first);
  if (start < 0) return null;
  const end = last ? all.indexOf(last, start) : -1;
  const isComplete = end >= 0 && end - start < MAX_LETTERS;
  return { start, end: isComplete ? end + last.length : start + first.length };
}
