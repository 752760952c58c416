// Runs in the pages of documents. Adds the copy button of code when it comes near the viewport; the
// theme would add all at once, which is slow in a page with much code. Also lets the keyboard
// scroll wide tables, code and pictures.

const MARGIN = "300px"; // around the viewport

/**
 * The theme's button, which its script handles.
 *
 * @param {Element} pre
 * @param {number} number
 */
function addButton(pre, number) {
  const code = pre.querySelector("code") ?? pre;
  code.id = `kb-code-${number}`; // the theme gives ids to its parents, now or later
  const button = document.createElement("button");
  button.className = "md-code__button";
  button.title = "Copy to clipboard";
  button.dataset.clipboardTarget = `pre > #${code.id}`; // excludes a heading with that id
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

// after the theme has wrapped tables; measures all before changing any
window.addEventListener("load", () => {
  const places = "article :is(.md-typeset__scrollwrap, pre > code, p:has(> svg))";
  const wide = [...document.querySelectorAll(places)];
  for (const element of wide.filter((one) => one.scrollWidth > one.clientWidth)) {
    element.setAttribute("tabindex", "0");
  }
});
