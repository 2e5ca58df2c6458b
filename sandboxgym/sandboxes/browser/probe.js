// What a document is like beyond its accessibility tree, as plain data. Changes nothing.
// Called in an isolated world, so what the page did to its prototypes does not matter here.
() => {
  const hash = text => {  // 53 bits, by Bryc's construction: two 32-bit multiplicative hashes
    let a = 0xdeadbeef, b = 0x41c6ce57;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
  };
  // Chromium draws the names of blobs, from no seed of ours.
  const nameless = text => text.replace(/\bblob:[^\s"'<>]*?\/[0-9a-f]{8}-[0-9a-f-]{27}/g, "blob:");
  const path = node => {
    const steps = [];
    while (node && node !== document) {
      const above = node.parentNode;
      if (!above) { steps.push("gone"); break; }
      let index = 0;
      for (let left = node.previousSibling; left; left = left.previousSibling) index++;
      steps.push(index);
      node = above.host && above.nodeType === 11 ? (steps.push("shadow"), above.host) : above;
    }
    return steps.reverse().join("/");
  };
  const attempt = read => { try { return read(); } catch (error) { return error.name; } };

  const scrolled = {}, fields = {}, canvases = {}, players = {}, markup = [];
  if (scrollX || scrollY) scrolled.page = [scrollX, scrollY];
  const visit = element => {
    if ((element.scrollTop || element.scrollLeft) && element !== document.scrollingElement)
      scrolled[path(element)] = [element.scrollLeft, element.scrollTop];
    switch (element.localName) {
      case "input": case "textarea":
        fields[path(element)] = [
          element.value, element.checked === true, element.indeterminate === true,
          attempt(() => element.selectionStart), attempt(() => element.selectionEnd),
          element.files ? [...element.files].map(file => [file.name, file.size, file.type]) : null,
        ];
        break;
      case "select":
        fields[path(element)] = [...element.options].map((o, i) => o.selected ? i : -1).filter(i => i >= 0);
        break;
      case "canvas":
        canvases[path(element)] = attempt(() => hash(element.toDataURL()));
        break;
      case "audio": case "video":
        players[path(element)] = [element.currentTime, element.paused];
        break;
    }
    if (element.shadowRoot) {
      markup.push(element.shadowRoot.innerHTML);
      element.shadowRoot.querySelectorAll("*").forEach(visit);
    }
  };
  document.querySelectorAll("*").forEach(visit);
  if (document.documentElement) markup.push(document.documentElement.outerHTML);

  let focus = document.activeElement;
  while (focus && focus.shadowRoot && focus.shadowRoot.activeElement) focus = focus.shadowRoot.activeElement;
  // Not `anchorNode` and the like: Chromium keeps a range from the first time that it is asked for
  // these, and from then on what a page does to its nodes moves the selection in another way.
  const [selected] = getSelection()?.getComposedRanges() ?? [];
  const hovered = [...document.querySelectorAll(":hover")].pop();
  const animations = document.getAnimations().map(animation => [
    animation.animationName || animation.transitionProperty || animation.id,
    path(animation.effect && animation.effect.target), animation.playState,
    Math.round(animation.currentTime * 10) / 10,
  ]);
  const text = nameless(markup.join("\0"));
  return {
    url: nameless(location.href),
    title: document.title,
    ready: document.readyState,
    name: window.name,
    history: history.length,
    markup: hash(text),
    markup_length: text.length,
    scroll: scrolled,
    fields,
    canvases,
    players,
    focus: path(focus),
    focused: document.hasFocus(),
    hover: path(hovered),
    pressed: path([...document.querySelectorAll(":active")].pop()),
    selection: selected
      ? [path(selected.startContainer), selected.startOffset, path(selected.endContainer), selected.endOffset, getSelection().direction]
      : null,
    animations,
    cookies: attempt(() => document.cookie),
    local_storage: attempt(() => Object.entries(localStorage).sort()),
    session_storage: attempt(() => Object.entries(sessionStorage).sort()),
  };
}
