// Runs before anything else in every document and worker, in the page's own world.
//
// Chromium's virtual time makes timers, Date and frames exact already. What is left: randomness,
// time stamps that come from real clocks (of input events, of the start of a navigation), traits of
// the machine, and doors out of the sandbox. A page cannot tell any of this from the real thing by
// looking; one that hunts for it can (Function.prototype.toString).
//
// `settings` is {seed, report, url}: the session's seed; the name of the binding through which we are
// told of what was refused, and of what we have to do in the page's stead; a worker's URL.
(settings => {
  "use strict";
  const report = self[settings.report];
  delete self[settings.report];
  const stringify = JSON.stringify;  // a page may break its own
  const isWorker = typeof document === "undefined";

  const refuse = (what, why) => {
    report?.(stringify(["refused", what, String(why)]));
    return new DOMException(`${what} is refused in this sandbox`, "NotAllowedError");
  };
  const replace = (owner, name, value) => {
    if (!owner) return;
    const old = Object.getOwnPropertyDescriptor(owner, name);
    if (!old) return;
    Object.defineProperty(owner, name, {
      configurable: true, enumerable: old.enumerable, writable: true, value,
    });
  };
  const replaceGetter = (owner, name, get) => {
    if (!owner) return;
    const old = Object.getOwnPropertyDescriptor(owner, name);
    if (!old || !old.get) return;
    Object.defineProperty(owner, name, {
      configurable: true, enumerable: old.enumerable, set: old.set,
      get() { return get.call(this, old.get); },
    });
  };

  // ---- Time: all stamps are whole milliseconds of virtual time since the document began. They come
  // from Date, which virtual time makes exact: what Chromium tells by performance.now it rounds up or
  // down by chance, and for a document that we asked for it counts from a moment of the real clock.
  const nativeDate = Date.now;
  const beginDate = nativeDate();
  const now = () => nativeDate() - beginDate;
  replace(Performance.prototype, "now", { now() { return now(); } }.now);
  replaceGetter(Performance.prototype, "timeOrigin", () => beginDate);
  const stamps = new WeakMap();
  replaceGetter(Event.prototype, "timeStamp", function () {
    if (!stamps.has(this)) stamps.set(this, now());
    return stamps.get(this);
  });
  const { mark, measure } = Performance.prototype;
  replace(Performance.prototype, "mark", { mark(name, options = {}) {
    return mark.call(this, name, { startTime: now(), ...options });
  } }.mark);
  replace(Performance.prototype, "measure", { measure(name, start, end) {
    if (typeof start !== "object" || start === null) start = { start: start ?? 0, end };
    if (start.duration === undefined && start.end === undefined) start = { ...start, end: now() };
    return measure.call(this, name, start);
  } }.measure);
  const ownEntry = entry => entry.entryType === "mark" || entry.entryType === "measure";
  for (const name of ["getEntries", "getEntriesByName", "getEntriesByType"]) {
    const native = Performance.prototype[name];
    replace(Performance.prototype, name, { [name](...args) {
      return native.apply(this, args).filter(ownEntry);  // the others tell how fast we are
    } }[name]);
  }
  if (self.PerformanceObserver) {
    const Native = self.PerformanceObserver;
    const observe = Native.prototype.observe;
    replace(Native.prototype, "observe", { observe(options = {}) {
      const types = options.entryTypes?.filter(type => type === "mark" || type === "measure");
      if (types) return types.length ? observe.call(this, { ...options, entryTypes: types }) : undefined;
      if (options.type === "mark" || options.type === "measure") return observe.call(this, options);
    } }.observe);
  }
  if (self.requestAnimationFrame && !isWorker) {
    const native = self.requestAnimationFrame.bind(self);
    replace(self, "requestAnimationFrame", { requestAnimationFrame(callback) {
      if (typeof callback !== "function") return native(callback);
      return native(() => callback.call(self, now()));
    } }.requestAnimationFrame);
    replaceGetter(self.AnimationTimeline?.prototype, "currentTime", function (native) {
      return native.call(this) === null ? null : now();
    });
  }
  if (!isWorker) {  // What is due at once would come anywhere between the steps of loading.
    const native = self.setTimeout;
    replace(self, "setTimeout", { setTimeout(handler, delay = 0, ...rest) {
      const whole = delay | 0;
      return Reflect.apply(native, this, [handler, whole > 1 ? whole : 1, ...rest]);
    } }.setTimeout);
  }
  if (self.requestIdleCallback) {
    // Chromium finds idle moments by the real clock. Ours lie between two frames, and each look at
    // what remains of one takes a millisecond of it, so that work in portions ends where it would.
    const { setTimeout, clearTimeout, IdleDeadline } = self;
    const timers = new Map();
    let last = 0;
    const deadline = () => {
      let left = 50;
      return Object.create(IdleDeadline.prototype, {
        didTimeout: { value: false, enumerable: true },
        timeRemaining: { value: function timeRemaining() { return left > 0 ? left-- : 0; } },
      });
    };
    replace(self, "requestIdleCallback", { requestIdleCallback(callback) {
      if (typeof callback !== "function") throw new TypeError("The callback is not a function.");
      const handle = ++last;
      timers.set(handle, Reflect.apply(setTimeout, self, [() => {
        timers.delete(handle);
        callback(deadline());
      }, 10]));
      return handle;
    } }.requestIdleCallback);
    replace(self, "cancelIdleCallback", { cancelIdleCallback(handle) {
      Reflect.apply(clearTimeout, self, [timers.get(handle)]);
      timers.delete(handle);
    } }.cancelIdleCallback);
  }
  if (self.PerformanceTiming) {
    for (const name of Object.keys(PerformanceTiming.prototype)) {
      replaceGetter(PerformanceTiming.prototype, name, function (native) {
        return native.call(this) === 0 ? 0 : beginDate;
      });
    }
  }

  // ---- Randomness: a stream for each document, of the seed, the time, the URL and the frame.
  const place = [];
  if (!isWorker) {
    for (let frame = self; frame !== frame.parent; frame = frame.parent) {
      let index = 0;
      while (index < frame.parent.length && frame.parent[index] !== frame) index++;
      place.push(index);
    }
  }
  const state = new Uint32Array(4);
  const start = text => {  // FNV-1a, with another offset for each word
    for (let word = 0; word < 4; word++) {
      let hash = 0x811c9dc5 ^ Math.imul(word + 1, 0x9e3779b9);
      for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
      state[word] = hash ^ (hash >>> 15);
    }
    for (let i = 0; i < 16; i++) next();
  };
  const rotated = (x, k) => (x << k) | (x >>> (32 - k));
  const next = () => {  // xoshiro128**
    const result = Math.imul(rotated(Math.imul(state[1], 5), 7), 9) >>> 0;
    const t = state[1] << 9;
    state[2] ^= state[0]; state[3] ^= state[1]; state[1] ^= state[2]; state[0] ^= state[3];
    state[2] ^= t; state[3] = rotated(state[3], 11);
    return result;
  };
  const url = (settings.url ?? self.location.href).replace(/^blob:.*/, "blob:");  // it is random
  start([settings.seed, beginDate, url, place.join(".")].join("|"));
  replace(Math, "random", { random() {
    return ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
  } }.random);
  if (self.Crypto) {
    const native = Crypto.prototype.getRandomValues;
    replace(Crypto.prototype, "getRandomValues", { getRandomValues(array) {
      native.call(this, array);  // checks the argument as ever
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = next() >>> 24;
      return array;
    } }.getRandomValues);
    replace(Crypto.prototype, "randomUUID", { randomUUID() {
      const b = Array.from({ length: 16 }, () => next() >>> 24);
      b[6] = (b[6] & 0x0f) | 0x40;
      b[8] = (b[8] & 0x3f) | 0x80;
      const hex = b.map(x => x.toString(16).padStart(2, "0")).join("");
      return [0, 8, 12, 16, 20].map((at, i, all) => hex.slice(at, all[i + 1])).join("-");
    } }.randomUUID);
  }

  // ---- Traits of the machine.
  const navigatorType = isWorker ? self.WorkerNavigator : self.Navigator;
  replaceGetter(navigatorType?.prototype, "hardwareConcurrency", () => 4);
  replaceGetter(navigatorType?.prototype, "deviceMemory", () => 8);
  replaceGetter(navigatorType?.prototype, "onLine", () => true);
  replaceGetter(Performance.prototype, "memory", () => (
    { jsHeapSizeLimit: 2 ** 32, totalJSHeapSize: 2 ** 24, usedJSHeapSize: 2 ** 23 }
  ));

  // ---- What is stored comes from another process, in real time. We are told for how much a page is
  // waiting, so that its own time stands almost still until that has come.
  const asked = () => {
    report?.(stringify(["asked", 1]));
    let over = false;
    return () => { if (!over) report?.(stringify(["asked", -1])); over = true; };
  };
  const told = (owner, names, use) => {
    for (const name of names) {
      const native = owner?.[name];
      if (native) replace(owner, name, { [name](...what) {
        return use(Reflect.apply(native, this, what));
      } }[name]);
    }
  };
  const listen = EventTarget.prototype.addEventListener;
  const databases = (...ends) => target => {
    report?.(stringify(["databases"]));
    const answered = asked();
    for (const kind of ends) Reflect.apply(listen, target, [kind, answered]);
    return target;
  };
  told(self.IDBFactory?.prototype, ["open", "deleteDatabase"], databases("success", "error"));
  told(self.IDBDatabase?.prototype, ["transaction"], databases("complete", "abort"));

  // Other places to keep things in, which nobody reads: we are told that they are used.
  const then = Promise.prototype.then;
  const awaited = promise => {
    const answered = asked();
    Reflect.apply(then, promise, [answered, answered]);
    return promise;
  };
  const others = promise => {
    report?.(stringify(["keeps"]));
    return awaited(promise);
  };
  told(self.CacheStorage?.prototype, ["open", "match", "has", "delete", "keys"], others);
  told(self.Cache?.prototype, ["match", "matchAll", "add", "addAll", "put", "delete", "keys"], others);
  told(self.StorageManager?.prototype, ["getDirectory"], others);

  // What a response or a blob holds comes from another process, too.
  const contents = ["text", "arrayBuffer", "json", "blob", "formData", "bytes"];
  told(self.Response?.prototype, contents, awaited);
  told(self.Blob?.prototype, contents, awaited);
  for (const kind of ["ArrayBuffer", "BinaryString", "DataURL", "Text"]) {
    const name = `readAs${kind}`;
    const native = self.FileReader?.prototype[name];
    if (native) replace(self.FileReader.prototype, name, { [name](...what) {
      Reflect.apply(native, this, what);
      Reflect.apply(listen, this, ["loadend", asked(), { once: true }]);
    } }[name]);
  }

  // ---- Going back. A traversal that a page begins would stop Chromium's virtual time for ever, so
  // we do it for the page when time stands still, which is within the present frame.
  if (!isWorker) {
    const traverse = delta => report?.(stringify(["traverse", delta]));
    const go = History.prototype.go;
    replace(History.prototype, "back", { back() { traverse(-1); } }.back);
    replace(History.prototype, "forward", { forward() { traverse(1); } }.forward);
    replace(History.prototype, "go", { go(delta = 0) {
      return Math.trunc(delta) ? traverse(Math.trunc(delta)) : go.call(this);
    } }.go);
    for (const [name, delta] of [["back", -1], ["forward", 1]]) {
      replace(self.Navigation?.prototype, name, { [name]() {
        traverse(delta);
        return { committed: new Promise(() => {}), finished: new Promise(() => {}) };
      } }[name]);
    }
  }

  // ---- Doors out. Each fails as it does where there is no network, and is told to us.
  if (self.WebSocket) {
    const states = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 };
    class WebSocket extends EventTarget {
      #state = 0;
      #url;
      constructor(url) {
        super();
        this.#url = new URL(url, self.location.href.startsWith("http") ? self.location.href : undefined)
          .href.replace(/^http/, "ws");
        refuse("WebSocket", this.#url);
        self.setTimeout(() => this.#fail(), 0);
      }
      #fail() {
        if (this.#state === 3) return;
        this.#state = 3;
        const close = new CloseEvent("close", { wasClean: false, code: 1006, reason: "" });
        for (const event of [new Event("error"), close]) {
          this["on" + event.type]?.call(this, event);
          this.dispatchEvent(event);
        }
      }
      get url() { return this.#url; }
      get readyState() { return this.#state; }
      get bufferedAmount() { return 0; }
      get extensions() { return ""; }
      get protocol() { return ""; }
      send() {
        if (this.#state === 0) {
          throw new DOMException("Still in CONNECTING state.", "InvalidStateError");
        }
      }
      close() { this.#fail(); }
      onopen = null; onerror = null; onclose = null; onmessage = null; binaryType = "blob";
    }
    for (const [name, value] of Object.entries(states)) {
      for (const owner of [WebSocket, WebSocket.prototype]) {
        Object.defineProperty(owner, name, { value, enumerable: true });
      }
    }
    replace(self, "WebSocket", WebSocket);
  }
  const doors = ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "WebSocketStream",
                 "SharedWorker"];
  if (isWorker) doors.push("Worker");  // Chromium would not show us what that one asks for
  for (const name of doors) {
    const Native = self[name];
    if (!Native) continue;
    const what = isWorker && name === "Worker" ? "Worker of a worker" : name;
    const Refused = { [name]: function (...args) { throw refuse(what, args[0] ?? ""); } }[name];
    Refused.prototype = Native.prototype;
    replace(self, name, Refused);
  }
  const reject = (owner, name, what) => {
    replace(owner, name, { [name](...args) {
      return Promise.reject(refuse(what, name === "register" ? args[0] : name));
    } }[name]);
  };
  reject(self.ServiceWorkerContainer?.prototype, "register", "service worker");
  for (const name of ["read", "readText", "write", "writeText"]) {
    reject(self.Clipboard?.prototype, name, "clipboard");
  }
  if (!isWorker) {
    for (const name of ["copy", "cut", "paste"]) {  // the clipboard is shared by all episodes
      self.addEventListener(name, event => {
        event.preventDefault();
        event.stopImmediatePropagation();
        refuse("clipboard", name);
      }, true);
    }
    for (const name of ["showOpenFilePicker", "showSaveFilePicker", "showDirectoryPicker"]) {
      reject(self, name, "file picker");
    }
  }
})
