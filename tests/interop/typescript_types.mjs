// Call each tool of the server `every_type.py` with its argument, and check the typed result against its schema.
//
//     node typescript_types.mjs NODE_MODULES REVISION stdio COMMAND [ARGUMENT …] < arguments.json
//
// Prints an array of texts: the error of each call, empty if there is none.

import { readFileSync } from 'node:fs';

import { call, client, connect, fresh, textOf } from './typescript_peer.mjs';

const given = JSON.parse(readFileSync(0));
const { transport } = await connect();
const said = [];
await client.listTools(undefined, fresh);
for (const [number, a] of given.entries()) {
    try {
        const result = await call(`t${number}`, { a });
        said.push(result.isError ? textOf(result) : '');
    } catch (error) {
        said.push(error.message);
    }
}
await transport.close();
console.log(JSON.stringify(said));
process.exit(0);
