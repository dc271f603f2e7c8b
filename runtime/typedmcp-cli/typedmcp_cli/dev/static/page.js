// The page: shows the events of the inspector, and sends actions. Everything from a server goes through text.js.

import {checkJson, makeForm} from "./forms.js";
import {h, json, peer, plain} from "./text.js";

const $ = id => document.getElementById(id);
const KINDS = {tools: "Tools", resources: "Resources", resourceTemplates: "Templates", prompts: "Prompts"};
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const SOUNDS = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm", "audio/mp4", "audio/flac"]);
const MAX_ROWS = 2000; // messages in the document; the oldest leave it
const MAX_CALLS = 50;
const MAX_LISTED = 500;

let lists = {}, selected = null, faults = 0, shownForm = null;
const calls = new Map();

// `body` is JSON text, since forms give text.
async function act(action, body = "") {
  const response = await fetch("actions", {
    method: "POST", headers: {"Content-Type": "application/json"}, body: `{"action":${JSON.stringify(action)}${body && `,${body}`}}`,
  });
  const fault = (await response.text()).trim();
  if (fault) throw new Error(fault);
}

const text = value => JSON.stringify(value);
const report = error => { $("problem").textContent = error.message; $("problem").hidden = false; };
const view = name => { document.body.dataset.view = name; };
const clock = seconds => new Date(seconds * 1000).toLocaleTimeString([], {hour12: false}) + "." + String(Math.floor(seconds * 1000) % 1000).padStart(3, "0");
const bytes = size => (size < 1024 ? `${size} B` : size < 1048576 ? `${(size / 1024).toFixed(1)} KiB` : `${(size / 1048576).toFixed(1)} MiB`);

// The connection

const events = {
  begin() {
    $("frames").replaceChildren(); $("calls").replaceChildren(); $("questions").replaceChildren();
    calls.clear();
    faults = 0;
    showFaults();
  },
  ready() {},
  cleared() {
    $("frames").replaceChildren();
    faults = 0;
    showFaults();
  },
  status(data) {
    $("state").className = `dot ${data.state}`;
    $("state").setAttribute("aria-label", data.state);
    $("server-name").replaceChildren(peer(data.server?.title ?? data.server?.name ?? data.target));
    $("server-version").textContent = data.state === "connected" ? plain(`${data.server?.version ?? ""} · ${data.revision}`) : data.state;
    document.title = `${plain(data.server?.name ?? data.target)} · typedmcp dev`;
    const options = [["", "any (newest first)"], ...data.revisions.map(revision => [revision, revision])];
    $("revision").replaceChildren(...options.map(([value, shown]) => h("option", {value}, shown)));
    $("revision").value = data.chosen ?? "";
    $("problem").hidden = !data.error;
    $("problem").replaceChildren(peer(data.error));
    if (data.state === "connected" && !selected) showServer(data);
  },
  lists(data) { lists = data; showLists(); refreshSelected(); },
  connection(data) { note("connection", `Connection ${data.number}: ${data.reason}`, data.time); },
  frame: showFrame,
  log(data) { note(["debug", "info", "notice"].includes(data.level) ? "log" : "warning", `${data.level}: ${data.logger ? `${data.logger}: ` : ""}${data.text}`, data.time); },
  diagnostic(data) { note("warning", data.text, data.time); },
  stderr(data) { note("stderr", data.text, data.time); },
  question: showQuestion,
  answered(data) { document.getElementById(`question-${data.id}`)?.remove(); },
  call: showCall,
  progress: showProgress,
  result: showResult,
};

const stream = new EventSource("events");
for (const [name, handle] of Object.entries(events)) {
  stream.addEventListener(name, event => handle(JSON.parse(event.data)));
}
stream.addEventListener("error", () => { $("state").className = "dot failed"; $("server-version").textContent = "typedmcp dev has ended"; });

$("connection").addEventListener("submit", event => {
  event.preventDefault();
  act("connect", `"revision":${text($("revision").value || null)}`).catch(report);
});
$("revision").addEventListener("change", () => $("connection").requestSubmit());
$("clear").addEventListener("click", () => act("clear").catch(report));
$("only-faults").addEventListener("change", () => $("frames").classList.toggle("only-faults", $("only-faults").checked));
$("filter").addEventListener("input", showLists);
for (const button of document.querySelectorAll("#views button")) button.addEventListener("click", () => view(button.dataset.view));

document.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest?.("form")?.requestSubmit();
});

// Features

const keyOf = (kind, item) => (kind === "resources" ? item.uri : kind === "resourceTemplates" ? item.uriTemplate : item.name);

function showLists() {
  const wanted = $("filter").value.toLowerCase();
  const parts = [];
  for (const [kind, title] of Object.entries(KINDS)) {
    const found = (lists[kind] ?? []).filter(item => `${keyOf(kind, item)} ${item.title ?? ""}`.toLowerCase().includes(wanted));
    if (!found.length) continue;
    parts.push(h("h2", {}, `${title} (${found.length})`));
    parts.push(h("ul", {}, ...found.slice(0, MAX_LISTED).map(item => h("li", {}, featureButton(kind, item)))));
    if (found.length > MAX_LISTED) parts.push(h("p", {class: "hint"}, `The first ${MAX_LISTED} are shown; filter to see others.`));
  }
  $("lists").replaceChildren(...(parts.length ? parts : [h("p", {class: "hint"}, wanted ? "Nothing matches." : "The server offers nothing.")]));
}

function featureButton(kind, item) {
  const key = keyOf(kind, item);
  const open = () => { select(kind, key); view("work"); };
  return h("button", {type: "button", onclick: open, "aria-current": String(selected?.kind === kind && selected.key === key)},
    peer(key, "bdi", {class: "name"}), item.description || item.title ? peer(item.title ?? item.description, "bdi", {class: "hint"}) : null);
}

function refreshSelected() {
  if (!selected) return;
  const item = (lists[selected.kind] ?? []).find(one => keyOf(selected.kind, one) === selected.key);
  if (JSON.stringify(item) !== shownForm) select(selected.kind, selected.key);
}

function select(kind, key) {
  selected = {kind, key};
  const item = (lists[kind] ?? []).find(one => keyOf(kind, one) === key);
  shownForm = JSON.stringify(item);
  showLists();
  $("feature").replaceChildren(item ? featureCard(kind, key, item) : h("p", {class: "card hint"}, "The server no longer offers this."));
}

function showServer(data) {
  const names = Object.keys(data.capabilities ?? {}).join(", ");
  $("feature").replaceChildren(h("div", {class: "card"},
    h("h3", {}, peer(data.server?.name ?? data.target)),
    data.instructions ? peer(data.instructions, "p", {class: "description"}) : null,
    peer(`Capabilities: ${names || "none"}`, "p", {class: "hint"}),
    h("p", {class: "hint"}, "Choose a feature to call it. Every message appears under Messages, checked against the schema of its revision.")));
}

function featureCard(kind, key, item) {
  const form = formOf(kind, item);
  const raw = h("textarea", {rows: 8, class: "raw", spellcheck: "false", "aria-label": "Arguments as JSON", hidden: true});
  const fault = h("p", {class: "error", role: "alert", hidden: true});
  const toggle = h("button", {type: "button", class: "plain", hidden: kind.startsWith("resource"), "aria-pressed": "false"}, "Edit as JSON");
  toggle.addEventListener("click", () => {
    if (raw.hidden) try { raw.value = JSON.stringify(JSON.parse(form.read()), null, 2); } catch { raw.value ||= "{}"; }
    raw.hidden = !raw.hidden;
    form.element.hidden = !raw.hidden;
    toggle.textContent = raw.hidden ? "Edit as JSON" : "Edit as form";
    toggle.setAttribute("aria-pressed", String(!raw.hidden));
  });
  const call = async event => {
    event.preventDefault();
    fault.hidden = true;
    try {
      const given = raw.hidden ? form.read() : checkJson(raw.value);
      const [name, values] = kind.startsWith("resource") ? [form.uri(), "{}"] : [key, given];
      const sent = kind === "resourceTemplates" ? "resources" : kind;
      await act("call", `"id":${text(crypto.randomUUID())},"kind":${text(sent)},"name":${text(name)},"arguments":${values}`);
    } catch (error) {
      if (error.isShown) return;
      fault.textContent = error.message;
      fault.hidden = false;
    }
  };
  const verb = {tools: "Call", prompts: "Get"}[kind] ?? "Read";
  const hints = Object.entries(item.annotations ?? {}).filter(([, value]) => value === true).map(([name]) => name);
  return h("form", {class: "card", onsubmit: call, novalidate: true},
    h("div", {class: "row"}, h("h3", {}, peer(item.title ?? key)), ...[...hints, item.mimeType].filter(Boolean).map(name => peer(name, "span", {class: "tag"}))),
    item.title ? peer(key, "p", {class: "hint"}) : null,
    item.description ? peer(item.description, "p", {class: "description"}) : null,
    form.element, raw, fault,
    h("div", {class: "row"}, h("button", {class: "primary"}, verb), h("span", {class: "spring"}), toggle),
    item.inputSchema ? details("Input schema", item.inputSchema) : null,
    item.outputSchema ? details("Output schema", item.outputSchema) : null);
}

function details(title, value) {
  const made = h("details", {}, h("summary", {class: "hint"}, title));
  made.addEventListener("toggle", () => made.childElementCount > 1 || made.append(json(JSON.stringify(value))));
  return made;
}

function formOf(kind, item) {
  if (kind === "tools") return makeForm(item.inputSchema);
  if (kind === "resources") return {element: h("div", {}), read: () => "{}", uri: () => item.uri};
  const args = kind === "prompts" ? item.arguments ?? [] : variablesOf(item.uriTemplate).map(name => ({name, required: true}));
  const properties = Object.fromEntries(args.map(one => [one.name, {type: "string", description: one.description}]));
  const form = makeForm({type: "object", properties, required: args.filter(one => one.required).map(one => one.name)});
  return {...form, uri: () => expand(item.uriTemplate, JSON.parse(form.read()))};
}

// URI templates (RFC 6570) with texts as values.
const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
const PREFIXES = {"#": ["#", ","], ".": [".", "."], "/": ["/", "/"], ";": [";", ";"], "?": ["?", "&"], "&": ["&", "&"]};
const variable = one => one.replace(/(:\d+|\*)$/, "");
const variablesOf = template => [...new Set([...template.matchAll(EXPRESSION)].flatMap(found => found[2].split(",").map(variable)))];

function expand(template, values) {
  return template.replace(EXPRESSION, (_, operator, names) => {
    const [first, separator] = PREFIXES[operator] ?? ["", ","];
    const encode = "+#".includes(operator) && operator ? value => encodeURI(value) : encodeURIComponent;
    const parts = names.split(",").map(variable).filter(name => values[name]).map(name => (";?&".includes(operator) && operator ? `${name}=` : "") + encode(values[name]));
    return parts.length ? first + parts.join(separator) : "";
  });
}

// Calls

function showCall({id, name, kind, time}) {
  const cancel = h("button", {type: "button", class: "plain", onclick: () => act("cancel", `"id":${text(id)}`).catch(report)}, "Cancel");
  const head = h("div", {class: "call-head"}, peer(name, "span", {class: "name"}), h("span", {class: "tag"}, kind.replace(/s$/, "")),
    h("span", {class: "spring"}), h("span", {class: "hint outcome"}, `started ${clock(time)}`), cancel);
  const card = h("article", {class: "card call", "aria-label": plain(`Call of ${name}`)}, head, h("div", {class: "body"}));
  calls.set(id, {card, cancel});
  $("calls").prepend(card);
  while ($("calls").childElementCount > MAX_CALLS) $("calls").lastElementChild.remove();
}

function showProgress({id, progress, total, message}) {
  const call = calls.get(id);
  if (!call) return;
  const bar = h("progress", total ? {max: total, value: progress, "aria-label": "progress"} : {"aria-label": "progress"});
  const amount = total ? `${progress} of ${total}` : String(progress);
  call.card.querySelector(".body").replaceChildren(bar, peer(`${amount}${message ? ` · ${message}` : ""}`, "p", {class: "hint"}));
}

function showResult({id, seconds, result, error, code, data}) {
  const call = calls.get(id);
  if (!call) return;
  call.cancel.remove();
  const failed = error !== undefined || result.isError === true;
  const outcome = call.card.querySelector(".outcome");
  outcome.textContent = `${failed ? "failed" : "done"} in ${seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`}`;
  outcome.classList.toggle("error", failed);
  const parts = error === undefined ? resultParts(result) : [peer(code === undefined ? error : `${error} (${code})`, "p", {class: "error"}), data ? json(data) : null];
  call.card.querySelector(".body").replaceChildren(...parts.filter(Boolean));
}

function resultParts(result) {
  const parts = [...(result.content ?? []), ...(result.contents ?? [])].map(block => h("div", {class: "content"}, content(block)));
  for (const message of result.messages ?? []) {
    parts.push(h("div", {class: "content"}, h("p", {class: "hint"}, plain(message.role)), content(message.content)));
  }
  if (result.structuredContent) parts.push(h("div", {class: "content"}, h("p", {class: "hint"}, "Structured content"), json(result.structuredContent)));
  return parts.length ? parts : [h("p", {class: "hint"}, "The result is empty.")];
}

function content(block) {
  if (block.type === "resource") return h("div", {}, peer(block.resource.uri, "p", {class: "hint"}), content(block.resource));
  if (block.type === "resource_link") return h("div", {}, peer(block.title ?? block.name), peer(block.uri, "span", {class: "url"}));
  if (typeof block.text === "string") return looksLikeJson(block.text) ? json(block.text) : peer(block.text, "pre");
  return media(block.data ?? block.blob ?? "", String(block.mimeType ?? ""), block.uri);
}

function looksLikeJson(value) {
  if (!/^\s*[[{]/.test(value)) return false;
  try { JSON.parse(value); return true; } catch { return false; }
}

// Pictures and sound of known types are `data:` URLs; anything else is described.
function media(data, mimeType, uri) {
  const type = mimeType.toLowerCase().split(";")[0].trim();
  const size = bytes(Math.floor(data.replace(/=+$/, "").length * 3 / 4));
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(data)) {
    if (PICTURES.has(type)) return h("img", {src: `data:${type};base64,${data}`, alt: plain(`Picture${uri ? ` of ${uri}` : ""}, ${type}, ${size}`)});
    if (SOUNDS.has(type)) return h("audio", {controls: true, src: `data:${type};base64,${data}`});
  }
  return peer(`${mimeType || "Data"}${uri ? ` of ${uri}` : ""}, ${size}`, "p", {class: "hint"});
}

// Questions of the server

function showQuestion({id, kind, params}) {
  const fault = h("p", {class: "error", role: "alert", hidden: true});
  const [title, body, read] = {form: formQuestion, url: urlQuestion, sampling: samplingQuestion}[kind](params);
  const send = async (action, more = "") => {
    try {
      await act("answer", `"id":${text(id)},"answer":{"action":${text(action)}${more}}`);
    } catch (error) {
      fault.textContent = error.message;
      fault.hidden = false;
    }
  };
  const accept = event => {
    event.preventDefault();
    try { send("accept", read()); } catch (error) { if (!error.isShown) { fault.textContent = error.message; fault.hidden = false; } }
  };
  const button = (label, action) => h("button", {type: "button", onclick: () => send(action)}, label);
  const card = h("form", {id: `question-${id}`, class: "card question", onsubmit: accept, novalidate: true}, h("h3", {}, title), ...body, fault,
    h("div", {class: "row"}, h("button", {class: "primary"}, kind === "sampling" ? "Send" : "Accept"), button("Decline", "decline"),
      kind === "sampling" ? null : button("Cancel", "cancel")));
  $("questions").append(card);
  view("work");
  card.querySelector("input, select, textarea, button")?.focus();
}

function formQuestion(params) {
  const form = makeForm(params.requestedSchema ?? {type: "object"});
  return ["The server asks", [peer(params.message, "p", {class: "description"}), form.element], () => `,"content":${form.read()}`];
}

function urlQuestion(params) {
  const link = /^https?:\/\//i.test(params.url)
    ? h("a", {href: params.url, target: "_blank", rel: "noopener noreferrer", class: "url"}, plain(params.url)) : peer(params.url, "span", {class: "url"});
  const hint = h("p", {class: "hint"}, "Check the address before you open it. Accept means that you consent to visit it.");
  return ["The server asks you to visit a page", [peer(params.message, "p", {class: "description"}), link, hint], () => ""];
}

function samplingQuestion(params) {
  const answer = h("textarea", {rows: 4, id: "sampling-answer"});
  const model = h("input", {id: "sampling-model", placeholder: "a person", autocomplete: "off"});
  const messages = params.messages.map(message => h("div", {class: "content"}, h("p", {class: "hint"}, plain(message.role)),
    ...(Array.isArray(message.content) ? message.content : [message.content]).map(content)));
  const system = params.systemPrompt ? peer(`System prompt: ${params.systemPrompt}`, "p", {class: "hint"}) : null;
  const fields = [h("label", {for: "sampling-answer"}, "Answer of the model"), answer, h("label", {for: "sampling-model"}, "Name of the model"), model];
  return ["The server asks a model", [system, ...messages, ...fields], () => `,"text":${text(answer.value)},"model":${text(model.value)}`];
}

// Messages

function showFrame(data) {
  const isInvalid = data.faults.length > 0;
  const sent = data.sender === "client";
  const detail = h("div", {class: "detail"});
  const row = h("details", {}, h("summary", {},
    h("span", {class: "direction", role: "img", "aria-label": sent ? "sent" : "received"}, sent ? "→" : "←"),
    peer(summaryOf(data.text), "span", {class: "what"}), isInvalid ? h("span", {class: "badge"}, "invalid") : null,
    h("span", {class: "size"}, bytes(data.size)), h("time", {}, clock(data.time))), detail);
  row.addEventListener("toggle", () => {
    if (detail.childElementCount) return;
    const verdict = isInvalid ? data.faults.map(fault => peer(fault, "p", {class: "error"})) : [h("p", {class: "hint"}, `Valid in ${data.revision}`)];
    const cut = data.text.length < data.size && new TextEncoder().encode(data.text).length < data.size
      ? h("p", {class: "hint"}, `The beginning of ${bytes(data.size)} is shown; all of it was checked.`) : null;
    detail.append(...verdict, isInvalid ? h("p", {class: "hint"}, `Checked as ${data.revision}`) : "", json(data.text), ...(cut ? [cut] : []));
  });
  append(h("li", {class: `${sent ? "sent" : "received"}${isInvalid ? " invalid" : ""}`}, row));
  faults += isInvalid;
  showFaults();
}

// The method, or what a response is to; of a message that is cut or broken, its beginning.
const methods = new Map();
function summaryOf(source) {
  try {
    const message = JSON.parse(source);
    if (message.method) {
      if (message.id !== undefined) methods.set(message.id, message.method);
      return `${message.method}${message.id === undefined ? "" : `  #${message.id}`}`;
    }
    if ("id" in message) return `${message.error ? "error" : "result"}  #${message.id}${methods.has(message.id) ? `  ${methods.get(message.id)}` : ""}`;
  } catch { /* shown as it is */ }
  return source.slice(0, 100);
}

function note(kind, shown, time) {
  append(h("li", {class: `note ${kind}`}, peer(shown, "span", {class: "what"}), h("time", {}, clock(time))));
}

function append(row) {
  const list = $("frames"), box = $("traffic");
  const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  list.append(row);
  if (list.childElementCount > MAX_ROWS) list.firstElementChild.remove();
  if (follows) box.scrollTop = box.scrollHeight;
}

function showFaults() {
  $("faults").hidden = !faults;
  $("faults").textContent = `${faults} invalid`;
}
