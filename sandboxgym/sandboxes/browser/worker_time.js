// Runs in a worker before its own script: time passes in it in steps, when we say.
//
// Chromium's virtual time stops a worker's clock, but not its thread. So timers are kept here, and
// messages and responses wait here, in both directions, until `tick` is called; by then the page
// stands still. What passes between the two is thus a function of virtual time, to the frame.
//
// `settings` is {tick}: the name under which we find `tick`.
(settings => {
  "use strict";
  const timers = new Map();
  let lastId = 0;
  let nesting = 0;
  const schedule = (callback, delay, repeats, args) => {
    const wait = Math.max(nesting > 5 ? 4 : repeats ? 1 : 0, Math.trunc(Number(delay)) || 0);
    lastId += 1;
    timers.set(lastId, { callback, args, wait, repeats, due: Date.now() + wait, nesting });
    return lastId;
  };
  const clear = id => { timers.delete(id); };
  const define = (name, value) =>
    Object.defineProperty(self, name, { configurable: true, enumerable: true, writable: true, value });
  define("setTimeout", function setTimeout(callback, delay, ...args) {
    return schedule(callback, delay, false, args);
  });
  define("setInterval", function setInterval(callback, delay, ...args) {
    return schedule(callback, delay, true, args);
  });
  define("clearTimeout", function clearTimeout(id) { clear(id); });
  define("clearInterval", function clearInterval(id) { clear(id); });

  // Messages wait; they are dispatched again when their turn comes.
  const inbox = [];
  let delivering = false;
  self.addEventListener("message", event => {
    if (delivering) return;
    event.stopImmediatePropagation();
    inbox.push(event);
  }, true);
  const deliver = event => {
    const { data, origin, lastEventId, ports } = event;
    delivering = true;
    try {
      self.dispatchEvent(new MessageEvent("message", { data, origin, lastEventId, ports: [...ports] }));
    } finally {
      delivering = false;
    }
  };

  // So do those to the page. (One that hands over a port, which cannot be copied, goes at once.)
  const outbox = [];
  const nativePost = self.postMessage.bind(self);
  define("postMessage", function postMessage(message, options) {
    const transfer = (Array.isArray(options) ? options : options?.transfer) ?? [];
    if (transfer.some(each => !(each instanceof ArrayBuffer))) return nativePost(message, options);
    outbox.push(structuredClone(message, { transfer }));
  });

  // Responses wait until they are there as a whole.
  const arrived = [];
  let asked = 0;
  const nativeFetch = self.fetch;
  define("fetch", function fetch(...args) {
    asked += 1;
    return new Promise((resolve, reject) => {
      const arrive = settle => { asked -= 1; arrived.push(settle); };
      nativeFetch.apply(self, args).then(async response => {
        const { status, statusText, headers, url, redirected, type } = response;
        const empty = [101, 204, 205, 304].includes(status) || type.startsWith("opaque");
        if (empty) return arrive(() => resolve(response));
        const whole = new Response(await response.arrayBuffer(), { status, statusText, headers });
        for (const [name, value] of Object.entries({ url, redirected, type })) {
          Object.defineProperty(whole, name, { value });
        }
        return arrive(() => resolve(whole));
      }).catch(error => arrive(() => reject(error)));
    });
  });

  const channel = new MessageChannel();
  let wake;
  channel.port1.onmessage = () => wake();
  const breath = () => new Promise(resolve => {  // lets everything run that is there to be run
    wake = resolve;
    channel.port2.postMessage(null);
  });
  const nextTimer = () => {
    let first;
    for (const [id, timer] of timers) {
      if (timer.due <= Date.now() && (!first || timer.due < first[1].due)) first = [id, timer];
    }
    return first;
  };
  const fire = ([id, timer]) => {
    if (timer.repeats) timer.due += Math.max(1, timer.wait);
    else timers.delete(id);
    nesting = timer.nesting = timer.nesting + 1;
    try {
      if (typeof timer.callback === "function") timer.callback.apply(self, timer.args);
      else (0, eval)(String(timer.callback));
    } catch (error) {
      reportError(error);
    } finally {
      nesting = 0;
    }
  };
  const tick = async () => {
    for (;;) {
      await breath();
      const timer = inbox.length || arrived.length || asked ? undefined : nextTimer();
      if (inbox.length) deliver(inbox.shift());
      else if (arrived.length) arrived.shift()();
      else if (timer) fire(timer);
      else if (outbox.length) nativePost(outbox.shift());
      else if (!asked) return;
    }
  };
  Object.defineProperty(self, settings.tick, { value: tick });
})
