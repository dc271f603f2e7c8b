// Forms from JSON Schemas. Each control has `element` and `read()`, which returns JSON text, or undefined for absence,
// and throws an Error for input that is not valid. Texts of numbers are passed on, so that none is rounded.

import {h, peer, plain} from "./text.js";

const MAX_DEPTH = 6;
let ids = 0;

export function makeForm(schema, root = schema) {
  return objectControl(resolve(schema, root), root, 0);
}

// Follow local references; an unknown one accepts anything.
function resolve(schema, root) {
  let found = schema;
  for (let count = 0; count < 20 && found && typeof found === "object" && typeof found.$ref === "string"; count++) {
    const parts = found.$ref.startsWith("#") ? found.$ref.slice(1).split("/").slice(1) : null;
    let target = parts ? root : undefined;
    for (const part of parts ?? []) target = isObject(target) ? own(target, decode(part)) : undefined;
    const {$ref, ...rest} = found;
    found = isObject(target) ? {...target, ...rest} : rest;
  }
  return isObject(found) ? found : {};
}

const isObject = value => value !== null && typeof value === "object" && !Array.isArray(value);
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
const decode = part => part.replaceAll("~1", "/").replaceAll("~0", "~");

// The schema without `null`, if that is all that a union adds.
function withoutNull(schema, root) {
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options) && !options.every(option => isObject(option) && "const" in option)) {
    const left = options.map(option => resolve(option, root)).filter(option => option.type !== "null");
    if (left.length === 1) return {...schema, ...left[0], anyOf: undefined, oneOf: undefined};
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter(type => type !== "null");
    if (types.length === 1) return {...schema, type: types[0]};
  }
  return schema;
}

function control(given, root, depth, id) {
  const schema = withoutNull(resolve(given, root), root);
  const choices = choicesOf(schema);
  if (choices) return choiceControl(choices, schema, id);
  if (schema.type === "boolean") return choiceControl([[true, "yes"], [false, "no"]], schema, id);
  if (schema.type === "integer" || schema.type === "number") return numberControl(schema, id);
  if (schema.type === "string") return textControl(schema, id);
  if (depth < MAX_DEPTH && schema.type === "array" && schema.items) return arrayControl(schema, root, depth, id);
  if (depth < MAX_DEPTH && schema.type === "object" && isObject(schema.properties)) return objectControl(schema, root, depth);
  return jsonControl(schema, id);
}

// Values with their titles: `enum`, `const`, or a union of constants.
function choicesOf(schema) {
  if (Array.isArray(schema.enum)) return schema.enum.map((value, place) => [value, schema.enumNames?.[place]]);
  if ("const" in schema) return [[schema.const]];
  const options = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(options) || !options.length || !options.every(one => isObject(one) && "const" in one)) return null;
  return options.map(one => [one.const, one.title]);
}

function choiceControl(choices, schema, id) {
  const select = h("select", {id});
  for (const [value, title] of choices) {
    const shown = title ?? (typeof value === "string" ? value : JSON.stringify(value));
    const option = h("option", {value: JSON.stringify(value)}, plain(shown));
    option.selected = JSON.stringify(value) === JSON.stringify(schema.default);
    select.append(option);
  }
  return {element: select, read: () => select.value};
}

function numberControl(schema, id) {
  const input = h("input", {id, inputmode: schema.type === "integer" ? "numeric" : "decimal", autocomplete: "off"});
  if (typeof schema.default === "number") input.value = schema.default;
  const expected = schema.type === "integer" ? /^-?(0|[1-9]\d*)$/ : /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
  const read = () => {
    const text = input.value.trim();
    if (!expected.test(text)) throw new Error(`expected ${schema.type === "integer" ? "a whole number" : "a number"}`);
    return text;
  };
  return {element: input, read};
}

const INPUT_TYPES = {date: "date", email: "email", uri: "url", password: "password"};

function textControl(schema, id) {
  const type = own(INPUT_TYPES, schema.format);
  const input = type ? h("input", {id, type, autocomplete: "off"}) : h("textarea", {id, rows: 1, class: "text", spellcheck: "false"});
  if (typeof schema.default === "string") input.value = schema.default;
  return {element: input, read: () => JSON.stringify(input.value)};
}

function jsonControl(schema, id) {
  const area = h("textarea", {id, rows: 3, spellcheck: "false", placeholder: "JSON"});
  if ("default" in schema) area.value = JSON.stringify(schema.default, null, 2);
  return {element: area, read: () => checkJson(area.value)};
}

export function checkJson(text) {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${error.message}`);
  }
  return text;
}

function arrayControl(schema, root, depth, id) {
  const list = h("div", {});
  const items = new Set();
  const add = value => {
    const place = items.size + 1;
    const itemSchema = resolve(schema.items, root);
    const made = control(value === undefined ? itemSchema : {...itemSchema, default: value}, root, depth + 1, `field-${++ids}`);
    made.element.setAttribute("aria-label", `item ${place}`);
    const remove = h("button", {type: "button", "aria-label": `Remove item ${place}`}, "×");
    const row = h("div", {class: "item"}, h("div", {class: "control"}, made.element), remove);
    const entry = {...made, row};
    remove.addEventListener("click", () => { items.delete(entry); row.remove(); });
    items.add(entry);
    list.append(row);
    return made;
  };
  const more = h("button", {type: "button", id, class: "plain", onclick: () => focusable(add().element)?.focus()}, "+ Add item");
  const element = h("div", {class: "nested"}, list, more);
  if (Array.isArray(schema.default)) schema.default.slice(0, 100).forEach(add);
  return {element, read: () => `[${[...items].map(item => item.read()).join(",")}]`};
}

const focusable = element => (element.matches("input, select, textarea, button") ? element : element.querySelector("input, select, textarea, button"));

function objectControl(schema, root, depth) {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const defaults = isObject(schema.default) ? schema.default : {};
  const fields = properties.map(([name, member]) => {
    const found = resolve(member, root);
    const given = Object.hasOwn(defaults, name) ? {...found, default: defaults[name]} : found;
    return field(name, given, root, depth, required.includes(name));
  });
  if (!fields.length) {
    const free = jsonControl({default: schema.default ?? {}}, `field-${++ids}`);
    return schema.additionalProperties === false || depth === 0 && !schema.additionalProperties
      ? {element: h("p", {class: "hint"}, "No arguments."), read: () => "{}"} : free;
  }
  const read = () => {
    const parts = fields.map(one => [one.name, one.read()]).filter(([, text]) => text !== undefined);
    return `{${parts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  };
  return {element: h("div", {class: depth ? "nested" : ""}, ...fields.map(one => one.element)), read};
}

// One member. An optional one is sent if its box is ticked, which input does.
function field(name, schema, root, depth, isRequired) {
  const id = `field-${++ids}`;
  const made = control(schema, root, depth + 1, id);
  const error = h("p", {class: "error", id: `${id}-error`, hidden: true});
  const box = isRequired ? null : h("input", {type: "checkbox", "aria-label": `Send ${plain(name)}`});
  const label = peer(name, "label", {for: id});
  const shape = withoutNull(schema, root);
  const kind = [shape.format ?? (choicesOf(shape) ? "" : shape.type), isRequired ? "required" : "optional"].filter(Boolean).join(", ");
  const element = h("div", {class: "field"},
    h("div", {class: "label"}, box, label, h("span", {class: "kind"}, plain(kind))),
    schema.description ? peer(schema.description, "p", {class: "hint"}) : null, made.element, error);
  if (box) made.element.addEventListener("input", () => { box.checked = true; });
  if (box) made.element.addEventListener("click", event => { if (event.target.closest(".plain")) box.checked = true; });
  const read = () => {
    error.hidden = true;
    const target = focusable(made.element);
    target?.removeAttribute("aria-invalid");
    if (box && !box.checked) return undefined;
    try {
      return made.read();
    } catch (found) {
      if (!found.isShown) {
        error.textContent = found.message;
        error.hidden = false;
        target?.setAttribute("aria-invalid", "true");
        target?.setAttribute("aria-describedby", error.id);
        target?.focus();
        found.isShown = true;
      }
      throw found;
    }
  };
  return {name, element, read};
}
