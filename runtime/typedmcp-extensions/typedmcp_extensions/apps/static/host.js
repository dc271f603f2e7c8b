// The part of a host that runs in its web page: it shows the page of a server in a sandboxed frame, and passes messages
// between the frame and the bridge of the host.

const PROXY_READY = "ui/notifications/sandbox-proxy-ready";
const RESERVED = "ui/notifications/sandbox-";

/**
 * Show a page in a container. Returns its frame, `receive` for messages of the bridge, and `remove`.
 *
 * `url` is the address of the proxy, whose origin differs from that of this page. `sandbox`, `allow` and `message` are
 * `PROXY_SANDBOX`, `page.allow` and `page.sandbox_message`. `send` gets the messages of the page, as JSON.
 */
export function showPage({container, url, sandbox, allow, message, send}) {
  const origin = new URL(url, location.href).origin;
  if (origin === location.origin) throw new Error("the proxy of a page needs an origin of its own");
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", sandbox);
  frame.allow = allow;
  frame.referrerPolicy = "origin";
  frame.src = url;

  function listen(event) {
    if (event.source !== frame.contentWindow || event.origin !== origin) return;
    const method = String(event.data?.method);
    if (method === PROXY_READY) frame.contentWindow.postMessage(message, origin);
    else if (!method.startsWith(RESERVED)) send(JSON.stringify(event.data));
  }

  addEventListener("message", listen);
  container.append(frame);
  return {
    frame,
    receive(text) {
      frame.contentWindow?.postMessage(JSON.parse(text), origin);
    },
    remove() {
      removeEventListener("message", listen);
      frame.remove();
    },
  };
}
