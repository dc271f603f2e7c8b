// The official TypeScript SDK's client over HTTP: `node http_client_official.mjs URL REVISION CALLS DEPTH`.
import assert from 'node:assert';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, revision, count, depth] = process.argv.slice(2);
const modern = revision === '2026-07-28';
const client = new Client(
    { name: 'bench', version: '1' },
    modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: [revision] }
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const call = () => client.callTool({ name: 'echo', arguments: { text: 'x'.repeat(20) } });

async function timed(total, workers) {
    let left = total;
    const several = async () => {
        while (left-- > 0) await call();
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: workers }, several));
    return (total * 1000) / (performance.now() - start);
}

assert.strictEqual((await call()).content[0].text, 'x'.repeat(20));
await timed(Math.floor(count / 4), Number(depth));
const found = [await timed(Math.floor(count / 8), 1), await timed(Number(count), Number(depth))];
console.log(JSON.stringify(found));
await client.close();
