// An authorization server for tests: oidc-provider, with its own pages to sign in and to consent.
//
//     node provider.mjs NODE_MODULES SETTINGS
//
// SETTINGS is a JSON object: `accessSeconds` is the lifetime of access tokens, `clients` are registered clients, and with
// `nonces` proofs (DPoP) need a nonce. A POST of such an object to /test changes the settings. `forget` removes what is stored: "tokens" or "clients", or both.

import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { Buffer } from 'node:buffer';

const [modules, given] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const settings = { accessSeconds: 3600, clients: [], nonces: false, ...JSON.parse(given) };
const SCOPES = 'read write admin';

// Everything that is stored, by the kind of model and its id.
const stored = new Map();
const named = kind => stored.get(kind) ?? stored.set(kind, new Map()).get(kind);

class Storage {
    constructor(kind) { this.kind = kind; }
    async upsert(id, payload) { named(this.kind).set(id, payload); }
    async find(id) { return named(this.kind).get(id); }
    async findByUid(uid) { return [...named(this.kind).values()].find(payload => payload.uid === uid); }
    async destroy(id) { named(this.kind).delete(id); }
    async consume(id) { named(this.kind).get(id).consumed = Math.floor(Date.now() / 1000); }
    async revokeByGrantId(grantId) {
        for (const [id, payload] of named(this.kind)) if (payload.grantId === grantId) named(this.kind).delete(id);
    }
}

const server = createServer((request, response) => answer(request, response));
await new Promise(listening => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
    adapter: Storage,
    clients: [
        {
            client_id: 'resource-server', client_secret: 'of-the-resource-server', redirect_uris: [],
            response_types: [], grant_types: [],
        },
        ...settings.clients,
    ],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    cookies: { keys: ['for tests'] },
    features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: true },
        dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 'for tests'), requireNonce: () => settings.nonces },
        introspection: { enabled: true, allowedPolicy: (_context, client) => client.clientId === 'resource-server' },
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
            enabled: true,
            getResourceServerInfo: (_context, resource) => ({
                scope: SCOPES, audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: settings.accessSeconds,
            }),
        },
    },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    ttl: { ClientCredentials: () => settings.accessSeconds, Session: 600, Grant: 600, RefreshToken: 600, Interaction: 600 },
});
const callback = provider.callback();

/** Change the settings, or let the provider answer. */
async function answer(request, response) {
    if (request.url !== '/test') return callback(request, response);
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { forget = [], ...changed } = JSON.parse(Buffer.concat(chunks));
    Object.assign(settings, changed);
    if (forget.includes('clients')) stored.delete('Client');
    if (forget.includes('tokens')) for (const kind of ['AccessToken', 'RefreshToken', 'Grant']) stored.delete(kind);
    response.end();
}

for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
console.log(issuer);
