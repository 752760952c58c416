// Runs in a page whose address has a passage (`?passage=first words…last words`), as the links of
// results have: marks it, and brings it into view. Only letters and digits are compared, since
// marks and spaces of a passage are not those of its page.

(() => {
  const LONGEST = 8_000; // letters of a passage
  const BLOCKS = "p, pre, tr, li, dt, dd, h1, h2, h3, h4, h5, h6, blockquote";
  const NO_TEXT = ".headerlink, .kb-meta, .md-code__nav, nav, script, style, svg";
  const LOOK = `
    .md-typeset .kb-passage {
      --kb-tint: color-mix(in srgb, var(--md-accent-fg-color) 9%, var(--md-default-bg-color));
      background-color: var(--kb-tint);
      box-shadow: -0.15rem 0 var(--kb-tint), -0.25rem 0 var(--md-accent-fg-color);
    }`;

  /** @param {string} text */
  const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");

  /**
   * The letters of an article, and where in them each of its texts begins.
   *
   * @param {Element} article
   */
  function read(article) {
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_ALL, (node) =>
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

  /** The element that the address leads to. */
  function target() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null; // a bare percent sign
    }
  }

  /**
   * Where a passage begins and ends, the first behind the place that the address leads to.
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
    const near = end >= 0 && end - start < LONGEST;
    return { start, end: near ? end + last.length : start + first.length };
  }

  function mark() {
    const given = new URLSearchParams(location.search).get("passage") ?? "";
    const [first, last = ""] = given.split("…").map(letters);
    const article = document.querySelector("article") ?? document.body;
    if (!first) return;
    const { all, texts } = read(article);
    const place = target();
    const behind = texts.find(
      ([text]) =>
        place &&
        (place.contains(text) ||
          place.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING),
    );
    const found = find(all, first, last, behind ? behind[1] : 0);
    if (!found) return;
    const held = texts.filter(
      ([text, begin]) => begin < found.end && begin + letters(text.data).length > found.start,
    );
    const blocks = held.map(([text]) => text.parentElement?.closest(BLOCKS));
    for (const block of blocks)
      if (block && article.contains(block)) block.classList.add("kb-passage");
    const look = new CSSStyleSheet(); // which the policy of a page lets in, unlike its text
    look.replaceSync(LOOK);
    document.adoptedStyleSheets.push(look);
    show(held[0][0]);
  }

  /**
   * Scrolls to a text, unless it can be seen below the place that the address leads to.
   *
   * @param {Text} text
   */
  function show(text) {
    const range = document.createRange();
    range.selectNodeContents(text);
    const { top } = range.getBoundingClientRect();
    if (top < 80 || top > innerHeight * 0.7) window.scrollBy({ top: top - innerHeight * 0.3 });
  }

  const soon = () => requestAnimationFrame(() => requestAnimationFrame(mark));
  if (document.readyState === "complete") soon();
  else window.addEventListener("load", soon);
})();
