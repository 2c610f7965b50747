// The search runs in a worker. Where the site is opened as files, browsers refuse workers; there a hidden frame runs the same script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow) return;
        const message = new MessageEvent("message", {data: event.data});
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.frame.onload = () => {
        for (const message of this.waiting) this.frame.contentWindow.postMessage(message, "*");
        this.waiting = null;
      };
      // Inside, a worker's postMessage(data) leads to the page.
      this.frame.srcdoc = `<script>const here = postMessage.bind(window);
        postMessage = (data, where) => where ? here(data, where) : parent.postMessage(data, "*")</script>
        <script src="${new URL(address, location)}"></script>`;
      document.documentElement.append(this.frame);
    }
    postMessage(message) {
      if (this.waiting) this.waiting.push(message);
      else this.frame.contentWindow.postMessage(message, "*");
    }
    terminate() { this.frame.remove(); }
  };
}
