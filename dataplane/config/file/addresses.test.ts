import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { loopbackAddresses } from '../short/listen.ts'
import { describePlaces } from './addresses.ts'
import { loadConfigFile } from './file.ts'
import type { ConfigFileError } from './problem.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'addresses-'))
})
afterAll(() => rm(directory, { recursive: true }))

/** Where the ports of a file listen. */
async function placesOf(text: string, options: Parameters<typeof loadConfigFile>[1] = {}): Promise<string[]> {
  const path = join(directory, 'gateway.yaml')
  await writeFile(path, text)
  const { messages } = await loadConfigFile(path, options)
  return messages.flatMap(({ kind, message }) => (kind === 'bind' ? describePlaces(message) : []))
}

const loopback = (port: number): string[] => describePlaces({ port, addresses: loopbackAddresses() })
const models = 'models: { m: { openai: {} } }'
const servers = "a: { url: 'http://127.0.0.1:1' }"
const strict = 'basicAuthentication: { users: ["u:$2y$05$abcdefghijklmnopqrstuuJ2C5h4Hs1tV3n4b1T5vC1mQ1m1m1m1m"] }'
const optional = strict.replace('{ users', '{ mode: Optional, users')
const bind = (listeners: string, more = ''): string => `binds: [{ port: 8080, listeners: [${listeners}] }]\n${more}`
const target = 'target: { kind: Gateway, namespace: default, name: config }'
const policy = (traffic: string, section = ''): string =>
  `policies: [{ key: traffic/default/p:0, policy: { kind: ProxyPolicy, namespace: default, name: p }, creationTimestamp: "2026-01-01T00:00:00Z", ${target.replace(' }', `${section} }`)}, traffic: { ${traffic} } }]\n`

describe('a port of a config file listens on loopback', () => {
  test.each([
    ['without policies', `llm: { ${models} }`, 4000],
    ['with authentication that is optional', `llm: { ${models}, policies: { ${optional} } }`, 4000],
    ['with policies that admit everyone', `mcp: { ${servers}, policies: { timeouts: { request: 5s } } }`, 3000],
    ['if one of its routes does not authenticate', bind(`{ routes: [{ policies: { ${strict} } }, {}] }`), 8080],
    ['if one of its listeners does not authenticate', bind(`{ name: a, policies: { ${strict} } }, { name: b, routes: [{}] }`), 8080],
    ['if a policy authenticates another listener', bind('{ name: a, routes: [{}] }', policy(strict, ', section: b')), 8080],
    ['for TCP', bind("{ tcpRoutes: [{ backends: [{ host: '127.0.0.1:1' }] }] }"), 8080],
    [
      'if an MCP backend accepts requests without tokens',
      bind(
        '{ routes: [{ backends: [{ mcp: { targets: [{ name: a, static: { host: a.example, port: 80 } }], sessionRouting: Stateful, failureMode: FailClosed, prefixMode: Conditional } }] }] }',
      ),
      8080,
    ],
  ])('%s', async (_, text, port) => {
    expect(await placesOf(text)).toEqual(loopback(port))
  })
})

describe('a port of a config file listens on all addresses', () => {
  test.each([
    ['with authentication of clients', `llm: { ${models}, policies: { ${strict} } }`, '*:4000'],
    ['with external authorization', `mcp: { ${servers}, policies: { extAuth: { backendRef: { address: '127.0.0.1:9' }, grpc: {} } } }`, '*:3000'],
    ['if all its routes authenticate', bind(`{ routes: [{ policies: { ${strict} } }] }`), '*:8080'],
    ['with a policy of the file for the Gateway', bind('{ routes: [{}] }', policy(strict)), '*:8080'],
    ['with an empty list of addresses', `llm: { addresses: [], ${models} }`, '*:4000'],
    ['with listen: "*"', `llm: { listen: "*", ${models} }`, '*:4000'],
  ])('%s', async (_, text, place) => {
    expect(await placesOf(text)).toEqual([place])
  })

  test('beside a config stream', async () => {
    expect(await placesOf(`llm: { ${models} }`, { placeholders: 'literal' })).toEqual(['*:4000'])
  })
})

describe('listen of a short form', () => {
  test.each([
    ['127.0.0.1:4100', '127.0.0.1:4100'],
    ['0.0.0.0', '0.0.0.0:4000'],
    ['*:4100', '*:4100'],
    ['::1', '[::1]:4000'],
    ['[::]:4100', '[::]:4100'],
  ])('%s is %s', async (listen, place) => {
    expect(await placesOf(`llm: { listen: '${listen}', ${models} }`)).toEqual([place])
  })

  test.each(['example.com:4000', '127.0.0.1:0', '127.0.0.1:70000', '127.0.0.1:', ':4000', '1.2.3:4000', '*:*', '[127.0.0.1:4000', 'http://127.0.0.1:4000'])(
    'rejects %s with the field, the value and the forms',
    async (listen) => {
      const problems = await placesOf(`llm: { listen: '${listen}', ${models} }`).catch((error: unknown) => (error as ConfigFileError).problems)
      expect(problems).toEqual([expect.stringMatching(/llm\.listen: must be an address, or an address and a port, such as 127\.0\.0\.1:4000, .*; is /)])
    },
  )

  test('localhost is loopback', async () => {
    expect(await placesOf(`llm: { listen: 'localhost:4100', ${models} }`)).toEqual(loopback(4100))
  })

  test('is not combined with addresses, or with a second port', async () => {
    const problems = await placesOf(`mcp: { listen: '127.0.0.1:1', port: 2, addresses: ['::1'], ${servers} }`).catch(
      (error: unknown) => (error as ConfigFileError).problems,
    )
    expect(problems).toEqual([
      expect.stringContaining('mcp.addresses: is not used with listen'),
      expect.stringContaining('mcp.port: is not used with a port in listen'),
    ])
  })
})
