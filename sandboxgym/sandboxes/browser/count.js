// How many elements and texts a document has, those in open shadow roots included.
() => {
  let nodes = 0;
  const count = root => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      nodes++;
      const inside = walker.currentNode.shadowRoot;
      if (inside) count(inside);
    }
  };
  count(document);
  return nodes;
}
