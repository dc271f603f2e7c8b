// Elements, and text of servers: always text nodes, with control characters shown as escapes, apart from its surroundings.

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([[{])(\s*)([\]}])?|([\]}])|,|\s+|./gs;

// Make an element: h("p", {class: "hint"}, "text", child).
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

// Text of a server as nodes.
function nodes(text) {
  const made = [];
  let end = 0;
  for (const found of text.matchAll(CONTROLS)) {
    if (found[0] === "\r" && text[found.index + 1] === "\n") continue;
    made.push(text.slice(end, found.index), h("span", {class: "escaped"}, escapeOf(found[0])));
    end = found.index + 1;
  }
  return [...made, text.slice(end)];
}

function escapeOf(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function peer(text, name = "bdi", attributes = {}) {
  return h(name, attributes, ...nodes(String(text ?? "")));
}

// Text of a server for attributes, such as titles.
export function plain(text) {
  return String(text ?? "").replace(CONTROLS, escapeOf);
}

// JSON text, indented and coloured without parsing, so that no number is rounded and no member is lost.
export function json(text) {
  const parts = [];
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  for (const [token, string, colon, number, word, open, , empty, close] of text.matchAll(TOKENS)) {
    if (string) parts.push(peer(string, "bdi", {class: colon ? "key" : "string"}), colon ? ": " : "");
    else if (number) parts.push(h("span", {class: "number"}, number));
    else if (word) parts.push(h("span", {class: "word"}, word));
    else if (open && empty) parts.push(open + empty);
    else if (open) { depth = Math.min(depth + 1, 200); parts.push(open + line()); }
    else if (close) { depth = Math.max(depth - 1, 0); parts.push(line() + close); }
    else if (token === ",") parts.push("," + line());
    else if (token.trim()) parts.push(...nodes(token));
  }
  return h("pre", {}, ...parts);
}
