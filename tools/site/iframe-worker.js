// A worker of a page that was opened as a file: browsers start none there. Its script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const page = frame.contentDocument;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) => urls.forEach((one) => this.load(page, one));
      this.ready = this.load(page, url);
    }

    load(page, url) {
      return new Promise((done, fail) => {
        const script = page.createElement("script");
        Object.assign(script, { src: new URL(url, location.href), onload: done, onerror: fail });
        page.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }

    set onmessage(listener) {
      this.addEventListener("message", listener);
    }

    set onerror(listener) {
      this.addEventListener("error", listener);
    }
  };
}
