import { withoutCodes } from '#api/messages/code.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { messageKinds } from '#api/config/message-kinds.ts'
import { makeCertificate, type Certificate } from '../../../e2e/harness/certificates.ts'
import { ConfigFileError } from './problem.ts'
import { readConfigFile } from './read.ts'
import { loadConfigFile } from './file.ts'
import type { ConfigMessage } from '../store.ts'
import { validate } from '../validate.ts'

let directory: string
let certificate: Certificate
let other: Certificate
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'config-file-'))
  certificate = makeCertificate({ name: 'a.example' })
  other = makeCertificate({ name: 'b.example' })
  await writeFile(join(directory, 'tls.crt'), certificate.certificate)
  await writeFile(join(directory, 'tls.key'), certificate.privateKey)
  await writeFile(join(directory, 'other.key'), other.privateKey)
  await writeFile(join(directory, 'notes.txt'), 'not a certificate')
})
afterAll(() => rm(directory, { recursive: true }))

async function write(text: string, name = 'config.yaml'): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

/** Problems of a file, with the directory cut off. */
async function problemsOf(text: string): Promise<string[]> {
  const path = await write(text)
  try {
    await loadConfigFile(path)
    return []
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => {
      expect(problem).toMatch(/ \[PX30\d\d\]$/)
      return withoutCodes(problem.replace(`${directory}/`, ''))
    })
  }
}

const lines = (...text: string[]): string => `${text.join('\n')}\n`
const messagesOf = async (text: string): Promise<readonly ConfigMessage[]> => (await loadConfigFile(await write(text))).messages

test('values that cannot work are reported by file, line, column and path, and the file is used anyway', async () => {
  const path = await write(
    lines(
      'binds:',
      '- port: 8080',
      '  listeners:',
      '  - routes:',
      '    - name: a',
      '      policies:',
      '        authorization: { policy: { matchExpressions: [jwt.sub == "a", nobody.knows] } }',
      '        transformation:',
      '          request:',
      '            metadata: { who: "1 +" }',
      '        jwtAuthentication: { providers: [{ issuer: i, jwks: { inline: "{}" } }] }',
      '        basicAuthentication: { users: ["ann:secret"] }',
      '        budgets: [{ name: a, limits: [{ tokens: 5, window: Day }], quotaService: { backendRef: { address: "q:1" }, domain: d } }]',
      '      matches: [{ path: { type: RegularExpression, value: "/a(b" } }, { headers: [{ name: x-a, type: RegularExpression, value: "(?=v)" }] }]',
      '      backends: [{ host: "a:1" }]',
    ),
  )
  const { messages, warnings } = await readConfigFile(path)
  expect(messages.map(({ kind }) => kind)).toContain('route')
  const at = 'binds[0].listeners[0].routes[0]'
  expect(warnings.map((warning) => warning.replace(`${directory}/`, ''))).toEqual([
    expect.stringContaining(`config.yaml:7:71: ${at}.policies.authorization.policy.matchExpressions[1]: `),
    expect.stringContaining(`config.yaml:10:25: ${at}.policies.transformation.request.metadata.who: `),
    `config.yaml:11:63: ${at}.policies.jwtAuthentication.providers[0].jwks.inline: is not a JSON Web Key Set: it has no list keys; all its tokens are rejected [PX3010]`,
    expect.stringContaining(`config.yaml:12:40: ${at}.policies.basicAuthentication.users[0]: has a hash of no known format`),
    `config.yaml:13:30: ${at}.policies.budgets[0].limits: with quotaService, limits must be one limit of requests; no assignment is asked for, and onDisconnect decides [PX3010]`,
    expect.stringMatching(
      /^config\.yaml:14:52: binds\[0\]\.listeners\[0\]\.routes\[0\]\.matches\[0\]\.path\.value: is not a valid RE2 expression: .*; it matches nothing \[PX3010\]$/,
    ),
    expect.stringContaining(`config.yaml:14:121: ${at}.matches[1].headers[0].value: is not a valid RE2 expression`),
  ])
  expect(warnings[0]).toMatch(/nobody.*; it fails whenever it is evaluated \[PX3010\]$/)
  expect(warnings.join()).not.toContain('secret')
})

describe('loading an invalid config file reports file, line, column and path', () => {
  const listener = (...text: string[]): string => lines('binds:', '- port: 8080', '  listeners:', ...text.map((line) => `  ${line}`))
  test.each<[sentence: string, text: string, problems: string[]]>([
    ['text that is not YAML', 'binds: [\n', ['config.yaml:2:1: Flow sequence in block collection must be sufficiently indented and end with a ]']],
    [
      'a Kubernetes manifest',
      'apiVersion: v1\nkind: Service\n---\nbinds: []\n',
      ['config.yaml: is a Kubernetes manifest of kind Service, not a config file; run its directory (make run DIR=...)'],
    ],
    ['a key written twice', 'binds: []\nbinds: []\n', ['config.yaml:2:1: Map keys must be unique']],
    ['two documents', 'binds: []\n---\nbinds: []\n', ['config.yaml:2:1: a second document; write one']],
    [
      'an alias bomb',
      lines('x: &a [1]', ...'bcdefghi'.split('').map((name, index) => `${name}: &${name} [${`*${'abcdefghi'[index]},`.repeat(9)}]`)),
      ['config.yaml:1:1: Excessive alias count indicates a resource exhaustion attack'],
    ],
    ['JSON', '{\n"binds": [{"port": 0,\n"listeners": []}]}', ['config.yaml:2:12: binds[0].port: must be >= 1, is 0']],
    ['a list instead of fields', '- a\n', ['config.yaml:1:1: .: must be an object, is a list']],
    ['an unknown field', 'binds:\n- port: 80\n  listeners: []\n  adress: x\n', ['config.yaml:4:3: binds[0].adress: unknown field; did you mean addresses?']],
    [
      'a field that has another name there',
      'backends:\n- name: a\n  address: localhost:80\n',
      ['config.yaml:3:3: backends[0].address: unknown field; did you mean host?'],
    ],
    ['a missing field', 'binds:\n- port: 80\n', ['config.yaml:2:3: binds[0]: listeners is missing']],
    ['a value of the wrong type', 'binds:\n- port: http\n  listeners: []\n', ['config.yaml:2:3: binds[0].port: must be an integer, is "http"']],
    ['a value out of bounds', 'binds:\n- listeners: []\n  port: 70000\n', ['config.yaml:3:3: binds[0].port: must be <= 65535, is 70000']],
    [
      'a value that is not one of the known',
      listener('- name: a', '  protocol: UDP'),
      ['config.yaml:5:5: binds[0].listeners[0].protocol: must be one of HTTP, HTTPS, TLS, TCP, is "UDP"'],
    ],
    [
      'several errors at once',
      lines('config:', '  adminAddr: 0', 'binds:', '- port: 1', '  listeners: []', '  x: 1'),
      ['config.yaml:2:3: config.adminAddr: must be a string, is 0', 'config.yaml:6:3: binds[0].x: unknown field; known here: port, addresses, listeners'],
    ],
    [
      'a duration that is none',
      'config:\n  connectionTerminationDeadline: 5 minutes\n',
      ['config.yaml:2:3: config.connectionTerminationDeadline: must be a duration such as 30s, is "5 minutes"'],
    ],
    [
      'a backend without a kind',
      'backends:\n- name: a\n',
      ['config.yaml:2:3: backends[0]: exactly one of the fields in [host dynamicForwardProxy ai mcp cloudBackend a2a] must be set'],
    ],
    [
      'a host without port',
      'backends:\n- name: a\n  host: localhost\n',
      ['config.yaml:3:3: backends[0].host: must be host:port with a port of 1 to 65535, is "localhost"'],
    ],
    [
      'a host with port 0',
      'backends:\n- name: a\n  host: "[::1]:0"\n',
      ['config.yaml:3:3: backends[0].host: must be host:port with a port of 1 to 65535, is "[::1]:0"'],
    ],
    [
      'a host that is a URL',
      'backends:\n- name: a\n  host: http://a:80\n',
      ['config.yaml:3:3: backends[0].host: must be host:port with a port of 1 to 65535, is "http://a:80"'],
    ],
    [
      'two backends of one name',
      lines('backends:', '- name: a', '  host: a:1', '- name: a', '  host: b:1'),
      ['config.yaml:4:3: backends[1].name: the backend default/a exists already, as backends[0].name; give one another name'],
    ],
    [
      'a port bound twice',
      lines('binds:', '- port: 80', '  listeners: []', '- port: 80', '  listeners: []'),
      ['config.yaml:4:3: binds[1].port: 80 is already bound by binds[0]; put the listeners together'],
    ],
    [
      'the port of messages between replicas',
      lines('binds:', '- port: 15023', '  listeners: []'),
      ['config.yaml:2:3: binds[0].port: 15023 is reserved for messages between replicas of the gateway; use another port'],
    ],
    [
      'two listeners of one name',
      listener('- name: a', '- name: a'),
      ['config.yaml:5:5: binds[0].listeners[1].name: the listener default/config.a exists already, as binds[0].listeners[0].name; give one another name'],
    ],
    [
      'two routes of one name',
      listener('- routes:', '  - name: r', '- routes:', '  - name: r'),
      [
        'config.yaml:7:7: binds[0].listeners[1].routes[0].name: the route default/r.00 exists already, as binds[0].listeners[0].routes[0].name; give one another name',
      ],
    ],
    ['HTTPS without tls', listener('- protocol: HTTPS'), ['config.yaml:4:5: binds[0].listeners[0]: tls is missing; HTTPS needs it']],
    [
      'HTTP with tls',
      listener('- protocol: HTTP', '  tls:', '    mode: Passthrough'),
      ['config.yaml:5:5: binds[0].listeners[0].tls: is not used with protocol HTTP; write HTTPS or TLS'],
    ],
    [
      'HTTPS that passes through',
      listener('- protocol: HTTPS', '  tls: { mode: Passthrough }'),
      ['config.yaml:5:12: binds[0].listeners[0].tls.mode: Passthrough needs protocol TLS'],
    ],
    [
      'passthrough with a certificate',
      listener('- tls: { mode: Passthrough, cert: tls.crt }'),
      ['config.yaml:4:31: binds[0].listeners[0].tls.cert: is not used with mode Passthrough'],
    ],
    ['TLS without key', listener('- tls:', '    cert: tls.crt'), ['config.yaml:4:5: binds[0].listeners[0].tls: key is missing']],
    [
      'a certificate that is not there',
      listener('- tls:', '    cert: none.crt', '    key: tls.key'),
      ['config.yaml:5:7: binds[0].listeners[0].tls.cert: none.crt: no such file'],
    ],
    [
      'a certificate that is a directory',
      listener('- tls:', '    cert: .', '    key: tls.key'),
      ['config.yaml:5:7: binds[0].listeners[0].tls.cert: .: is a directory; name a file'],
    ],
    [
      'a certificate that is none',
      listener('- tls:', '    cert: notes.txt', '    key: tls.key'),
      ['config.yaml:5:7: binds[0].listeners[0].tls.cert: notes.txt is not a certificate in PEM form'],
    ],
    [
      'a key that is none',
      listener('- tls:', '    cert: tls.crt', '    key: notes.txt'),
      ['config.yaml:6:7: binds[0].listeners[0].tls.key: notes.txt is not an unencrypted private key in PEM form'],
    ],
    [
      'the key of another certificate',
      listener('- tls:', '    cert: tls.crt', '    key: other.key'),
      ['config.yaml:6:7: binds[0].listeners[0].tls.key: does not belong to the certificate in cert'],
    ],
    [
      'HTTP routes on TCP',
      listener('- protocol: TCP', '  routes: [{}]'),
      ['config.yaml:5:5: binds[0].listeners[0].routes: are not used with protocol TCP; write tcpRoutes'],
    ],
    [
      'TCP routes on HTTP',
      listener('- protocol: HTTP', '  tcpRoutes: [{}]'),
      ['config.yaml:5:5: binds[0].listeners[0].tcpRoutes: are not used with protocol HTTP; write routes'],
    ],
    [
      'names on plain TCP',
      listener('- tcpRoutes:', '  - hostnames: [a.b]'),
      ['config.yaml:5:7: binds[0].listeners[0].tcpRoutes[0].hostnames: are not used with protocol TCP; only TLS carries a name'],
    ],
    [
      'TCP beside HTTP',
      listener('- protocol: TCP', '- protocol: HTTP'),
      ['config.yaml:3:3: binds[0].listeners: a TCP listener takes every connection of its port; give the others a port of their own'],
    ],
    [
      'a backend that does not exist',
      listener('- routes:', '  - backends:', '    - backend: x'),
      ['config.yaml:6:9: binds[0].listeners[0].routes[0].backends[0].backend: x is not the name of one of backends'],
    ],
    [
      'a service that does not exist',
      listener('- routes:', '  - backends:', '    - service: { name: ns/x, port: 80 }'),
      ['config.yaml:6:20: binds[0].listeners[0].routes[0].backends[0].service.name: ns/x is not the key of one of services'],
    ],
    [
      'a destination of two kinds',
      listener('- routes:', '  - backends:', '    - host: a:1', '      backend: x'),
      [
        'config.yaml:6:9: binds[0].listeners[0].routes[0].backends[0]: exactly one of the fields in [host service backend dynamicForwardProxy ai mcp cloudBackend a2a] must be set',
      ],
    ],
    [
      'policies on a shared backend',
      lines('backends:', '- { name: b, host: "a:1" }') +
        listener('- routes:', '  - backends:', '    - backend: b', '      policies: { http: { requestTimeout: 1s } }'),
      ['config.yaml:9:9: binds[0].listeners[0].routes[0].backends[0].policies: belong to a destination that others may share; write them on the backend b'],
    ],
  ])('for %s', async (_, text, problems) => {
    expect(await problemsOf(text)).toEqual(problems)
  })

  test('for a file that does not exist', async () => {
    await expect(loadConfigFile('/nowhere/config.yaml')).rejects.toThrow('/nowhere/config.yaml: no such file')
  })

  test('without repeating a private key', async () => {
    const [problem = ''] = await problemsOf(lines('binds:', '- port: 1', '  listeners: [{ tls: { cert: 1, key: "-----BEGIN PRIVATE KEY-----SECRET" } }]'))
    expect(problem).toContain('tls.cert: must be a string')
    const [bad = ''] = await problemsOf(lines('binds:', '- port: 1', '  listeners: [{ tls: { cert: tls.crt, key: "-----BEGIN PRIVATE KEY-----SECRET" } }]'))
    expect(bad).toMatch(/tls\.key: the PEM text is not an unencrypted private key in PEM form$/)
  })
})

describe('a valid config file', () => {
  const full = (): string =>
    lines(
      'config: { logging: { level: debug }, namespace: shop, gateway: edge }',
      'binds:',
      '- port: 8080',
      '  listeners:',
      '  - name: web',
      '    hostname: "*.example.com"',
      '    policies: { timeouts: { request: 5s } }',
      '    routes:',
      '    - name: api',
      '      hostnames: [api.example.com]',
      '      matches: [{ path: { type: PathPrefix, value: /api }, headers: [{ name: X-User, type: Exact, value: Bob }] }]',
      '      policies: { timeouts: { request: 1s } }',
      '      backends:',
      '      - { host: "127.0.0.1:9000", weight: 3 }',
      '      - { host: "[::1]:9001", policies: { http: { requestTimeout: 1s } } }',
      '      - backend: fixed',
      '      - service: { name: shop/web, port: 80 }',
      '      - dynamicForwardProxy: {}',
      '    - backends: [{ host: "a:1" }]',
      '- port: 8443',
      '  addresses: [127.0.0.1]',
      '  listeners:',
      '  - tls: { cert: tls.crt, key: tls.key, clientCa: tls.crt }',
      '  - tls: { mode: Passthrough }',
      '    tcpRoutes: [{ hostnames: [db.example.com], backends: [{ host: "db:5432" }] }]',
      '- port: 9000',
      '  listeners: [{ tcpRoutes: [{ name: raw, backends: [{ host: "db:5432" }] }] }]',
      'backends:',
      '- { name: fixed, host: "example.org:443" }',
      'services:',
      '- { key: shop/web, ports: [{ port: 80, endpoints: [{ address: 10.0.0.1, port: 8080 }] }] }',
    )

  test('becomes messages that fit the schema of the stream', async () => {
    const messages = await messagesOf(full())
    expect(messages.map(({ kind, message }) => `${kind} ${message.key}`)).toEqual([
      'service shop/web',
      'backend shop/fixed',
      'bind 8080/shop/edge',
      'listener shop/edge.web',
      'policy traffic/shop/listener.web:0',
      'backend shop/api.backend1',
      'backend shop/api.backend4',
      'route shop/api.00',
      'policy traffic/shop/route.api:0',
      'route shop/route1.00',
      'bind 8443/shop/edge',
      'secret shop/edge.listener1.tls',
      'secret shop/edge.listener1.client-ca',
      'listener shop/edge.listener1',
      'listener shop/edge.listener2',
      'tcpRoute shop/tcproute0.00.tls',
      'bind 9000/shop/edge',
      'listener shop/edge.listener3',
      'tcpRoute shop/raw.00.tcp',
    ])
    for (const { kind, message } of messages) expect([kind, message.key, validate(messageKinds[kind], message)]).toEqual([kind, message.key, []])
  })

  test('becomes messages with names, order, targets and key material', async () => {
    const messages = await messagesOf(full())
    const find = (id: string): object => messages.find(({ kind, message }) => `${kind} ${message.key}` === id)?.message ?? {}
    expect(find('listener shop/edge.web')).toMatchObject({
      bind: '8080/shop/edge',
      protocol: 'HTTP',
      hostname: '*.example.com',
      gateway: { namespace: 'shop', name: 'edge' },
    })
    expect(find('route shop/api.00')).toMatchObject({
      listeners: ['shop/edge.web'],
      hostnames: ['api.example.com'],
      matches: [{ headers: [{ name: 'x-user', value: 'Bob' }] }],
      creationTimestamp: '1970-01-01T00:00:00.000Z',
      backends: [
        { ref: { address: '127.0.0.1:9000' }, weight: 3 },
        { ref: { backend: 'shop/api.backend1' } },
        { ref: { backend: 'shop/fixed' } },
        { ref: { service: 'shop/web', port: 80 } },
        { ref: { backend: 'shop/api.backend4' } },
      ],
    })
    expect(find('route shop/route1.00')).toMatchObject({ creationTimestamp: '1970-01-01T00:00:01.000Z' })
    expect(find('backend shop/api.backend1')).toEqual({
      key: 'shop/api.backend1',
      static: { host: '::1', port: 9001 },
      policies: { http: { requestTimeout: '1s' } },
    })
    expect(find('policy traffic/shop/listener.web:0')).toMatchObject({
      target: { kind: 'Gateway', namespace: 'shop', name: 'edge', section: 'web' },
      traffic: { timeouts: { request: '5s' } },
    })
    expect(find('policy traffic/shop/route.api:0')).toMatchObject({ target: { kind: 'HTTPRoute', namespace: 'shop', name: 'api' } })
    expect(find('listener shop/edge.listener1')).toMatchObject({
      protocol: 'HTTPS',
      tls: {
        mode: 'Terminate',
        certificates: ['shop/edge.listener1.tls'],
        clientValidation: { mode: 'AllowValidOnly', caCertificates: ['shop/edge.listener1.client-ca'] },
      },
    })
    expect(find('secret shop/edge.listener1.tls')).toEqual({
      key: 'shop/edge.listener1.tls',
      type: 'tls',
      certificate: certificate.certificate,
      privateKey: certificate.privateKey,
    })
    expect(find('listener shop/edge.listener2')).toMatchObject({ protocol: 'TLS', tls: { mode: 'Passthrough' } })
    expect(find('tcpRoute shop/tcproute0.00.tls')).toMatchObject({
      route: { kind: 'TLSRoute' },
      hostnames: ['db.example.com'],
      listeners: ['shop/edge.listener2'],
    })
    expect(find('listener shop/edge.listener3')).toMatchObject({ protocol: 'TCP' })
  })

  test('may contain inline PEM, be JSON, or be empty', async () => {
    const tls = { cert: certificate.certificate, key: certificate.privateKey }
    expect((await messagesOf(JSON.stringify({ binds: [{ port: 1, listeners: [{ tls }] }] }))).map(({ kind }) => kind)).toEqual(['bind', 'secret', 'listener'])
    expect(await messagesOf('# nothing yet\n')).toEqual([])
  })

  test('permits plugins in process on all of its listeners', async () => {
    const permissionOf = async (config: object): Promise<unknown[]> =>
      (
        await messagesOf(
          JSON.stringify({
            config,
            binds: [
              { port: 1, listeners: [{}] },
              { port: 2, listeners: [{}] },
            ],
          }),
        )
      ).flatMap(({ kind, message }) => (kind === 'listener' ? [message.inProcessPlugins] : []))
    expect(await permissionOf({ plugins: { inProcess: true } })).toEqual([true, true])
    expect(await permissionOf({ plugins: { inProcess: false } })).toEqual([undefined, undefined])
  })

  test('belongs to the Gateway from the environment rather than the one in the file', async () => {
    const loaded = await loadConfigFile(await write(full()), { namespace: 'env', gateway: 'gw' })
    expect(loaded.messages.find(({ kind }) => kind === 'bind')?.message.key).toBe('8080/env/gw')
    expect(loaded.process).toEqual({ logging: { level: 'debug' }, namespace: 'shop', gateway: 'edge' })
  })
})

describe('a message about an invalid config file has no credential of it:', () => {
  const SECRET = 'hunter2-correct-horse'
  const NUMBER = 8675309867530
  test.each<[string, string]>([
    ['an API key that is a number', `llm: { models: { m: { openai: { apiKey: ${NUMBER} } } } }`],
    ['an API key that is a list', `llm: { models: { m: { openai: { apiKey: [${SECRET}] } } } }`],
    ['users that are no list', `binds: [{ port: 1, listeners: [{ name: l, policies: { basicAuthentication: { users: "ann:${SECRET}" } } }] }]`],
    ['a key with a policy beside it', `llm: { models: { m: { openai: { apiKey: ${SECRET} }, policies: { auth: { key: ${NUMBER} } } } } }`],
    ['an environment', `mcp: { servers: { s: { command: [x], env: { API_TOKEN: ${NUMBER} } } } }`],
    ['a word of a command', `mcp: { servers: { s: { command: [x, --token, ${NUMBER}] } } }`],
    [
      'a header',
      `binds: [{ port: 1, listeners: [{ name: l, policies: { headerModifiers: { request: { set: [{ name: x-api-key, value: ${NUMBER} }] } } } }] }]`,
    ],
    ['a Secret', `secrets: [{ key: opaque/a/b, type: opaque, data: { token: ${NUMBER} } }]`],
    ['a URL with a password', `llm: { models: { m: { openai: { url: "ftp://ann:${SECRET}@host.example/v1" } } } }`],
    ['the URL of a store', `config: { redis: { url: [${SECRET}] } }`],
    ['an alias', `llm: { models: { m: { openai: { apiKey: *${SECRET} } } } }`],
    ['a tag', `llm: { models: { m: { openai: { apiKey: !${SECRET} } } } }`],
    ['a block', `a: |${SECRET}`],
    ['a directive', `%${SECRET}\n---\na: 1`],
    ['text behind the document', `a: ]${SECRET}`],
  ])('%s', async (_, text) => {
    const problems = await problemsOf(text)
    expect(problems).not.toEqual([])
    for (const secret of [SECRET, String(NUMBER)]) expect(problems.join('\n')).not.toContain(secret)
  })
})
