// The official TypeScript SDK, low-level server over stdio.
import { Server } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';

const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler('tools/call', async request => ({
    content: [{ type: 'text', text: request.params.arguments.text }]
}));
await server.connect(new StdioServerTransport());
