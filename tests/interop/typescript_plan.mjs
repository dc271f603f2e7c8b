// Uses a server as the environment variable PLAN says, and prints what the official TypeScript client saw, by case.
//
//     node typescript_plan.mjs NODE_MODULES REVISION stdio COMMAND [ARGUMENT …]
//     node typescript_plan.mjs NODE_MODULES REVISION http|sse URL
//
// `tests/interop/crossing.py` makes the plans. `python_plan.py` does the same with the official Python client.

import { setTimeout as sleep } from 'node:timers/promises';

import {
    asked, call, changed, client, forms, fresh, listening, plain, progressed, read, refused, run,
} from './typescript_peer.mjs';

const plan = JSON.parse(process.env.PLAN);
Object.assign(forms, plan.forms);

/** All items of a list, from all its pages. */
async function all(list, member) {
    const items = [];
    let cursor;
    do {
        const page = await list(cursor && { cursor }, fresh);
        items.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor);
    return items;
}

/** The result of a tool, or its error, with what the client was asked. */
async function use({ tool, arguments: given }, options = {}) {
    asked.length = 0;
    const got = await refused(() => call(tool, given, options));
    return { ...got, asked: [...asked] };
}

async function until(holds) {
    for (let attempt = 0; attempt < 500 && !(await holds()); attempt++) await sleep(20);
}

const cases = {
    list: async () => ({
        tools: (await all((...page) => client.listTools(...page), 'tools')).map(tool => tool.name),
        prompts: (await all((...page) => client.listPrompts(...page), 'prompts')).map(prompt => prompt.name),
        resources: (await all((...page) => client.listResources(...page), 'resources')).map(resource => resource.uri),
        templates: (await all((...page) => client.listResourceTemplates(...page), 'resourceTemplates')).map(
            template => template.uriTemplate,
        ),
    }),
    'read and get': async ({ uri, prompt }) => ({
        contents: await read(uri),
        messages: plain(await client.getPrompt(prompt)).messages,
    }),
    errors: async ({ tool, uri, prompt }) => ({
        tool: await use(tool),
        resource: await refused(() => read(uri)),
        prompt: await refused(() => client.getPrompt({ name: prompt })),
    }),
    progress: async step => {
        progressed.length = 0;
        const got = await use(step, { onprogress: () => {} });
        return { ...got, seen: progressed.map(({ progress, total }) => [progress, total ?? null]) };
    },
    cancel: async ({ count, uncounted, ...step }) => {
        const before = await use(count);
        const stop = new AbortController();
        const running = call(step.tool, step.arguments, { signal: stop.signal, onprogress: () => stop.abort('enough') });
        const ended = await running.then(() => 'answered', () => 'cancelled');
        let after;
        await until(async () => JSON.stringify(after = await use(count)) !== JSON.stringify(before) || uncounted);
        return { before, after, ended };
    },
    completion: async ({ prompt, argument, value }) => {
        const ref = { type: 'ref/prompt', name: prompt };
        return plain(await client.complete({ ref, argument: { name: argument, value } })).completion;
    },
    subscriptions: async ({ uri, change, end, expected }) => {
        changed.length = 0;
        await listening(uri, async () => {
            for (const step of change) await use(step);
            await until(() => expected.every(what => changed.includes(what)));
            for (const step of end) await use(step);
        });
        return [...new Set(changed)].sort();
    },
};

await run(Object.fromEntries(
    Object.entries(plan.cases).map(([name, step]) => [name, () => (cases[name] ?? use)(step)]),
));
