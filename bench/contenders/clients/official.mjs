// The official TypeScript SDK's client: `node official.mjs TARGET REVISION PYTHON`; the target is a URL or a script.
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

async function rate(depth, seconds) {
    const start = performance.now();
    let calls = 0;
    const several = async () => {
        do {
            const { content } = await client.callTool({ name: 'echo', arguments: { text } });
            assert.strictEqual(content[0].text, text);
            calls++;
        } while (performance.now() - start < seconds * 1000);
    };
    await Promise.all(Array.from({ length: depth }, several));
    return (calls * 1000) / (performance.now() - start);
}

await rate(1, 0);
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
    const [depth, seconds] = line.split(' ').map(Number);
    await rate(depth, seconds / 5);
    console.log(await rate(depth, seconds));
}
await client.close();
