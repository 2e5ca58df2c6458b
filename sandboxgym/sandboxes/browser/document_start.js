// Runs in an isolated world of the main document before any script of the page: what the page finds
// in its storage, and when. `settings` is {report, put}: the name of a binding, and storage to put in first.
//
// And what a document leaves behind in its history entry (drafts in fields, how far it was scrolled)
// would come back when one goes back to it; nobody could put that into an entry. So it is left out:
// a page that is loaded again is fresh.
(settings => {
  const report = globalThis[settings.report];
  if (!report || top !== self) return;
  const attempt = read => { try { return read(); } catch { return []; } };
  if (settings.put) attempt(() => {
    for (const [storage, items] of [[localStorage, settings.put.local], [sessionStorage, settings.put.session]]) {
      storage.clear();
      for (const [key, value] of items) storage.setItem(key, value);
    }
    window.name = settings.put.name;
  });
  report(JSON.stringify({
    local: attempt(() => Object.entries(localStorage)),
    session: attempt(() => Object.entries(sessionStorage)),
    name: window.name,
    length: history.length,
    left: attempt(() => history.scrollRestoration) === "manual",
    date: Date.now(),
  }));
  addEventListener("pagehide", () => {
    try { history.scrollRestoration = "manual"; } catch { return; }
    document.querySelectorAll("form, input, textarea, select").forEach(field => field.setAttribute("autocomplete", "off"));
  });
})
