// The page for missing addresses: offers words of the address to search for, and the pages with the
// most similar addresses.

(() => {
  const lost = document.getElementById("kb-lost");
  const near = document.getElementById("kb-near");
  const query = document.querySelector("#kb-missing [name=query]");
  if (!lost || !near || !(query instanceof HTMLInputElement)) return;
  const script = /** @type {HTMLScriptElement} */ (document.currentScript);
  const root = new URL("../../", script.src);
  const SHOWN = 5;
  const ALIKE = 0.45; // least similarity, of 1
  const LONGEST = 200; // characters of an address to compare

  /** The decoded address below the site's root. */
  function address() {
    const path = location.pathname.startsWith(root.pathname)
      ? location.pathname.slice(root.pathname.length)
      : location.pathname.slice(1);
    try {
      return decodeURIComponent(path).slice(0, LONGEST);
    } catch {
      return path.slice(0, LONGEST); // no UTF-8
    }
  }

  /** An address without common parts. @param {string} path */
  function bare(path) {
    return path
      .toLowerCase()
      .replace(/(^|\/)index\.html?$/, "$1")
      .replace(/\.\w{1,5}$|\/$/, "");
  }

  /** Counts of letter pairs. @param {string} text */
  function pairs(text) {
    /** @type {Map<string, number>} */
    const found = new Map();
    const padded = ` ${text} `;
    for (let i = 1; i < padded.length; i++) {
      const pair = padded.slice(i - 1, i + 1);
      found.set(pair, (found.get(pair) ?? 0) + 1);
    }
    return found;
  }

  /**
   * The share of pairs of letters that two texts have in common (Dice's coefficient).
   *
   * @param {Map<string, number>} one
   * @param {Map<string, number>} other
   */
  function likeness(one, other) {
    let [common, all] = [0, 0];
    for (const [pair, count] of one) {
      common += Math.min(count, other.get(pair) ?? 0);
      all += count;
    }
    for (const count of other.values()) all += count;
    return (2 * common) / all;
  }

  /** @param {string} path */
  function last(path) {
    return path.slice(path.lastIndexOf("/") + 1);
  }

  /**
   * The pages with the most similar addresses and names.
   *
   * @param {string} path
   * @param {[string, string][]} pages
   */
  function nearest(path, pages) {
    const wanted = bare(path);
    const [whole, name] = [pairs(wanted), pairs(last(wanted))];
    return pages
      .map(([page, title]) => {
        const known = bare(decodeURIComponent(page));
        const score = (likeness(whole, pairs(known)) + likeness(name, pairs(last(known)))) / 2;
        return { page, title, score };
      })
      .filter(({ score }) => score >= ALIKE)
      .sort((a, b) => b.score - a.score)
      .slice(0, SHOWN);
  }

  /** The suggested query: the page's name, or the address if that is no word. @param {string} path */
  function words(path) {
    const name = last(bare(path));
    const told = /\p{L}{2}/u.test(name) ? name : bare(path);
    return (told.match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");
  }

  /** @param {{page: string, title: string}} found */
  function entry({ page, title }) {
    const link = document.createElement("a");
    link.href = new URL(page, root).href;
    link.textContent = title;
    const item = document.createElement("li");
    item.append(link, ` – ${decodeURIComponent(page)}`);
    return item;
  }

  async function show() {
    const response = await fetch(new URL("pages.js", script.src));
    if (!response.ok) return;
    const text = await response.text();
    const { pages } = JSON.parse(text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")));
    const found = nearest(path, pages);
    near?.querySelector("ul")?.replaceChildren(...found.map(entry));
    near?.toggleAttribute("hidden", !found.length);
  }

  const path = address();
  if (!path) return;
  lost.textContent = path;
  query.value = words(path);
  if (location.protocol !== "file:") show().catch(() => undefined); // the search form remains
})();
