// IndexedDB of this origin as plain data, and back. Called in an isolated world or in a blank page.
// Values are written by `pack` as [tag, ...]: structured clones have more kinds than JSON.
({action, databases}) => {
  const done = request => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("a database is in use and blocks another version of it"));
  });
  const finished = transaction => new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
  const base64 = bytes => {
    let text = "";
    for (let i = 0; i < bytes.length; i += 32768)
      text += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(text);
  };
  const bytes_of = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const views = Object.fromEntries([
    Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
    Float32Array, Float64Array, BigInt64Array, BigUint64Array, DataView,
  ].map(kind => [kind.name, kind]));

  // Objects that occur again are written as ["ref", n], so shared and cyclic values come back so.
  async function pack(value, seen) {
    switch (typeof value) {
      case "undefined": return ["undefined"];
      case "boolean": return ["is", value];
      case "string": return ["is", value];
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? ["is", value] : ["number", Object.is(value, -0) ? "-0" : String(value)];
      case "bigint": return ["bigint", String(value)];
    }
    if (value === null) return ["is", null];
    if (seen.has(value)) return ["ref", seen.get(value)];
    seen.set(value, seen.size);
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    const all = async items => { const packed = []; for (const item of items) packed.push(await pack(item, seen)); return packed; };
    switch (kind) {
      case "Array": {
        const keys = Object.keys(value);
        const packed = [];
        for (const key of keys) packed.push([key, await pack(value[key], seen)]);
        return ["array", value.length, packed];
      }
      case "Object": {
        const packed = [];
        for (const key of Object.keys(value)) packed.push([key, await pack(value[key], seen)]);
        return ["object", packed];
      }
      case "Map": return ["map", await all([...value].flat(1))];
      case "Set": return ["set", await all([...value])];
      case "Date": return ["date", await pack(value.getTime(), seen)];
      case "RegExp": return ["regexp", value.source, value.flags, value.lastIndex];
      case "Boolean": case "Number": case "String": case "BigInt":
        return ["boxed", await pack(value.valueOf(), seen)];
      case "Error": return ["error", value.name, value.message];
      case "ArrayBuffer": return ["buffer", base64(new Uint8Array(value))];
      case "Blob": case "File":
        return ["blob", base64(new Uint8Array(await value.arrayBuffer())), value.type, kind === "File" ? value.name : null, kind === "File" ? value.lastModified : 0];
    }
    if (kind in views)
      return ["view", kind, await pack(value.buffer, seen), value.byteOffset, kind === "DataView" ? value.byteLength : value.length];
    throw new Error(`IndexedDB holds a ${kind}, which is not captured`);
  }

  function unpack(packed, seen) {
    const [tag, a, b, c, d] = packed;
    const keep = value => { seen.push(value); return value; };
    switch (tag) {
      case "undefined": return undefined;
      case "is": return a;
      case "number": return Number(a);
      case "bigint": return BigInt(a);
      case "ref": return seen[a];
      case "array": { const array = keep(new Array(a)); for (const [key, item] of b) array[key] = unpack(item, seen); return array; }
      case "object": { const object = keep({}); for (const [key, item] of a) Object.defineProperty(object, key, {value: unpack(item, seen), writable: true, enumerable: true, configurable: true}); return object; }
      case "map": { const map = keep(new Map()); for (let i = 0; i < a.length; i += 2) { const key = unpack(a[i], seen); map.set(key, unpack(a[i + 1], seen)); } return map; }
      case "set": { const set = keep(new Set()); for (const item of a) set.add(unpack(item, seen)); return set; }
      case "date": return keep(new Date(unpack(a, seen)));
      case "regexp": { const pattern = keep(new RegExp(a, b)); pattern.lastIndex = c; return pattern; }
      case "boxed": return keep(Object(unpack(a, seen)));
      case "error": { const made = keep(new (globalThis[a] ?? Error)(b)); return made; }
      case "buffer": return keep(bytes_of(a).buffer);
      case "blob": return keep(c === null ? new Blob([bytes_of(a)], {type: b}) : new File([bytes_of(a)], c, {type: b, lastModified: d}));
      case "view": { const place = seen.push(null) - 1; return seen[place] = new views[a](unpack(b, seen), c, d); }
    }
    throw new Error(`no value is written as ${tag}`);
  }

  async function dump() {
    const found = [];
    for (const {name} of await indexedDB.databases()) {
      const database = await done(indexedDB.open(name));
      try {
        found.push({name, version: database.version, stores: await dump_stores(database)});
      } finally { database.close(); }
    }
    return found.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  async function dump_stores(database) {
    const names = [...database.objectStoreNames];
    if (!names.length) return [];
    const transaction = database.transaction(names, "readonly");
    const raw = await Promise.all(names.map(async name => {
      const store = transaction.objectStore(name);
      return [store, await Promise.all([done(store.getAllKeys()), done(store.getAll())])];
    }));
    const stores = [];
    for (const [store, [keys, values]] of raw) {
      const records = [];
      for (let i = 0; i < keys.length; i++)
        records.push([await pack(keys[i], new Map()), await pack(values[i], new Map())]);
      const indexes = [...store.indexNames].map(name => {
        const index = store.index(name);
        return {name, path: index.keyPath, unique: index.unique, multi: index.multiEntry};
      });
      const next = store.autoIncrement ? await next_key(database, store.name) : null;
      stores.push({name: store.name, path: store.keyPath, auto: store.autoIncrement, next, indexes, records});
    }
    return stores;
  }

  // Only adding a record tells what key it gets; a transaction that is aborted takes that back.
  async function next_key(database, name) {
    const transaction = database.transaction(name, "readwrite");
    const ended = new Promise(resolve => { transaction.onabort = resolve; });
    const key = await done(transaction.objectStore(name).add({}));
    transaction.abort();
    await ended;
    return key;
  }

  // Makes the next record get a certain key: that of the one before it is used up.
  function use_up(store, key) {
    const record = {};
    if (store.keyPath === null) store.put(record, key);
    else {
      let place = record;
      const names = store.keyPath.split(".");
      const last = names.pop();
      for (const name of names) place = place[name] = {};
      place[last] = key;
      store.put(record);
    }
    store.delete(key);
  }

  async function load() {
    for (const {name} of await indexedDB.databases()) await done(indexedDB.deleteDatabase(name));
    for (const saved of databases) {
      const request = indexedDB.open(saved.name, saved.version);
      request.onupgradeneeded = () => {
        for (const store of saved.stores) {
          const made = request.result.createObjectStore(store.name, {keyPath: store.path, autoIncrement: store.auto});
          for (const index of store.indexes)
            made.createIndex(index.name, index.path, {unique: index.unique, multiEntry: index.multi});
        }
      };
      const database = await done(request);
      const names = saved.stores.map(store => store.name);
      if (names.length) {
        const transaction = database.transaction(names, "readwrite");
        const whole = finished(transaction);
        for (const store of saved.stores) {
          const target = transaction.objectStore(store.name);
          if (store.next > 1) use_up(target, store.next - 1);
          for (const [key, value] of store.records)
            store.path === null ? target.put(unpack(value, []), unpack(key, [])) : target.put(unpack(value, []));
        }
        await whole;
      }
      database.close();
    }
  }

  if (!globalThis.indexedDB) return [];
  return action === "load" ? load() : dump();
}
