// What a reader of this page sees: words in order, cut where boxes are apart, and the headings.
// Shares no rule with our own reader: it asks the browser's layout.
([selector, without]) => {
  const root = [...document.querySelectorAll(selector)];
  const marks = new Set([...document.querySelectorAll(without || "x-none")]);
  const name = (control, attribute) => (control.getAttribute(attribute) || "").replace(/^#/, "").split(/\s+/);
  const show = (box) => {
    box.hidden = false;
    box.removeAttribute("aria-hidden");
    for (const [property, value] of Object.entries({display: "block", visibility: "visible", height: "auto", "max-height": "none", opacity: "1"}))
      box.style.setProperty(property, value, "important");
  };
  for (const box of document.querySelectorAll("details")) box.open = true;
  for (const box of document.querySelectorAll("[role=tabpanel], .tabpanel, .tabbed-block, .tabbed-content > *, .sd-tab-content, .vp-code-group .blocks > *")) show(box);
  for (const control of document.querySelectorAll("[aria-controls], [data-bs-target], [aria-expanded][href]"))
    for (const id of ["aria-controls", "data-bs-target"].flatMap((attribute) => name(control, attribute)))
      if (id && document.getElementById(id)) show(document.getElementById(id));
  const isInline = (element) => /^(inline|contents|ruby)/.test(getComputedStyle(element).display) && getComputedStyle(element).display !== "inline-grid";
  const block = (node) => {
    let element = node.parentElement;
    while (element && isInline(element)) element = element.parentElement;
    return element;
  };
  const dropped = (node) => {
    for (let e = node.parentElement; e; e = e.parentElement) if (marks.has(e)) return true;
    return false;
  };
  const clipped = (node) => {
    for (let e = node.parentElement; e && !root.includes(e); e = e.parentElement) {
      const box = e.getBoundingClientRect(), style = getComputedStyle(e);
      if (style.display !== "contents" && style.overflow !== "visible" && (box.width <= 1 || box.height <= 1)) return true;
      if (parseFloat(style.fontSize) === 0) return true;
    }
    return false;
  };
  const edge = (node, last) => {
    const range = document.createRange(), at = last ? node.data.length - 1 : 0;
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect();
  };
  const read = (roots) => {
    let out = "", before = null, broken = false;
    for (const each of roots) {
      out += "\n";
      before = null;
      const walker = document.createTreeWalker(each, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.nodeType === 1) {
          if (node.tagName === "BR" || node.tagName === "HR" || node.tagName === "IMG") broken = true;
          continue;
        }
        const parent = node.parentElement;
        if (!parent || !parent.checkVisibility({visibilityProperty: true}) || dropped(node) || clipped(node)) continue;
        if (/^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|SELECT|OPTION|TEXTAREA|ANNOTATION)$/i.test(parent.tagName) || parent.closest("svg")) continue;
        if (before && !/\s$/.test(before.data) && !/^\s/.test(node.data)) {
          const a = edge(before, true), b = edge(node, false), em = parseFloat(getComputedStyle(parent).fontSize);
          const size = parseFloat(getComputedStyle(before.parentElement).fontSize) / em;
          const resized = (size < 0.8 || size > 1.25) && !before.parentElement.closest("sub, sup") && !parent.closest("sub");
          const near = Math.abs(a.bottom - b.bottom) < 1.2 * em;
          const raised = near && a.bottom - b.bottom > 0.15 * em && !before.parentElement.closest("sub");
          const apart = raised || resized || (near && b.left - a.right > 0.12 * em);
          if (broken || apart || block(before) !== block(node)) out += " ";
        }
        if (node.data) {
          out += node.data;
          before = node;
          broken = false;
        }
      }
    }
    return out;
  };
  const headings = root.flatMap((r) => [...r.querySelectorAll("h1, h2, h3, h4, h5, h6")]);
  const alt = root.flatMap((r) => [...r.querySelectorAll("img[alt], svg title, [role=img]")]).map((i) => i.getAttribute("alt") || i.getAttribute("aria-label") || i.textContent);
  // What a style sheet writes, or says to who doesn't see its sign: no text, but words that a reader meets.
  const written = root.flatMap((r) => [...r.querySelectorAll("*")]).flatMap((e) => [getComputedStyle(e, "::before"), getComputedStyle(e, "::after")]);
  for (const {content} of written) if (/\p{L}/u.test(content) && content !== "none" && content !== "normal") alt.push(content);
  return {text: read(root), headings: headings.map((h) => read([h])).filter((t) => /[\p{L}\p{N}]/u.test(t)), alt: alt.join(" ")};
}
