// The low-level server of the official TypeScript SDK over stdio, with a limit above its default of 10 MB.
import { Server } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

serveStdio(() => {
    const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: given } }) => {
        if (name === 'wait') await new Promise(() => {});
        return { content: [{ type: 'text', text: name === 'echo' ? given.text : 'x'.repeat(given.size) }] };
    });
    server.setRequestHandler('tools/list', async () => ({
        tools: ['echo', 'large', 'wait'].map(name => ({ name, inputSchema: { type: 'object' } }))
    }));
    return server;
}, { transport: new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 64 << 20 }) });
