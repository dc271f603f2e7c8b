// The official TypeScript client of the scripts beside this module, with what it was asked and heard.
//
// It takes the arguments of the script: NODE_MODULES REVISION stdio|http|sse TARGET [ARGUMENT …].

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';

const [modules, revision, kind, target, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const library = name => import(pathToFileURL(require.resolve(name)));
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await library('@modelcontextprotocol/client');
const { StdioClientTransport } = await library('@modelcontextprotocol/client/stdio');

export const modern = revision === '2026-07-28';
export const WATCHED = 'test://watched-resource';
export const ROOT = 'file:///home/ada/project';
const ANSWER = 'Paris, of course.';
// The content that the user fills into any form. Scripts may add to it.
export const forms = {
    name: 'Ada', color: 'green', ok: true, context: 'tea', username: 'ada', email: 'ada@example.org',
    age: 36, score: 1.5, status: 'pending', verified: false,
    untitledSingle: 'option2', titledSingle: 'value1', legacyEnum: 'opt2',
    untitledMulti: ['option1', 'option3'], titledMulti: ['value1', 'value2'],
};
export const anything = { '~standard': { version: 1, vendor: 'interop', validate: value => ({ value }) } };

export const asked = [];
export const logged = [];
export const changed = [];
export const requested = new Set();
// The client ignores progress that it reads together with the response, so this is what has arrived.
export const progressed = [];
let refusal;

const HIDDEN = new Set(['_meta', 'resultType', 'ttlMs', 'cacheScope', 'task']);
/** What an object says, without what is about the protocol rather than its contents. */
export function plain(value) {
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).filter(([key]) => !HIDDEN.has(key)).map(([k, v]) => [k, plain(v)]));
}

export const client = new Client({ name: 'interop', version: '1' }, {
    capabilities: { sampling: {}, elicitation: revision >= '2025-11-25' ? { form: {}, url: {} } : {}, roots: { listChanged: true } },
    ...(modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: [revision] }),
});

export const answers = {
    'sampling/createMessage': ({ params }) => {
        asked.push(plain(params));
        return { role: 'assistant', content: { type: 'text', text: ANSWER }, model: 'a-model' };
    },
    'elicitation/create': ({ params }) => {
        asked.push(plain(params));
        if (params.mode === 'url') return { action: 'accept' };
        const names = Object.keys(params.requestedSchema.properties).filter(name => name in forms);
        return { action: 'accept', content: Object.fromEntries(names.map(name => [name, forms[name]])) };
    },
    'roots/list': () => {
        asked.push('roots');
        return { roots: [{ uri: ROOT, name: 'project' }] };
    },
};
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);

client.setNotificationHandler('notifications/message', ({ params }) => {
    logged.push([params.level, params.data, params.logger ?? null]);
});
client.setNotificationHandler('notifications/resources/updated', ({ params }) => { changed.push(params.uri); });
for (const list of ['tools', 'prompts', 'resources']) {
    client.setNotificationHandler(`notifications/${list}/list_changed`, () => { changed.push(list); });
}

/** Note which requests come from the server: on the newest revision there must be none. And errors as they came. */
function watch(transport) {
    const hear = transport.onmessage;
    transport.onmessage = (message, ...rest) => {
        if ('method' in message && 'id' in message) requested.add(message.method);
        if ('error' in message) refusal = message.error;
        if (message.method === 'notifications/progress') progressed.push(message.params);
        hear?.(message, ...rest);
    };
}

export const fresh = { cacheMode: 'bypass' };
export const call = (name, args = {}, options = {}, more = {}) => client.callTool({ name, arguments: args, ...more }, options);
export const textOf = result => result.content.map(block => block.text ?? '').join('');
export const read = async uri => plain(await client.readResource({ uri }, fresh)).contents;

/** The error in a response with status 404, where the newest revision wants it, and this client does not look. */
function unread(error) {
    if (error.data?.status !== 404) throw error;
    return JSON.parse(error.data.text).error;
}

/** What an attempt comes to: errors as the server sent them, since the client makes some into others. */
export async function refused(attempt) {
    refusal = undefined;
    try {
        return { answered: plain(await attempt()) };
    } catch (error) {
        const { code, message, data } = refusal ?? unread(error);
        return { code, message, data: data ?? null };
    }
}

/** Hear of changes while something is done. */
export async function listening(uri, act) {
    if (modern) {
        const wanted = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [uri] };
        const subscription = await client.listen(wanted);
        await act();
        await subscription.close();
    } else {
        await client.subscribeResource({ uri });
        await act();
        await client.unsubscribeResource({ uri });
    }
}

const transports = {
    stdio: () => new StdioClientTransport({ command: target, args }),
    http: () => new StreamableHTTPClientTransport(new URL(target)),
    sse: () => new SSEClientTransport(new URL(target)),
};
/** Connect, and return the version of the client and the agreements with the server. */
export async function connect() {
    const transport = transports[kind]();
    await client.connect(transport);
    watch(transport);
    const { version } = JSON.parse(readFileSync(`${modules}/@modelcontextprotocol/client/package.json`));
    const about = {
        protocolVersion: client.getNegotiatedProtocolVersion(),
        serverInfo: plain(client.getServerVersion()),
        capabilities: plain(client.getServerCapabilities()),
        instructions: client.getInstructions(),
    };
    return { client: `@modelcontextprotocol/client ${version}`, about, transport };
}

/** Run steps in turn, end the connection, and print what was seen. */
export async function run(steps) {
    const { transport, ...seen } = await connect();
    for (const [name, step] of Object.entries(steps)) {
        try {
            seen[name] = await step();
        } catch (error) {
            seen[name] = { failed: `${error.name}: ${error.message}` };
        }
    }
    seen.requested = [...requested].sort();
    if (kind === 'http') await transport.terminateSession();
    await client.close();
    console.log(JSON.stringify(seen));
}
