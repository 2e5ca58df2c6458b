// What an action does to an element where the mouse and the keyboard do not do it by themselves.
// Called with the element as `this`, in an isolated world; returns "" or what is wrong.
function (what, argument) {
  const element = this.nodeType === 1 ? this : this.parentElement;
  const tell = (...kinds) => kinds.forEach(kind =>
    element.dispatchEvent(new Event(kind, {bubbles: true, composed: kind === "input"})));
  const editable = element.isContentEditable || (
    (element.localName === "input" || element.localName === "textarea") && !element.readOnly);

  if (element.disabled) return "it is disabled";
  switch (what) {
    case "focus":
      element.focus();
      return "";
    case "select text": {  // so that what is typed next replaces it
      if (!editable) return "it is no field that can be written to";
      element.focus();
      if (element.isContentEditable) getSelection().selectAllChildren(element);
      else if (["checkbox", "radio", "file", "button", "submit", "image", "reset"].includes(element.type))
        return `it is a field of type ${element.type}`;
      else if (["color", "date", "datetime-local", "month", "range", "time", "week"].includes(element.type)) {
        element.value = argument;  // these have no text to select
        if (element.value !== argument) return `a field of type ${element.type} does not take this value`;
        tell("input", "change");
        return "done";
      } else element.select();
      return "";
    }
    case "delete selection":
      document.execCommand("delete");
      return "";
    case "checked":
      if (!["checkbox", "radio"].includes(element.type)) {
        const said = element.getAttribute("aria-checked");
        return said === null ? "it is no checkbox or radio button" : said === "true" ? "yes" : "no";
      }
      return element.checked ? "yes" : "no";
    case "choose": {
      const select = element.closest("select");
      if (!select) return "it is no <select>";
      const options = [...select.options];
      const wanted = argument.map(name =>
        options.find(o => o.value === name) ?? options.find(o => o.label.trim() === name.trim()));
      if (wanted.includes(undefined))
        return `it has no option ${JSON.stringify(argument[wanted.indexOf(undefined)])}; there are ${JSON.stringify(options.map(o => o.label))}`;
      if (!select.multiple && wanted.length !== 1) return "it takes one option";
      if (wanted.some(o => o.disabled)) return "this option is disabled";
      select.focus();
      for (const option of options) option.selected = wanted.includes(option);
      select.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
      select.dispatchEvent(new Event("change", {bubbles: true}));
      return "";
    }
    case "give file": {
      if (element.type !== "file") return "it is no field for a file";
      const given = new DataTransfer();
      given.items.add(new File([argument.content], argument.name, {lastModified: argument.time}));
      element.files = given.files;
      tell("input", "change");
      return "";
    }
  }
  return `there is no ${what}`;
}
