// Compile schemas with AJV in its strictest mode: `ajv_strict.mjs NODE_MODULES < schemas.json`.
//
// Reads an array of schemas, and prints an array of texts: what AJV said of each, empty if nothing.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.argv[2]}/`));
const { Ajv2020 } = require('ajv/dist/2020.js');
const addFormats = require('ajv-formats');

function said(schema) {
    const lines = [];
    const note = (...parts) => { lines.push(parts.join(' ')); };
    const ajv = new Ajv2020({ strict: true, allErrors: true, logger: { log: note, warn: note, error: note } });
    addFormats(ajv);
    try {
        ajv.compile(schema);
    } catch (error) {
        lines.push(error.message);
    }
    return lines.join('; ');
}

console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(said)));
