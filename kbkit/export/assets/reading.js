// Runs in the pages of documents. Gives code its button to copy it once it comes near; the theme
// gives all code its button at once, which takes longer than all else in a page with much code.
// And lets the keyboard scroll wide tables, code and pictures.

(() => {
  const MARGIN = "300px"; // around what is seen

  /**
   * The theme's own button, which its script knows what to do with.
   *
   * @param {Element} pre
   * @param {number} number
   */
  function addButton(pre, number) {
    const code = pre.querySelector("code") ?? pre;
    code.id = `kb-code-${number}`; // the theme gives ids to what is around it, sooner or later
    const button = document.createElement("button");
    button.className = "md-code__button";
    button.title = "Copy to clipboard";
    button.dataset.clipboardTarget = `pre > #${code.id}`; // and not a heading of that name
    button.dataset.mdType = "copy";
    const place = document.createElement("div");
    place.className = "md-code__nav";
    place.append(button);
    pre.prepend(place);
  }

  const blocks = [...document.querySelectorAll("article .highlight > pre")];
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        addButton(target, blocks.indexOf(target));
      }
    },
    { rootMargin: MARGIN },
  );
  for (const block of blocks) near.observe(block);

  // once the theme has wrapped tables; all are looked at before one is changed
  window.addEventListener("load", () => {
    const places = "article :is(.md-typeset__scrollwrap, pre > code, p:has(> svg))";
    const wide = [...document.querySelectorAll(places)];
    for (const element of wide.filter((one) => one.scrollWidth > one.clientWidth)) {
      element.setAttribute("tabindex", "0");
    }
  });
})();
