// The official TypeScript SDK's client.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [python, script, count, depth] = process.argv.slice(2);
const client = new Client({ name: 'bench', version: '1' });
await client.connect(new StdioClientTransport({ command: python, args: [script] }));

async function timed(total, workers) {
    let left = total;
    const several = async () => {
        while (left-- > 0) {
            await client.callTool({ name: 'echo', arguments: { text: 'x'.repeat(20) } });
        }
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: workers }, several));
    return (total * 1000) / (performance.now() - start);
}

await timed(Math.floor(count / 4), Number(depth));
const found = [await timed(Math.floor(count / 8), 1), await timed(Number(count), Number(depth))];
console.log(JSON.stringify(found));
await client.close();
