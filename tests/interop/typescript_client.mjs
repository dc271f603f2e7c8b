// The official TypeScript client's side of the scenario: prints what it saw as one JSON document.
//
//     node typescript_client.mjs NODE_MODULES REVISION stdio COMMAND [ARGUMENT …]
//     node typescript_client.mjs NODE_MODULES REVISION http|sse URL
//
// The client lives in the folder NODE_MODULES and is pinned to REVISION.

import { setTimeout as sleep } from 'node:timers/promises';

import {
    WATCHED, answers, anything, asked, call, changed, client, fresh, listening, logged, modern, plain, read, refused, run,
    textOf,
} from './typescript_peer.mjs';

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
        await listening(WATCHED, async () => {
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

await run(steps);
