// The official TypeScript client's side of the scenario: prints what it saw as one JSON document.
//
//     node typescript_client.mjs NODE_MODULES REVISION stdio COMMAND [ARGUMENT …]
//     node typescript_client.mjs NODE_MODULES REVISION http|sse URL
//
// The client lives in the folder NODE_MODULES and is pinned to REVISION.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [modules, revision, kind, target, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const library = name => import(pathToFileURL(require.resolve(name)));
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await library('@modelcontextprotocol/client');
const { StdioClientTransport } = await library('@modelcontextprotocol/client/stdio');

const modern = revision === '2026-07-28';
const WATCHED = 'test://watched-resource';
const ROOT = 'file:///home/ada/project';
const ANSWER = 'Paris, of course.';
// The content that the user fills into any form.
const FORMS = {
    name: 'Ada', color: 'green', ok: true, context: 'tea', username: 'ada', email: 'ada@example.org',
    age: 36, score: 1.5, status: 'pending', verified: false,
    untitledSingle: 'option2', titledSingle: 'value1', legacyEnum: 'opt2',
    untitledMulti: ['option1', 'option3'], titledMulti: ['value1', 'value2'],
};
const anything = { '~standard': { version: 1, vendor: 'interop', validate: value => ({ value }) } };

const asked = [];
const logged = [];
const changed = [];
const requested = new Set();
let refusal;

const HIDDEN = new Set(['_meta', 'resultType', 'ttlMs', 'cacheScope', 'task']);
/** What an object says, without what is about the protocol rather than its contents. */
function plain(value) {
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).filter(([key]) => !HIDDEN.has(key)).map(([k, v]) => [k, plain(v)]));
}

const client = new Client({ name: 'interop', version: '1' }, {
    capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
    ...(modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: [revision] }),
});

const answers = {
    'sampling/createMessage': ({ params }) => {
        asked.push(plain(params));
        return { role: 'assistant', content: { type: 'text', text: ANSWER }, model: 'a-model' };
    },
    'elicitation/create': ({ params }) => {
        asked.push(plain(params));
        const names = Object.keys(params.requestedSchema.properties);
        return { action: 'accept', content: Object.fromEntries(names.map(name => [name, FORMS[name]])) };
    },
    'roots/list': () => {
        asked.push('roots');
        return { roots: [{ uri: ROOT, name: 'project' }] };
    },
};
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);

client.setNotificationHandler('notifications/message', ({ params }) => {
    logged.push([params.level, params.data, params.logger ?? null]);
});
client.setNotificationHandler('notifications/resources/updated', ({ params }) => { changed.push(params.uri); });
for (const list of ['tools', 'prompts', 'resources']) {
    client.setNotificationHandler(`notifications/${list}/list_changed`, () => { changed.push(list); });
}

/** Note which requests come from the server: on the newest revision there must be none. And errors as they came. */
function watch(transport) {
    const hear = transport.onmessage;
    transport.onmessage = (message, ...rest) => {
        if ('method' in message && 'id' in message) requested.add(message.method);
        if ('error' in message) refusal = message.error;
        hear?.(message, ...rest);
    };
}

const fresh = { cacheMode: 'bypass' };
const call = (name, args = {}, options = {}, more = {}) => client.callTool({ name, arguments: args, ...more }, options);
const textOf = result => result.content.map(block => block.text ?? '').join('');
const read = async uri => plain(await client.readResource({ uri }, fresh)).contents;

/** The error in a response with status 404, where the newest revision wants it, and this client does not look. */
function unread(error) {
    if (error.data?.status !== 404) throw error;
    return JSON.parse(error.data.text).error;
}

/** What an attempt comes to: errors as the server sent them, since the client makes some into others. */
async function refused(attempt) {
    refusal = undefined;
    try {
        return { answered: plain(await attempt()) };
    } catch (error) {
        const { code, message, data } = refusal ?? unread(error);
        return { code, message, data: data ?? null };
    }
}

/** Call a tool and answer each round. Returns the requested keys, and the final text. */
async function byHand(name) {
    const seen = [];
    let more = {};
    for (;;) {
        const result = await call(name, {}, { allowInputRequired: true }, more);
        if (result.resultType !== 'input_required') return [...seen, textOf(result)];
        seen.push(Object.keys(result.inputRequests).sort());
        const given = Object.entries(result.inputRequests).map(([key, wanted]) => [key, answers[wanted.method](wanted)]);
        more = { inputResponses: Object.fromEntries(given), requestState: result.requestState };
    }
}

/** Return the error for a modified request state. */
async function tampered() {
    const name = 'test_input_required_result_tampered_state';
    const { requestState } = await call(name, {}, { allowInputRequired: true });
    const altered = (requestState[0] === 'A' ? 'B' : 'A') + requestState.slice(1);
    return refused(() => call(name, {}, {}, { requestState: altered }));
}

/** Call a tool until its text differs from `before`, since notifications take time. Returns the last text. */
async function changedText(tool, before) {
    for (let attempt = 0; attempt < 100; attempt++) {
        const now = textOf(await call(tool));
        if (now !== before) return now;
        await sleep(20);
    }
    return before;
}

async function logging(level) {
    if (!modern) await client.setLoggingLevel(level);
    logged.length = 0;
    await call('test_logging_tool', {}, {}, modern ? { _meta: { 'io.modelcontextprotocol/logLevel': level } } : {});
    await sleep(100);
    return [...logged];
}

/** Hear of changes while something is done. */
async function listening(act) {
    if (modern) {
        const wanted = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [WATCHED] };
        const subscription = await client.listen(wanted);
        await act();
        await subscription.close();
    } else {
        await client.subscribeResource({ uri: WATCHED });
        await act();
        await client.unsubscribeResource({ uri: WATCHED });
    }
}

const steps = {
    lists: async () => ({
        tools: plain(await client.listTools(undefined, fresh)).tools,
        resources: plain(await client.listResources(undefined, fresh)).resources,
        templates: plain(await client.listResourceTemplates(undefined, fresh)).resourceTemplates,
        prompts: plain(await client.listPrompts(undefined, fresh)).prompts,
    }),
    calls: async () => {
        const names = ['simple_text', 'image_content', 'audio_content', 'embedded_resource', 'multiple_content_types'];
        const seen = {};
        for (const name of [...names, 'structured_content', 'error_handling']) seen[name] = plain(await call(`test_${name}`));
        return seen;
    },
    reads: async () => {
        const seen = {};
        for (const uri of ['test://static-text', 'test://static-binary', 'test://template/123/data']) {
            seen[uri] = await read(uri);
        }
        return seen;
    },
    prompts: async () => {
        const wanted = {
            test_simple_prompt: {},
            test_prompt_with_arguments: { arg1: 'hello', arg2: 'world' },
            test_prompt_with_embedded_resource: { resourceUri: 'test://example' },
            test_prompt_with_image: {},
            test_input_required_result_prompt: {},
        };
        const seen = {};
        for (const [name, args] of Object.entries(wanted)) {
            const got = await refused(() => client.getPrompt({ name, arguments: args }));
            seen[name] = got.answered?.messages ?? got;
        }
        return seen;
    },
    completions: async () => {
        const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
        const template = { type: 'ref/resource', uri: 'test://template/{id}/data' };
        const complete = async (ref, name, value) =>
            plain(await client.complete({ ref, argument: { name, value } })).completion;
        return { prompt: await complete(prompt, 'arg1', 'par'), template: await complete(template, 'id', '12') };
    },
    progress: async () => {
        const seen = [];
        const onprogress = ({ progress, total, message }) => { seen.push([progress, total ?? null, message ?? null]); };
        await call('test_tool_with_progress', {}, { onprogress });
        return seen;
    },
    cancelling: async () => {
        const before = textOf(await call('test_cancelled_waits'));
        const stop = new AbortController();
        const running = call('test_wait', {}, { signal: stop.signal, onprogress: () => stop.abort('enough') });
        await running.catch(() => {});
        return { before, after: await changedText('test_cancelled_waits', before) };
    },
    asking: async () => {
        const args = { test_sampling: { prompt: 'Say something' }, test_elicitation: { message: 'Who are you?' } };
        const names = [
            'test_sampling', 'test_elicitation', 'test_elicitation_sep1034_defaults', 'test_elicitation_sep1330_enums',
            'test_input_required_result_elicitation', 'test_input_required_result_sampling',
            'test_input_required_result_list_roots', 'test_input_required_result_request_state',
            'test_input_required_result_multiple_inputs', 'test_input_required_result_multi_round',
            'test_input_required_result_capabilities',
        ];
        const seen = {};
        for (const name of names) {
            asked.length = 0;
            const got = await refused(() => call(name, args[name]));
            seen[name] = got.answered ? { text: textOf(got.answered), asked: [...asked] } : { ...got, asked: [...asked] };
        }
        return seen;
    },
    logging: async () => ({ debug: await logging('debug'), info: await logging('info'), error: await logging('error') }),
    changes: async () => {
        const before = (await read(WATCHED)).map(contents => contents.text);
        let heard;
        await listening(async () => {
            for (const what of ['tool', 'prompt', 'resource']) await call(`test_trigger_${what}_change`);
            await sleep(300); // enough for one too many to be heard as well
            heard = [...changed];
        });
        await call('test_trigger_resource_change');
        await sleep(200);
        const { tools } = await client.listTools(undefined, fresh);
        const late = tools.map(tool => tool.name).filter(name => name.includes('late'));
        const after = (await read(WATCHED)).map(contents => contents.text);
        return { heard, after_leaving: changed.slice(heard.length), late, watched: [...before, ...after] };
    },
    errors: async () => ({
        tool: await refused(() => call('no_such_tool')),
        argument: await refused(() => call('test_sampling')),
        prompt: await refused(() => client.getPrompt({ name: 'no_such_prompt' })),
        resource: await refused(() => read('test://no-such-resource')),
        method: await refused(() => client.request({ method: 'no/such/method' }, anything)),
    }),
    rounds: async () => {
        if (!modern) return null;
        return {
            one: await byHand('test_input_required_result_elicitation'),
            two: await byHand('test_input_required_result_multi_round'),
            tampered: await tampered(),
        };
    },
};

const transports = {
    stdio: () => new StdioClientTransport({ command: target, args }),
    http: () => new StreamableHTTPClientTransport(new URL(target)),
    sse: () => new SSEClientTransport(new URL(target)),
};
const transport = transports[kind]();
await client.connect(transport);
watch(transport);
const { version } = JSON.parse(readFileSync(`${modules}/@modelcontextprotocol/client/package.json`));
const seen = {
    client: `@modelcontextprotocol/client ${version}`,
    about: {
        protocolVersion: client.getNegotiatedProtocolVersion(),
        serverInfo: plain(client.getServerVersion()),
        capabilities: plain(client.getServerCapabilities()),
        instructions: client.getInstructions(),
    },
};
for (const [name, step] of Object.entries(steps)) {
    try {
        seen[name] = await step();
    } catch (error) {
        seen[name] = { failed: `${error.name}: ${error.message}` };
    }
}
seen.requested = [...requested].sort();
if (kind === 'http') await transport.terminateSession();
await client.close();
console.log(JSON.stringify(seen));
