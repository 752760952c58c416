// The page for missing addresses: offers words of the address to search for.

(() => {
  const lost = document.getElementById("kb-lost");
  const query = document.querySelector("#kb-missing [name=query]");
  if (!lost || !(query instanceof HTMLInputElement)) return;
  const root = new URL("../../", /** @type {HTMLScriptElement} */ (document.currentScript).src);
  const LONGEST = 200; // characters of an address

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

  /** The page's name, or the whole address if that is no word. @param {string} path */
  function words(path) {
    const bare = path.toLowerCase().replace(/(\/index)?(\.\w{1,5}|\/)$/, "");
    const name = bare.slice(bare.lastIndexOf("/") + 1);
    const told = /\p{L}{2}/u.test(name) ? name : bare;
    return (told.match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");
  }

  const path = address();
  if (!path) return;
  lost.textContent = path;
  query.value = words(path);
})();
