// The client of the official TypeScript SDK.
//
// Usage: `node official_typescript.mjs TARGET REVISION PYTHON`. TARGET is a URL or the script of a server.
import assert from 'node:assert';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, revision, python] = process.argv.slice(2);
const text = 'x'.repeat(20);
const client = new Client(
    { name: 'bench', version: '1' },
    revision === '2026-07-28'
        ? { versionNegotiation: { mode: { pin: revision } } }
        : { supportedProtocolVersions: [revision] }
);
await client.connect(
    target.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(target))
        : new StdioClientTransport({ command: python, args: [target] })
);

async function measure(depth, seconds) {
    const start = performance.now();
    let calls = 0;
    const callRepeatedly = async () => {
        do {
            const { content } = await client.callTool({ name: 'echo', arguments: { text } });
            assert.strictEqual(content[0].text, text);
            calls++;
        } while (performance.now() - start < seconds * 1000);
    };
    await Promise.all(Array.from({ length: depth }, callRepeatedly));
    return (calls * 1000) / (performance.now() - start);
}

await measure(1, 0);
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
    const [depth, seconds] = line.split(' ').map(Number);
    await measure(depth, seconds / 5);
    console.log(await measure(depth, seconds));
}
await client.close();
