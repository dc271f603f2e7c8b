// A server that offers what `offer.json` says, on the low level of the official TypeScript SDK.
//
//     node typescript.mjs NODE_MODULES [http]
//
// The SDK lives in the folder NODE_MODULES. The client decides on the era. Over HTTP it prints the URL that it serves.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';

const [modules, transport = 'stdio'] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const library = name => import(pathToFileURL(require.resolve(name)));
const {
    Server, ProtocolError, WebStandardStreamableHTTPServerTransport, createMcpHandler, inputRequired, isLegacyRequest,
} = await library('@modelcontextprotocol/server');
const { serveStdio } = await library('@modelcontextprotocol/server/stdio');

const offer = JSON.parse(readFileSync(new URL('offer.json', import.meta.url), 'utf8'));

let cancelled = 0;
let rootsChanges = 0;
let watched = 0;

const userMessage = text => ({ role: 'user', content: { type: 'text', text } });
// The text is for revisions without structured content.
const valueResult = value => ({
    content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: { value },
});

function page(params, member, items) {
    const start = Number((params?.cursor ?? 'from 0').slice('from '.length));
    const end = start + offer.page;
    return { [member]: items.slice(start, end), ...(end < items.length && { nextCursor: `from ${end}` }) };
}

// Asks what has not been answered yet. Where the wire has no rounds, the SDK sends requests instead.
function askInRounds(rounds, { mcpReq }, give) {
    const answers = { ...JSON.parse(mcpReq.requestState() ?? '{}'), ...mcpReq.inputResponses };
    const inputRequests = rounds.find(asked => Object.keys(asked).some(key => !(key in answers)));
    return inputRequests ? inputRequired({ inputRequests, requestState: JSON.stringify(answers) }) : give(answers);
}

async function progress({ mcpReq }, done, total, message) {
    const { progressToken } = mcpReq._meta ?? {};
    if (progressToken === undefined) return;
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: done, total, message } });
}

let modern; // serves the newest revision over HTTP, where no connection outlives a call

const changes = {
    tools: server => server.sendToolListChanged(),
    prompts: server => server.sendPromptListChanged(),
    resources: server => server.sendResourceListChanged(),
    other: (server, uri) => server.sendResourceUpdated({ uri }),
};
const published = {
    tools: () => modern.notify.toolsChanged(),
    prompts: () => modern.notify.promptsChanged(),
    resources: () => modern.notify.resourcesChanged(),
    other: (server, uri) => modern.notify.resourceUpdated(uri),
};

const tools = {
    echo: (server, context, { value }) => valueResult(value),
    progress: async (server, context) => {
        for (let done = 1; done <= 5; done++) await progress(context, done, 5, `step ${done}`);
        return valueResult('done');
    },
    wait: async (server, context) => {
        const { signal } = context.mcpReq;
        const over = new Promise((_, reject) => {
            signal.addEventListener('abort', () => (cancelled++, reject(new Error('cancelled'))));
        });
        await progress(context, 0, 1, 'waiting');
        await over;
    },
    cancelled: () => valueResult(cancelled),
    log: async (server, { mcpReq }) => {
        for (const level of offer.levels) await mcpReq.log(level, { level }, 'offer');
        return valueResult('logged');
    },
    change: async (server, context, { what }) => {
        if (what === 'test://watched') watched++;
        const ways = transport === 'http' && !server.transport?.sessionId ? published : changes;
        await (ways[what] ?? ways.other)(server, what);
        return valueResult('changed');
    },
    roots_changes: () => valueResult(rootsChanges),
    broken: () => {
        throw new ProtocolError(-31999, "I'm a teapot", { short: true, stout: [1, null] });
    },
    crash: () => process.exit(3),
};

const handlers = {
    'tools/list': (server, params) => page(params, 'tools', offer.tools),
    'resources/list': (server, params) => page(params, 'resources', offer.resources),
    'resources/templates/list': (server, params) => page(params, 'resourceTemplates', offer.templates),
    'prompts/list': (server, params) => page(params, 'prompts', offer.prompts),
    'tools/call': (server, { name, arguments: given = {} }, context) => {
        if (name in offer.results) return offer.results[name];
        if (name in offer.questions) return askInRounds(offer.questions[name], context, valueResult);
        if (!(name in tools)) throw new ProtocolError(-32602, `Unknown tool: ${name}`, { name });
        return tools[name](server, context, given);
    },
    'resources/read': (server, { uri }, context) => {
        if (uri === 'test://watched')
            return { contents: [{ uri, mimeType: 'text/plain', text: `changed ${watched} time(s)` }] };
        if (uri === 'test://asked')
            return askInRounds(offer.questions.roots, context, ({ folders }) => ({
                contents: [{ uri, text: folders.roots[0].uri }],
            }));
        if (uri.startsWith('test://item/')) {
            const text = `item ${uri.slice('test://item/'.length)}`;
            return { contents: [{ uri, mimeType: 'text/plain', text }] };
        }
        if (!(uri in offer.contents)) throw new ProtocolError(-32002, `Resource not found: ${uri}`, { uri });
        return { contents: offer.contents[uri] };
    },
    'prompts/get': (server, { name, arguments: given = {} }, context) => {
        if (name === 'greet') {
            const text = `Hello ${given.name}, ${given.style ?? 'plainly'}.`;
            return { description: 'Greets somebody.', messages: [userMessage(text)] };
        }
        if (name === 'asked')
            return askInRounds(offer.questions.rounds, context, ({ second }) => ({
                messages: [userMessage(`I like ${second.content.color}.`)],
            }));
        if (!(name in offer.messages)) throw new ProtocolError(-32602, `Unknown prompt: ${name}`, { name });
        return { messages: offer.messages[name] };
    },
    'completion/complete': (server, { ref, argument: { value }, context }) => {
        if (ref.type === 'ref/prompt') {
            const values = offer.styles.filter(style => style.startsWith(value));
            return { completion: { values, total: values.length, hasMore: false } };
        }
        const start = context?.arguments?.prefix ?? '';
        const values = Array.from({ length: 100 }, (_, n) => `${start}${value}${n}`);
        return { completion: { values, total: 150, hasMore: true } };
    },
    'resources/subscribe': () => ({}),
    'resources/unsubscribe': () => ({}),
};

function offered() {
    const changing = { listChanged: true };
    const capabilities = {
        tools: changing, prompts: changing, resources: { ...changing, subscribe: true }, logging: {}, completions: {},
    };
    const server = new Server(offer.info, { capabilities, instructions: offer.instructions });
    for (const [method, handle] of Object.entries(handlers))
        server.setRequestHandler(method, (request, context) => handle(server, request.params, context));
    server.setNotificationHandler('notifications/roots/list_changed', () => void rootsChanges++);
    return server;
}

const sessions = new Map();

// Older revisions have sessions, in which the server can ask.
async function serveOlder(request) {
    const known = sessions.get(request.headers.get('mcp-session-id'));
    if (known) return known.handleRequest(request);
    if (request.headers.has('mcp-session-id')) return new Response('No such session', { status: 404 });
    const opened = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => void sessions.set(id, opened),
        onsessionclosed: id => void sessions.delete(id),
    });
    await offered().connect(opened);
    return opened.handleRequest(request);
}

async function respond(incoming, outgoing) {
    const given = new AbortController();
    outgoing.on('close', () => given.abort());
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method, headers: incoming.headers, duplex: 'half', signal: given.signal,
        body: incoming.method === 'POST' ? Readable.toWeb(incoming) : undefined,
    });
    const response = await ((await isLegacyRequest(request)) ? serveOlder(request) : modern.fetch(request));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.flushHeaders();
    if (!response.body) return outgoing.end();
    Readable.fromWeb(response.body).on('error', () => outgoing.destroy()).pipe(outgoing);
}

if (transport === 'http') {
    modern = createMcpHandler(offered, { legacy: 'reject' });
    const server = createServer((incoming, outgoing) => void respond(incoming, outgoing));
    server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
    process.stdin.on('end', () => process.exit(0)).resume();
} else serveStdio(offered);
