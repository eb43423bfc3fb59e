import { withoutCodes } from '#api/messages/code.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import type { Backend, Policy, Secret } from '#gen/config/types.ts'
import { describePlaces } from './addresses.ts'
import { expandConfigFile } from './expand.ts'
import { loadConfigFile, type LoadedConfigFile } from './file.ts'
import { ConfigFileError } from './problem.ts'

const PETS = `openapi: 3.1.0
info: { title: Pets, version: "1" }
servers: [{ url: https://pets.example.com/v1 }]
paths:
  /pets:
    get: { operationId: listPets, responses: { "200": { description: Pets. } } }
    post: { operationId: addPet, responses: { "200": { description: The pet. } } }
`
const ALICE = 'alice-key-0123456789'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'short-file-'))
  await writeFile(join(directory, 'pets.yaml'), PETS)
  await writeFile(join(directory, 'broken.yaml'), 'swagger: "2.0"\n')
})
afterAll(() => rm(directory, { recursive: true }))

const env = { ALICE_KEY: ALICE, OPENAI_API_KEY: 'openai-key', PORT: '4100', USD: '7.5' }

async function load(text: string): Promise<LoadedConfigFile> {
  const path = join(directory, 'gateway.yaml')
  await writeFile(path, text)
  return loadConfigFile(path, { env })
}

async function problemsOf(text: string): Promise<string[]> {
  try {
    await load(text)
    return []
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => withoutCodes(problem).replace(/^.*?:\d+:\d+: /, ''))
  }
}

const MODELS = `models: { gpt-5: { openai: { apiKey: k } } }\n`
const placesOf = ({ messages }: LoadedConfigFile): string[] => messages.flatMap((one) => (one.kind === 'bind' ? describePlaces(one.message) : []))
const policyOf = ({ messages }: LoadedConfigFile, name: string): Policy | undefined =>
  messages.flatMap((one) => (one.kind === 'policy' && one.message.policy.name === name ? one.message : []))[0]
const backendOf = ({ messages }: LoadedConfigFile, name: string): Backend | undefined =>
  messages.flatMap((one) => (one.kind === 'backend' && one.message.key === `default/${name}` ? one.message : []))[0]

/** One file for each field of the short form, and one with everything. */
const files: readonly (readonly [string, string])[] = [
  ['models', MODELS],
  ['listen', `listen: 127.0.0.1:4100\n${MODELS}`],
  ['listen of models and MCP servers', `listen: 127.0.0.1:4100\n${MODELS}mcp: { a: { url: https://a.example.com/mcp } }\n`],
  ['log', `log: json\n${MODELS}`],
  ['ledger', `ledger: requests.db\n${MODELS}`],
  ['keys', `${MODELS}keys: { alice: { key: "\${ALICE_KEY}" }, bob: { keyHash: "sha256:${'ab'.repeat(32)}", expires: 2099-01-31T00:00:00Z } }\n`],
  [
    'budgets',
    `${MODELS}keys: { alice: { key: "\${ALICE_KEY}", models: [gpt-*], budget: { usd: "\${USD}", tokens: 5, window: Day }, metadata: { team: red } } }\n`,
  ],
  ['guardrails', `${MODELS}guardrails: { mask: [Email], reject: [Ssn], request: [{ regex: { matches: [secret], action: Reject } }] }\n`],
  [
    'providers',
    `models: { a: { providers: [{ openai: { apiKey: k, model: x }, weight: 3 }, { anthropic: { apiKey: k }, policies: { health: { eviction: { duration: 9s } } } }] } }\n`,
  ],
  [
    'a fallback',
    `models: { a: { openai: { apiKey: k, url: "http://localhost:1/v1" }, fallback: [{ anthropic: { apiKey: k } }, { on: [Budget], model: b }] }, b: { gemini: { apiKey: k } } }\n`,
  ],
  [
    'rules of models',
    `models: { a: { rules: [{ when: llm.promptTokens > 9, to: [{ openai: { apiKey: k } }] }, { to: [{ bedrock: { region: us-east-1, accessKeyId: a, secretAccessKey: s } }] }] } }\n`,
  ],
  ['openapi', `mcp: { pets: { url: "https://pets.example.com:8443", openapi: pets.yaml, apiKey: k } }\n`],
  [
    'rules of a server',
    `keys: { alice: { key: "\${ALICE_KEY}" } }\nmcp: { a: { command: [/bin/a], rules: [{ tools: ["get*", list], keys: [alice], when: "request.method == 'POST'" }] } }\n`,
  ],
]

const EVERYTHING = `listen: 127.0.0.1:\${PORT}
log: json
ledger: requests.db
guardrails: { mask: [Email] }
keys: { alice: { key: "\${ALICE_KEY}", budget: { usd: "\${USD}" } }, bob: { keyHash: "sha256:${'ab'.repeat(32)}" } }
models: { a: { openai: { apiKey: "\${OPENAI_API_KEY}" }, fallback: [{ anthropic: { apiKey: k, model: c } }] }, b: { providers: [{ model: a }] } }
mcp: { pets: { url: "https://pets.example.com", openapi: pets.yaml, rules: [{ tools: [listPets], keys: [alice] }] } }
`

describe('the long form of a file', () => {
  test.each([...files, ['everything', EVERYTHING] as const])('with %s gives the same config', async (_, text) => {
    const [short, long] = [join(directory, 'short.yaml'), join(directory, 'long.yaml')]
    await writeFile(short, text)
    const expanded = await expandConfigFile(short, { env })
    for (const field of ['listen', 'https', 'keys', 'guardrails', 'models', 'mcp', 'llm', 'log', 'ledger']) expect(expanded).not.toHaveProperty(field)
    await writeFile(long, stringify(expanded, { lineWidth: 0 }))
    const [expected, actual] = [await loadConfigFile(short, { env }), await loadConfigFile(long, { env })]
    // Where an object comes from in the file differs.
    const withoutOrigin = ({ messages }: LoadedConfigFile): unknown =>
      messages.map(({ kind, message }) => ({ kind, message: { ...message, origin: undefined } }))
    expect(withoutOrigin(actual)).toEqual(withoutOrigin(expected))
    expect(actual.process).toEqual(expected.process)
    expect(stringify(expanded)).not.toContain(ALICE)
  })
})

describe('one address for models and MCP servers', () => {
  test('has MCP servers at /mcp and models at all other paths', async () => {
    const loaded = await load(`listen: 127.0.0.1:4100\n${MODELS}mcp: { a: { url: https://a.example.com/mcp }, policies: { timeouts: { request: 9s } } }\n`)
    expect(placesOf(loaded)).toEqual(['127.0.0.1:4100'])
    const routes = loaded.messages.flatMap((one) => (one.kind === 'route' ? [one.message] : []))
    expect(routes.find(({ key }) => key === 'default/mcp.00')?.matches?.map(({ path }) => path?.value)).toContain('/mcp')
    expect(routes.map(({ key, origin }) => [key, origin])).toEqual(
      expect.arrayContaining([
        ['default/mcp.00', 'mcp'],
        ['default/models.gpt-5.00', 'models.gpt-5'],
        ['default/models-no-model.00', 'models'],
      ]),
    )
    expect(policyOf(loaded, 'route.mcp')?.traffic?.timeouts).toEqual({ request: '9s' })
  })

  test('a section with an address of its own keeps it', async () => {
    expect(placesOf(await load(`listen: 127.0.0.1:4100\n${MODELS}mcp: { listen: "127.0.0.1:3100", a: { url: https://a.example.com/mcp } }\n`))).toEqual([
      '127.0.0.1:4100',
      '127.0.0.1:3100',
    ])
  })
})

describe('keys', () => {
  test('authenticate every port of the file, which then listens on all addresses', async () => {
    const loaded = await load(`${MODELS}mcp: { a: { url: https://a.example.com/mcp } }\nkeys: { alice: { key: "\${ALICE_KEY}", metadata: { team: red } } }\n`)
    expect(placesOf(loaded)).toEqual(['*:4000', '*:3000'])
    expect(policyOf(loaded, 'keys')).toMatchObject({ target: { kind: 'Gateway', name: 'config' }, traffic: { apiKeyAuthentication: { mode: 'Strict' } } })
    const secret = loaded.messages.find(({ kind }) => kind === 'secret')?.message as Secret
    expect(JSON.parse(secret.data?.['alice'] ?? '')).toEqual({ key: ALICE, metadata: { team: 'red', name: 'alice' } })
  })

  test('do not open TCP ports, whose clients they do not authenticate', async () => {
    const text = `${MODELS}keys: { alice: { key: "\${ALICE_KEY}" } }\nbinds: [{ port: 5432, listeners: [{ tcpRoutes: [{ backends: [{ host: "127.0.0.1:1" }] }] }] }]\n`
    expect(placesOf(await load(text))).toEqual(expect.arrayContaining(['127.0.0.1:5432', '*:4000']))
  })

  test('with equal budgets share one entry, which counts each key by itself', async () => {
    const budget = 'budget: { usd: 0.5, requests: 9 }'
    const loaded = await load(
      `${MODELS}keys: { a: { keyHash: "sha256:${'ab'.repeat(32)}", ${budget} }, b: { keyHash: "sha256:${'cd'.repeat(32)}", ${budget} } }\n`,
    )
    expect(policyOf(loaded, 'keys')?.traffic?.budgets).toMatchObject([
      {
        name: 'keys',
        key: 'apiKey.name in ["a","b"] ? apiKey.name : null',
        onMissingKey: 'Ignore',
        limits: [{ usd: '0.5', window: 'Month' }, { requests: 9 }],
      },
    ])
  })

  test('that can be guessed are a warning without a part of the key', async () => {
    const { warnings } = await load(`${MODELS}keys: { alice: { key: tooshort } }\n`)
    expect(warnings).toEqual([expect.stringMatching(/keys\.alice: is an API key of fewer than 16 characters/)])
    expect(warnings.join()).not.toContain('tooshort')
  })
})

test('rules of a server admit what one of them matches, and leave other servers alone', async () => {
  const loaded = await load(
    `keys: { alice: { key: "\${ALICE_KEY}" } }\nmcp: { pets: { url: "https://pets.example.com", openapi: pets.yaml, rules: [{ tools: [listPets, "get.*"], keys: [alice] }, { when: jwt.admin }] } }\n`,
  )
  expect(backendOf(loaded, 'mcp')?.policies?.mcp?.authorization).toEqual({
    action: 'Require',
    policy: {
      matchExpressions: [
        String.raw`coalesce(mcp.tool.target, mcp.prompt.target, mcp.resource.target) != "pets" || (mcp.tool.name.matches("^(listPets|get\\..*)$") && apiKey.name in ["alice"]) || ((jwt.admin))`,
      ],
    },
  })
})

test('an OpenAPI document becomes tools of the API at url', async () => {
  const loaded = await load(`mcp: { pets: { url: "https://pets.example.com", openapi: pets.yaml } }\n`)
  const [target] = backendOf(loaded, 'mcp')?.mcp?.targets ?? []
  expect(target?.openapi).toMatchObject({ path: '/v1', tools: [{ name: 'listPets' }, { name: 'addPet' }] })
  expect(target?.static).toMatchObject({ host: 'pets.example.com', port: 443, policies: { tls: {} } })
  expect([...loaded.digests.keys()]).toContain(join(directory, 'pets.yaml'))
})

describe('a port that other machines can use without authentication', () => {
  test.each([
    ['listen: 0.0.0.0:4000', MODELS, 'listen'],
    ['listen: 0.0.0.0:4000', 'mcp: { a: { url: https://a.example.com/mcp } }', 'listen'],
    ['', `llm: { listen: "*:4000", ${MODELS.trim()} }`, 'llm.listen'],
    ['', 'binds: [{ port: 8080, addresses: ["::"], listeners: [{ routes: [{ backends: [{ ai: { provider: { openai: {} } } }] }] }] }]', 'binds[0].addresses'],
  ])('is noted: %s %s', async (listen, text, field) => {
    const { notes } = await load(`${listen}\n${text}\n`)
    expect(notes).toEqual([
      expect.stringMatching(/port \d+ accepts requests of other machines without authentication, .*; add keys, or listen on 127\.0\.0\.1 \[PX3016\]$/),
    ])
    expect(notes[0]).toContain(`: ${field}: `)
  })

  test.each([
    ['listen: 127.0.0.1:4000', MODELS],
    ['', MODELS],
    ['listen: 0.0.0.0:4000', `${MODELS}keys: { alice: { key: "\${ALICE_KEY}" } }`],
    ['', `llm: { listen: "*:4000", policies: { ipAllowList: { allow: [192.0.2.0/24] } }, ${MODELS.trim()} }`],
    ['', 'binds: [{ port: 8080, addresses: [], listeners: [{ routes: [{ backends: [{ host: "127.0.0.1:1" }] }] }] }]'],
  ])('is not noted if it is none: %s %s', async (listen, text) => {
    expect((await load(`${listen}\n${text}\n`)).notes).toEqual([])
  })
})

test.each([
  ['https: { acme: true }\n' + MODELS, ['https: cert is missing', 'https: key is missing', 'https.acme: unknown field; known here: cert, key, clientCa']],
  ['https: { cert: none.pem, key: none.key }\n' + MODELS, ['https.cert: none.pem: no such file', 'https.key: none.key: no such file']],
  ['listen: nowhere\n' + MODELS, ['listen: must be an address, or an address and a port, such as 127.0.0.1:4000, [::1]:4000, 0.0.0.0 or *:4000; is "nowhere"']],
  ['listen: 127.0.0.1:4000', ['listen: is that of models and mcp, which the file does not have; use binds']],
  ['log: xml\n' + MODELS, ['log: must be one of json, text, is "xml"']],
  ['log: json\nconfig: { logging: { format: text } }\n' + MODELS, ['log: is not used with config.logging.format; remove one of them']],
  [`llm: { ${MODELS.trim()} }\n${MODELS}`, ['models: is not used with llm; write the models as llm.models, or remove llm']],
  ['models: { a: { openai: { apiKey: k, url: "ftp://x" } } }', ['models.a.openai.url: must be a URL that starts with http:// or https://, is "ftp://x"']],
  [
    'models: { a: { providers: [{ openai: { url: "http://u:p@x" } }] } }',
    ['models.a.providers[0].openai.url: contains a user name or password; use apiKey, or policies.auth'],
  ],
  ['models: { a: { openai: { apiKey: k }, fallback: [{ model: b }] } }', ['models.a.fallback[0].model: b is not the name of one of models']],
  [
    'models: { a: { providers: [{ model: b }] }, b: { to: [{ model: a }] } }',
    [
      'models.a.providers[0].model: b leads back to a; remove one of the targets in the circle',
      'models.b.to[0].model: a leads back to b; remove one of the targets in the circle',
    ],
  ],
  ['keys: { alice: { kay: x } }\n' + MODELS, ['keys.alice.kay: unknown field; did you mean key?']],
  ['keys: { alice: { key: "0123456789abcdef", expires: soon } }\n' + MODELS, ['keys.alice.expires: must be a time such as 2027-01-31T00:00:00Z']],
  [
    'keys: { "a b": { key: "0123456789abcdef" } }\n' + MODELS,
    ['keys["a b"]: is the name of a key, which has at most 63 letters, digits, -, ., _ and @; rename it'],
  ],
  [
    'guardrails: { mask: [Emial] }\n' + MODELS,
    ['guardrails.mask[0]: must be one of Ssn, CreditCard, PhoneNumber, Email, CaSin, is "Emial"; did you mean Email?'],
  ],
  ['mcp: { a: { openapi: pets.yaml } }', ['mcp.a: url is missing; write the URL of the API, such as https://api.example.com']],
  ['mcp: { a: { url: "https://a.example.com", openapi: none.yaml } }', ['mcp.a.openapi: none.yaml: no such file']],
  [
    'mcp: { a: { url: "https://a.example.com", openapi: broken.yaml } }',
    ['mcp.a.openapi: broken.yaml: it is of version 2.0; convert it to OpenAPI 3.0 or 3.1'],
  ],
  [
    'mcp: { a: { url: "https://a.example.com/mcp", rules: [{ keys: [bob] }] } }',
    ['mcp.a.rules[0].keys[0]: "bob" is not the name of one of keys, which the file does not have'],
  ],
])('%s is an error with field, value and fix', async (text, problems) => {
  expect(await problemsOf(text)).toEqual(problems)
})
