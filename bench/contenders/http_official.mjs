// The official TypeScript SDK, low-level server over HTTP: `node http_official.mjs PORT`.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createMcpHandler, isInitializeRequest, Server } from '@modelcontextprotocol/server';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';

function echo() {
    const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', async request => ({
        content: [{ type: 'text', text: request.params.arguments.text }]
    }));
    server.setRequestHandler('tools/list', async () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }));
    return server;
}

const modern = toNodeHandler(createMcpHandler(echo, { legacy: 'reject' }));
const sessions = new Map();

async function body(request) {
    const parts = [];
    for await (const part of request) parts.push(part);
    return JSON.parse(Buffer.concat(parts));
}

async function opened() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: true,
        onsessioninitialized: id => { sessions.set(id, transport); }
    });
    await echo().connect(transport);
    return transport;
}

async function legacy(request, response) {
    const message = await body(request);
    const known = sessions.get(request.headers['mcp-session-id']);
    const transport = known ?? (isInitializeRequest(message) ? await opened() : undefined);
    if (transport === undefined) return response.writeHead(404).end();
    return transport.handleRequest(request, response, message);
}

createServer((request, response) => {
    const isModern = request.headers['mcp-protocol-version'] === '2026-07-28';
    return isModern ? modern(request, response) : legacy(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');
