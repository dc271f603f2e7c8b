// The low-level server of the official TypeScript SDK over HTTP: `node official_typescript.mjs app|streams PORT`.
//
// In the older revision, `app` responds with JSON and `streams` with streams; in the newer one, it depends on the handler.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createMcpHandler, isInitializeRequest, Server } from '@modelcontextprotocol/server';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';

const [kind, port] = process.argv.slice(2);

function makeServer() {
    const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', async ({ params }, ctx) => {
        if (params.name === 'report') {
            const progressToken = ctx.mcpReq._meta.progressToken;
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
        }
        return { content: [{ type: 'text', text: params.arguments.text }] };
    });
    server.setRequestHandler('tools/list', async () => ({
        tools: ['echo', 'report'].map(name => ({ name, inputSchema: { type: 'object' } }))
    }));
    return server;
}

const modern = toNodeHandler(createMcpHandler(makeServer, { legacy: 'reject' }));
const sessions = new Map();

async function readBody(request) {
    const parts = [];
    for await (const part of request) parts.push(part);
    return JSON.parse(Buffer.concat(parts));
}

async function openSession() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: kind === 'app',
        onsessioninitialized: id => { sessions.set(id, transport); }
    });
    await makeServer().connect(transport);
    return transport;
}

async function legacy(request, response) {
    const message = request.method === 'POST' ? await readBody(request) : undefined;
    const known = sessions.get(request.headers['mcp-session-id']);
    const transport = known ?? (message && isInitializeRequest(message) ? await openSession() : undefined);
    if (transport === undefined) return response.writeHead(404).end();
    return transport.handleRequest(request, response, message);
}

createServer((request, response) => {
    const isModern = request.headers['mcp-protocol-version'] === '2026-07-28';
    return isModern ? modern(request, response) : legacy(request, response);
}).listen(Number(port), '127.0.0.1');
