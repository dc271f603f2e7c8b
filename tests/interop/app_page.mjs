// A page on the official SDK for Apps, whose host is at standard input and output: a message on each line.
//
//     node app_page.mjs NODE_MODULES
//
// At the end of its input it prints what it saw as one line, after the word `saw`.

import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { App } = await import(
    pathToFileURL(`${process.argv[2]}/@modelcontextprotocol/ext-apps/dist/src/app-with-deps.js`)
);

const transport = {
    async start() {
        createInterface({ input: process.stdin }).on('line', line => this.onmessage?.(JSON.parse(line)));
    },
    async send(message) {
        process.stdout.write(`${JSON.stringify(message)}\n`);
    },
    async close() {}
};

const saw = { contexts: [] };
const app = new App(
    { name: 'official', version: '1.0' },
    { availableDisplayModes: ['inline', 'fullscreen'] },
    { autoResize: false, strict: true }
);
app.ontoolinputpartial = params => { saw.partial = params.arguments; };
app.ontoolinput = params => { saw.input = params.arguments; };
const resulted = new Promise(resolve => { app.ontoolresult = resolve; });
app.onhostcontextchanged = params => { saw.contexts.push(params); };
app.onteardown = async params => {
    saw.teardown = params;
    saw.saved = (await app.callServerTool({ name: 'rain', arguments: { city: 'Voss' } })).structuredContent;
    process.stdout.write(`saw ${JSON.stringify(saw)}\n`);
    return {};
};

async function outcome(act) {
    try {
        return await act();
    } catch (error) {
        return { code: error.code, message: error.message };
    }
}

await app.connect(transport);
saw.host = app.getHostVersion();
saw.capabilities = app.getHostCapabilities();
saw.context = app.getHostContext();
saw.result = (await resulted).structuredContent;
saw.called = (await app.callServerTool({ name: 'rain', arguments: { city: 'Oslo' } })).structuredContent;
saw.refused = await outcome(() => app.callServerTool({ name: 'launch', arguments: {} }));
saw.read = (await app.readServerResource({ uri: 'data://gauges' })).contents[0].text;
saw.link = await outcome(() => app.openLink({ url: 'https://example.com' }));
saw.badLink = await outcome(() => app.openLink({ url: 'javascript:alert(1)' }));
saw.message = await app.sendMessage({ role: 'user', content: [{ type: 'text', text: 'hello' }] });
saw.model = await app.updateModelContext({ structuredContent: { city: 'Oslo' } });
saw.mode = await app.requestDisplayMode({ mode: 'fullscreen' });
await app.sendLog({ level: 'info', data: 'a log' });
await app.sendSizeChanged({ width: 10, height: 9000 });
