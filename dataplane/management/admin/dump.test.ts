import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { redactMessage, writeDump, type ConfigDump } from './dump.ts'

async function dumpText(dump: ConfigDump): Promise<string> {
  let text = ''
  for await (const piece of writeDump(dump)) text += piece
  return text
}
const dumpOf = async (dump: ConfigDump): Promise<Record<string, unknown>> => JSON.parse(await dumpText(dump)) as Record<string, unknown>

describe('config dump', () => {
  test('sorts sections, with unknown ones last, and prints one entry per line', async () => {
    const text = await dumpText({ extra: 1, config: {}, routes: [{ key: 'a' }, { key: 'b' }], binds: new Map(), version: 7 })
    expect(text).toBe('{\n  "version": 7,\n  "binds": [],\n  "routes": [\n    {"key":"a"},\n    {"key":"b"}\n  ],\n  "config": {},\n  "extra": 1\n}\n')
  })

  test('prints an empty config as JSON', async () => {
    expect(await dumpOf({})).toEqual({})
  })

  test('redacts the value of an explained field as that of the field', () => {
    const explained = (value: unknown) => ({ value, sources: [], overrides: [] })
    const fields = { 'backend.auth': explained({ key: 'k1' }), 'backend.ai.routes': explained({ '*': 'Completions' }), 'backend.tls': explained({ key: 'k2' }) }
    expect(redactMessage(fields, [])).toEqual({ ...fields, 'backend.auth': explained({ key: '<redacted>' }), 'backend.tls': explained({ key: '<redacted>' }) })
  })

  test('prints a thousand routes in pieces', async () => {
    const routes = new Map(Array.from({ length: 1000 }, (_, i) => [`r${i}`, { key: `r${i}` }]))
    let pieces = 0
    let text = ''
    for await (const piece of writeDump({ routes })) {
      pieces++
      text += piece
    }
    expect((JSON.parse(text) as { routes: unknown[] }).routes).toEqual([...routes.values()])
    expect(pieces).toBeGreaterThan(10)
  })

  const rows: Record<string, { section: string; entry: unknown; shown: unknown }> = {
    'a TLS secret keeps its certificate': {
      section: 'secrets',
      entry: { key: 'a/b', type: 'tls', certificate: 'CERT', privateKey: 'KEY' },
      shown: { key: 'a/b', type: 'tls', certificate: 'CERT', privateKey: '<redacted>' },
    },
    'a private key next to the certificate is redacted': {
      section: 'secrets',
      entry: { key: 'a/b', type: 'tls', certificate: 'x\n-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----' },
      shown: { key: 'a/b', type: 'tls', certificate: 'x\n<redacted>' },
    },
    'unlisted fields of a secret are redacted': {
      section: 'secrets',
      entry: { key: 'a/b', type: 'opaque', data: { user: 'x' }, fresh: 'new' },
      shown: { key: 'a/b', type: 'opaque', data: '<redacted>', fresh: '<redacted>' },
    },
    'an inline key of backend auth is redacted': {
      section: 'backends',
      entry: { key: 'a/b', policies: { auth: { key: 'sk-1' } } },
      shown: { key: 'a/b', policies: { auth: { key: '<redacted>' } } },
    },
    'password hashes of basic authentication are redacted': {
      section: 'policies',
      entry: { key: 'p', traffic: { basicAuthentication: { users: ['bob:$2y$05$abc'], realm: 'x' } } },
      shown: { key: 'p', traffic: { basicAuthentication: { users: '<redacted>', realm: 'x' } } },
    },
    'the environment of a command is redacted': {
      section: 'backends',
      entry: { key: 'a/b', mcp: { targets: [{ name: 'a', command: ['x'], env: { A: 'b' } }] } },
      shown: { key: 'a/b', mcp: { targets: [{ name: 'a', command: ['x'], env: { A: '<redacted>' } }] } },
    },
    'an inline key set is redacted': {
      section: 'policies',
      entry: { key: 'p', providers: [{ issuer: 'i', jwks: { inline: '{"keys":[]}' } }] },
      shown: { key: 'p', providers: [{ issuer: 'i', jwks: { inline: '<redacted>' } }] },
    },
    'vendors have their real names': {
      section: 'backends',
      entry: { key: 'a/b', ai: { provider: { providerC: { model: 'm' } } }, policies: { auth: { cloudA: {} } } },
      shown: { key: 'a/b', ai: { provider: { anthropic: { model: 'm' } } }, policies: { auth: { aws: {} } } },
    },
    'a header with credentials is redacted': {
      section: 'routes',
      entry: {
        key: 'r',
        set: [
          { name: 'Authorization', value: 'secret' },
          { name: 'x-a', value: 'b' },
        ],
      },
      shown: {
        key: 'r',
        set: [
          { name: 'Authorization', value: '<redacted>' },
          { name: 'x-a', value: 'b' },
        ],
      },
    },
    'references to secrets stay readable': {
      section: 'policies',
      entry: { key: 'p', apiKeyAuthentication: { secretRef: { secret: 'a/b' } }, tls: { certificates: ['a/cert'] }, limit: { tokens: 5 } },
      shown: { key: 'p', apiKeyAuthentication: { secretRef: { secret: 'a/b' } }, tls: { certificates: ['a/cert'] }, limit: { tokens: 5 } },
    },
  }
  test.each(Object.entries(rows))('%s', async (_name, { section, entry, shown }) => {
    expect(await dumpOf({ [section]: [entry] })).toEqual({ [section]: [shown] })
  })

  test('redacts values of Secret messages everywhere, also within texts', async () => {
    const secrets = [{ key: 'a/b', type: 'opaque', data: { one: 'hunter2-hunter2', two: '{"key":"json-inner-key","metadata":{"team":"red-team-x"}}' } }]
    const text = await dumpText({ secrets, routes: [{ a: 'Bearer hunter2-hunter2', b: ['json-inner-key'] }], config: { c: 'has json-inner-key inside' } })
    expect(text).not.toMatch(/hunter2|json-inner-key/)
  })

  test('never contains a secret value', async () => {
    const secret = fc.string({ minLength: 8, maxLength: 30, unit: fc.constantFrom(...'abcdefghijkmnpqrstuvwxyz"\\23456789-'.split('')) })
    const name = fc.constantFrom('key', 'value', 'path', 'a', 'auth', 'data', 'token', 'privateKey', 'name')
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(secret, { minLength: 1, maxLength: 4 }), fc.array(name, { minLength: 1, maxLength: 4 }), async (values, path) => {
        const messages = values.map((value, i) => ({ key: `k${i}`, type: 'opaque', data: { [`entry${i}`]: value }, privateKey: value }))
        const leaf = values.map((value) => `x ${value.trim()} y`)
        const nested = path.reduceRight<unknown>((inner, field) => ({ [field]: inner }), leaf)
        const text = await dumpText({
          secrets: new Map(messages.map((message) => [message.key, message])),
          policies: [nested],
          routes: leaf,
          config: { nested },
        })
        return values.every((value) => value.trim().length < 6 || !text.includes(JSON.stringify(value.trim()).slice(1, -1)))
      }),
      { numRuns: 200 },
    )
  })
})
