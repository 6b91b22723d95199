// Pages opened from disk may not start workers, and the search runs in one. Here a hidden frame is the worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inner = this.frame.contentWindow
      inner.document.open()
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = (...urls) => Promise.all(urls.map(src => load(inner, src)))
      inner.document.write("<!doctype html><body></body>")
      inner.document.close()
      load(inner, url).then(() => {
        this.waiting.forEach(data => this.deliver(data))
        this.waiting = null
      }, () => this.dispatchEvent(new Event("error")))
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.deliver(data)
    }

    deliver(data) {
      const inner = this.frame.contentWindow
      inner.dispatchEvent(new inner.MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }

  const load = (inner, src) => new Promise((done, failed) => {
    const script = inner.document.createElement("script")
    Object.assign(script, { src, onload: done, onerror: failed })
    inner.document.body.appendChild(script)
  })
}
