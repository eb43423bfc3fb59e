import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { loadConfigFile } from './file.ts'
import { ConfigFileError } from './problem.ts'

/** Problems and warnings of a file, without the name of the file. */
async function check(file: object, env: Readonly<Record<string, string>> = {}): Promise<{ problems: readonly string[]; warnings: readonly string[] }> {
  const short = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/^\S+ /, ''))
  try {
    const { warnings } = await loadConfigFile('gateway.yaml', { text: JSON.stringify(file), env })
    return { problems: [], warnings: short(warnings) }
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return { problems: short(error.problems), warnings: [] }
  }
}

describe('a host name of a config file has the form that Gateway API demands', () => {
  const backends = [{ host: 'a:1' }]
  const tls = { mode: 'Passthrough' }
  /** Each field of the file that names a host of requests. */
  const places: readonly (readonly [path: string, isPrecise: boolean, (name: string) => object])[] = [
    ['hostname', false, (hostname) => ({ hostname, routes: [{ backends }] })],
    ['routes[0].hostnames[0]', false, (name) => ({ routes: [{ hostnames: [name], backends }] })],
    ['tcpRoutes[0].hostnames[0]', false, (name) => ({ protocol: 'TLS', tls, tcpRoutes: [{ hostnames: [name], backends }] })],
    ['routes[0].filters.redirect.hostname', true, (hostname) => ({ routes: [{ filters: { redirect: { hostname, statusCode: 302 } } }] })],
    ['routes[0].filters.urlRewrite.hostname', true, (hostname) => ({ routes: [{ filters: { urlRewrite: { hostname } }, backends }] })],
  ]
  const fileOf = (listener: object): object => ({ binds: [{ port: 8080, listeners: [listener] }] })

  test.each(places)('in %s', async (path, isPrecise, listenerOf) => {
    const wrong: readonly (readonly [name: string, text: string])[] = [
      ['Shop.example.com', 'must be in lower case; write "shop.example.com"'],
      ['shop.example.com.', 'must not end with a dot; write "shop.example.com"'],
      ['shop.example.com:8080', 'must be a host name without scheme, port and path; write a name such as shop.example.com'],
      ['https://shop.example.com', 'must be a host name without scheme, port and path; write a name such as shop.example.com'],
      ['shop.example.com/a', 'must be a host name without scheme, port and path; write a name such as shop.example.com'],
      ...['', 'a..b', '-a.b', 'a_b', 'a b', 'ä.example', 'a'.repeat(254)].map(
        (name) => [name, 'must be a DNS name of at most 253 characters such as '] as const,
      ),
      ...['a.*.b', '*a.b', '*.*.b', 'a.*'].map(
        (name) =>
          [name, isPrecise ? 'must be one host name, without *' : 'must have * as the whole first label only; write a name such as *.example.com'] as const,
      ),
      ['*', isPrecise ? 'must be one host name, without *' : 'must have a domain after the first label; leave the field out for any host'],
    ]
    for (const [name, text] of wrong)
      expect(await check(fileOf(listenerOf(name)))).toEqual({
        problems: [expect.stringContaining(`binds[0].listeners[0].${path}: is ${JSON.stringify(name)}: ${text}`)],
        warnings: [],
      })
    const right = ['a', 'shop.example.com', '1.example', 'a-b.example', `${'a'.repeat(63)}.example`, ...(isPrecise ? [] : ['*.example.com'])]
    for (const name of right) expect(await check(fileOf(listenerOf(name)))).toEqual({ problems: [], warnings: [] })
  })

  test('and a value of a placeholder is not shown', async () => {
    const { problems } = await check(fileOf({ hostname: '${NAME}', routes: [{ backends }] }), { NAME: 'Secret.example.com' })
    expect(problems).toEqual([expect.stringContaining('hostname: is ${NAME}: must be in lower case')])
    expect(problems.join()).not.toMatch(/secret/i)
  })
})

describe('an API key of a config file that does not work, or should not, is a warning', () => {
  const long = 'k'.repeat(16)
  const hash = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`
  const fileOf = (...secrets: readonly Readonly<Record<string, string>>[]): object => ({
    llm: {
      models: { m: { openai: { apiKey: 'k' } } },
      policies: { apiKeyAuthentication: { secretSelector: { secrets: secrets.map((_, index) => `opaque/default/${index}`) } } },
    },
    secrets: secrets.map((data, index) => ({ key: `opaque/default/${index}`, type: 'opaque', data })),
  })

  test.each<[string, string, string]>([
    ['is short', 'k'.repeat(15), 'is an API key of fewer than 16 characters, which can be guessed; create one with proxyctl keys create'],
    ['is short, in an object', '{"key":"k"}', 'is an API key of fewer than 16 characters'],
    ['is empty', ' ', 'is empty; the key is skipped'],
    ['has expired', JSON.stringify({ key: long, expires: '2020-01-01T00:00:00Z' }), 'is an API key that has expired; requests with it are rejected'],
    ['has a text for a time', JSON.stringify({ key: long, expires: 'tomorrow' }), 'has an expires that is not a time'],
    ['is plain in place of a digest', JSON.stringify({ keyHash: long }), 'has a keyHash that is not sha256: and 64 hex digits; the key is skipped'],
    ['is a digest in place of a key', hash(long), 'is a digest, which counts as the key itself; write {"keyHash": "sha256:<hex>"}'],
    ['is a digest in place of a key, in an object', JSON.stringify({ key: hash(long).slice(7).toUpperCase() }), 'is a digest, which counts as the key itself'],
  ])('that %s', async (_, value, text) => {
    const { warnings } = await check(fileOf({ ann: value }))
    expect(warnings).toEqual([expect.stringContaining(`secrets[0].data.ann: ${text}`)])
    if (value.trim() !== '') expect(warnings.join()).not.toContain(value)
    // A placeholder does not hide the problem, and the problem does not show its value.
    const { warnings: indirect } = await check(fileOf({ ann: '${KEY:- }' }), { KEY: value })
    expect(indirect).toEqual([expect.stringContaining(`secrets[0].data.ann: ${text}`)])
  })

  test('that two entries have, of whichever Secrets and in whichever form', async () => {
    const { warnings } = await check(fileOf({ ann: long, bob: JSON.stringify({ key: `${long}l` }) }, { cid: JSON.stringify({ keyHash: hash(long) }) }))
    expect(warnings).toEqual([expect.stringContaining('secrets[1].data.cid: is the same API key as ann; the metadata of the last one counts')])
  })

  test('and good keys and other secrets are not', async () => {
    const file = fileOf({ ann: long, bob: JSON.stringify({ keyHash: hash('b'), expires: '2999-01-01T00:00:00Z' }) }) as { secrets: object[] }
    file.secrets.push({ key: 'opaque/default/other', type: 'opaque', data: { password: 'k', again: 'k' } })
    expect(await check(file)).toEqual({ problems: [], warnings: [] })
  })
})
