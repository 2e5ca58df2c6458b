// Whether a list, a calendar or a colour picker of Chromium's own is open over the page. It belongs
// to a control that has, or lies around, the focus. Runs in an isolated world.
(() => {
  for (let root = document; root;) {
    if (root.querySelector("select:open, input:open")) return true;
    const active = root.activeElement;
    root = active?.shadowRoot ?? active?.contentDocument;
  }
  return false;
})()
