import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findSecrets } from '#api/secret-fields.ts'
import type { Plugin } from '#gen/config/types.ts'
import schema from '#gen/config/schema.json' with { type: 'json' }
import { writeDump } from '../admin/dump.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { HeaderList } from '../../http/headers.ts'
import { setLogField, writeExchangeFields } from '../../observe/telemetry/access-log/fields.ts'
import { createLogging, type LogFormat } from '../../observe/telemetry/log.ts'
import { AttributeSink } from '../../observe/telemetry/otlp/attributes.ts'
import { ProtoWriter } from '../../observe/telemetry/otlp/writer.ts'
import { setKnownSecrets, setSensitiveHeaders } from '../../observe/telemetry/redact.ts'
import { createTelemetry } from '../../observe/telemetry/telemetry.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { endPlugins } from '../../policy/plugins/host.ts'
import { takeAdminToken } from '../../program/settings.ts'
import { readLedgerSettings } from '../../store/ledger/settings.ts'
import type { UpstreamPool } from '../../net/upstream/types.ts'
import { cacheUntilExpiry } from '../../net/upstream/cloud/cached.ts'
import { issuedSecrets } from '../../runtime/issued-secrets.ts'
import { readPasswordFile } from '../../runtime/server-client.ts'
import { BatchLabels } from '../../store/ledger/labels.ts'
import { createDescribe } from '../../store/ledger/record.ts'
import { TailRecorder } from './tail.ts'

const SECRET = 'sesame-of-the-backend'
const QUERY_KEY = 'key-of-the-client'
const HEADER = 'session-of-the-client'
const OWN_HEADER = 'number-of-the-tenant'
const MODIFIER_KEY = 'written-into-a-modifier'
const ISSUED = 'eyJ-token-of-the-cloud'
const SESSION_KEY = 'ab12'.repeat(16)
const ADMIN_TOKEN = 'admin-token-of-the-process'
/** In a file: a store's password and the like are issued to the process. */
const PASSWORD = 'password-in-a-file'
const PLUGIN_KEY = 'key-of-the-plugin'

/** Fields of the schemas that hold a credential, each with the value of the field and the object around it. */
const secretFields: Readonly<Record<string, (secret: string) => object>> = {
  'HeaderTransformation.value': (secret) => ({ transformation: { request: { set: [{ name: 'x-api-key', value: `"Bearer ${secret}"` }] } } }),
  'AgentExtAuthHTTP.addRequestHeaders': (secret) => ({ http: { addRequestHeaders: { 'x-token': `'${secret}'` } } }),
  'BasicAuthentication.users': (secret) => ({ basicAuthentication: { users: [`ann:${secret}`] } }),
  'BackendAuth.key': (secret) => ({ auth: { key: secret } }),
  'OAuthCredentials.parameters': (secret) => ({ oauth: { parameters: { client_secret: secret } } }),
  'McpTargetSelector.command': (secret) => ({ command: ['server', '--api-key', secret] }),
  'McpTargetSelector.env': (secret) => ({ env: { GITHUB_TOKEN: secret, HOME: '/home/of-the-server' } }),
  'A2ACardSigning.key': (secret) => ({ cardSigning: { key: secret } }),
  'HTTPHeader.value': (secret) => ({ headerModifiers: { request: { add: [{ name: 'authorization', value: `Basic ${secret}` }] } } }),
  'HeaderValue.value': (secret) => ({ filters: { requestHeaders: [{ set: [{ name: 'x-auth-token', value: secret }] }] } }),
  'LedgerConfig.postgres.url': (secret) => ({ postgres: { url: `postgres://ann:${secret}@db.example:5432/x` } }),
  'LedgerConfig.clickhouse.url': (secret) => ({ clickhouse: { url: `https://ann:${secret}@db.example/x` } }),
  'RedisConfig.url': (secret) => ({ redis: { url: `rediss://:${secret}@cache.example` } }),
  'PostgresConfig.url': (secret) => ({ postgres: { url: `postgres://ann:${secret}@db.example/x?sslmode=disable` } }),
  'FileTls.key': (secret) => ({ tls: { cert: 'a.pem', key: `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----` } }),
  'ShortHttps.key': (secret) => ({ https: { cert: 'a.pem', key: `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----` } }),
  'ShortKey.key': (secret) => ({ keys: { alice: { key: secret } } }),
  'ShortProviderF.secretAccessKey': (secret) => ({ bedrock: { secretAccessKey: secret } }),
  'ShortProviderF.sessionToken': (secret) => ({ bedrock: { sessionToken: secret } }),
  'ShortPreset.apiKey': (secret) => ({ preset: { name: 'groq', apiKey: secret } }),
  'ShortCustom.apiKey': (secret) => ({ custom: { apiKey: secret } }),
  'ShortMCPServer.apiKey': (secret) => ({ files: { apiKey: secret } }),
  'ShortMCPServer.command': (secret) => ({ files: { command: ['server', `--token=${secret}`] } }),
  'ShortMCPServer.env': (secret) => ({ files: { env: { OPENAI_API_KEY: secret } } }),
  ...Object.fromEntries(Array.from('ABCDEF', (letter) => [`ShortProvider${letter}.apiKey`, (secret: string) => ({ openai: { apiKey: secret } })])),
  // The values of Secret messages; what a URL or a set of keys of them has is public.
  'Secret.data': (secret) => ({ secrets: [{ key: 'opaque/ns/s', data: { clientSecret: secret } }] }),
}
/** Text fields whose names sound like credentials, and that have none. */
const publicFields =
  /^(?:(?:Bind|Listener|Secret|Route|TcpRoute|Service|Backend|Policy)\.key|ResolvedSecret(?:s|Key)?\.(?:secret|secrets|key)|(?:Budget|LocalRateLimit)\.key|BudgetQuotaService\.keyName|OAuthCredentials\.(?:subjectToken|tokenEndpoint\.path|audiences)|A2ACardSigning\.(?:keyId|jwksUrl)|BackendAI\.firstTokenTimeout|CORS\.\w+|AgentExtAuthHTTP\.allowed\w+|RouteExtAuth\.\w+|ProcessConfig\.logging\.sensitiveHeaders|.*\.passwordFile|JWKS\.inline|ResolvedKeySet\.inline|Secret\.privateKey|ShortProvider[A-F]\.url|ShortPreset\.url|(?:CustomProvider|ShortCustom)\.auth\.(?:header|scheme)|ShortProviderF\.accessKeyId|ShortMCPServer\.url|ShortKey\.keyHash|ShortMCPRule\.keys|HTTPHeaderMatch\.value|ReplacedResponse\.headers\.\w+|ClientIP\.header|OIDC\.(?:endpoints\.authorization|cookieDomain|forwardIdToken))$/
const written = Object.keys(secretFields).map((field) => `written-into-${field.toLowerCase().replaceAll('.', '-')}`)

const secrets = [SECRET, QUERY_KEY, HEADER, OWN_HEADER, MODIFIER_KEY, ISSUED, SESSION_KEY, PASSWORD, ADMIN_TOKEN, ...written]
/** Those that a failure may repeat; the others are redacted by the name of their field. */
const repeated = [SECRET, MODIFIER_KEY, ISSUED, SESSION_KEY, PASSWORD, ADMIN_TOKEN, ...written]

const messages: ConfigMessage[] = [
  ...testListener,
  testRoute({ service: 'ns/web', port: 80 }, { route: { kind: 'HTTPRoute', namespace: 'ns', name: 'web', ruleIndex: 0, rule: 'main' } }),
  { kind: 'service', message: { key: 'ns/web', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 80 }] }] } },
  { kind: 'secret', message: { key: 'opaque/ns/s', type: 'opaque', data: { token: `${SECRET}\n` } } },
  {
    kind: 'policy',
    message: {
      key: 'traffic/ns/p:0',
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
      target: { kind: 'HTTPRoute', namespace: 'ns', name: 'web' },
      traffic: {
        headerModifiers: {
          request: {
            set: [
              { name: 'x-note', value: SECRET },
              { name: 'x-auth-token', value: `Bearer ${MODIFIER_KEY}` },
            ],
          },
        },
      },
    },
  },
]

/** A message with a credential in each field. No policy of it applies: it is enough that it is in force. */
const messageOf = (nth: number, field: object): ConfigMessage => ({
  kind: 'policy',
  message: {
    key: `traffic/ns/w${nth}:0`,
    policy: { kind: 'ProxyPolicy', namespace: 'ns', name: `w${nth}` },
    target: { kind: 'HTTPRoute', namespace: 'ns', name: 'none' },
    ...field,
  },
})

/** What each outlet has of a request whose upstream fails with a text that has the secret. */
async function walk(format: LogFormat): Promise<Record<string, string>> {
  const lines: string[] = []
  const writer = { dropped: 0, write: (line: string) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
  const logging = createLogging({ writer, format, sensitiveHeaders: ['X-Acme-*'] })
  issuedSecrets.add(SESSION_KEY)
  expect(takeAdminToken({ ADMIN_TOKEN: `${ADMIN_TOKEN}\n` })).toBe(ADMIN_TOKEN)
  const passwordFile = join(mkdtempSync(join(tmpdir(), 'outlets-')), 'password')
  writeFileSync(passwordFile, `${PASSWORD}\n`)
  await readPasswordFile(passwordFile)
  await cacheUntilExpiry(() => Promise.resolve({ token: ISSUED, expiresAtMs: undefined }))()
  const telemetry = createTelemetry(logging, { version: '1' })
  const recorder = new TailRecorder(telemetry)
  const pool: UpstreamPool = {
    size: 0,
    close: () => {},
    call(request) {
      expect(request.headers.get('x-note')).toBe(SECRET)
      return { cancel: () => {}, response: Promise.reject(new ProxyError('UPSTREAM_FAILED', { cause: new Error(`bad key ${repeated.join(' and ')}`) })) }
    },
  }
  const gateway = new Gateway({ createPool: () => pool })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, [...messages, ...Object.values(secretFields).map((place, nth) => messageOf(nth, place(written[nth] ?? '')))])
  recorder.read({ tail: 't', filter: undefined, limit: 10 })
  const report = gateway.tracer.wait({}, 5000)

  const target = `/items?key=${QUERY_KEY}&q=${SECRET}&api%5Fkey=${QUERY_KEY}`
  const headers = new HeaderList(['mcp-session-id', HEADER, 'x-other', SECRET, 'x-acme-tenant', OWN_HEADER])
  const exchange = new Exchange(testConnection, testRequest({ target, authority: 'shop.example', headers }), performance.now())
  await gateway.handle(exchange)
  exchange.trace?.add('item', `tool ${SECRET}`, { hidden: `by ${SECRET}` })
  setLogField(exchange, 'gen_ai.request.model', SECRET)
  exchange.finishedAtMs = performance.now()
  telemetry.onFinished(exchange)
  logging
    .logger('plugin')
    .error(`call failed: ${SECRET}`, { code: 'PX4012', error: new Error('outer', { cause: new Error(SECRET) }), detail: { inner: SECRET } })
  const attributes = new ProtoWriter()
  writeExchangeFields(exchange, new AttributeSink(attributes, 0x12))
  let dump = ''
  for await (const piece of writeDump({ ...store.snapshot() })) dump += piece
  const ledger = readLedgerSettings({ sqlite: { path: '/ledger' }, httpSampling: 1 }, 'ns/gw')
  if (typeof ledger === 'string') throw new Error(ledger)
  const labels = new BatchLabels()
  createDescribe(ledger)(exchange, labels, [0, 0])
  const tail = recorder.read({ tail: 't', filter: undefined, limit: 10 })
  expect(tail.records).toHaveLength(1)
  return {
    log: lines.join(''),
    otlp: Buffer.from(attributes.bytes).toString('latin1'),
    dump,
    ledger: labels.list.join(''),
    tail: JSON.stringify(tail),
    trace: JSON.stringify(await report),
    client: JSON.stringify([exchange.response?.status, exchange.response?.headers.raw, exchange.response?.body]),
  }
}

test.each<LogFormat>(['text', 'json'])(
  'no outlet has a secret of the config, of a header or query, or one that was issued at run time, with the log as %s',
  async (format) => {
    try {
      const outlets = await walk(format)
      for (const [outlet, text] of Object.entries(outlets))
        for (const secret of secrets) expect([outlet, text.includes(secret), text.length > 0]).toEqual([outlet, false, true])
      // Each of them has the text around the secret: the outlet was reached.
      for (const outlet of ['log', 'otlp', 'tail', 'trace'] as const)
        expect([outlet, outlets[outlet]]).toEqual([outlet, expect.stringContaining(`bad key ${repeated.map(() => '<redacted>').join(' and ')}`)])
      for (const outlet of ['log', 'otlp', 'tail'] as const) expect(outlets[outlet]).toContain('/items?key=<redacted>&q=<redacted>&api%5Fkey=<redacted>')
      expect(outlets['log']).toContain('call failed: <redacted>')
    } finally {
      setKnownSecrets({ secrets: new Map() })
      setSensitiveHeaders([])
    }
  },
)

test('an Error of a plugin that has its secret shows it in no log line, response, tail or trace', async () => {
  const lines: string[] = []
  const writer = { dropped: 0, write: (line: string) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
  const logging = createLogging({ writer })
  const telemetry = createTelemetry(logging, { version: '1' })
  const { registry } = telemetry.metrics
  const recorder = new TailRecorder(telemetry)
  const gateway = new Gateway({
    registry,
    log: logging.logger('plugins'),
    createPool: () => {
      throw new Error('no upstream is called')
    },
  })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const code = `export default { setup: ({ secrets, log }) => ({ async request() { log.info('the key is ' + secrets.s); throw new Error('bad key ' + secrets.s) } }) }`
  const plugin: Plugin = {
    name: 'p',
    source: { configMapRef: { code, file: 'index.ts', owner: 'ns/p' } },
    limits: { timeout: '50s' },
    secrets: [{ name: 's', secretRef: { secret: 'opaque/ns/k', key: 's' } }],
  }
  replaceMessages(store, [
    ...messages,
    { kind: 'secret', message: { key: 'opaque/ns/k', type: 'opaque', data: { s: PLUGIN_KEY } } },
    {
      kind: 'policy',
      message: { key: 'traffic/ns/g:0', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'g' }, target: testGateway, traffic: { plugins: [plugin] } },
    },
  ])
  try {
    recorder.read({ tail: 't', filter: undefined, limit: 10 })
    const report = gateway.tracer.wait({}, 60_000)
    const exchange = new Exchange(testConnection, testRequest({ authority: 'shop.example' }), performance.now())
    await gateway.handle(exchange)
    exchange.finishedAtMs = performance.now()
    telemetry.onFinished(exchange)
    expect(exchange.response?.status).toBe(500)
    const outlets = {
      log: lines.join(''),
      tail: JSON.stringify(recorder.read({ tail: 't', filter: undefined, limit: 10 })),
      trace: JSON.stringify(await report),
      client: JSON.stringify([exchange.response?.headers.raw, exchange.error?.message]),
    }
    for (const [outlet, text] of Object.entries(outlets)) expect([outlet, text.includes(PLUGIN_KEY)]).toEqual([outlet, false])
    for (const text of [outlets.log, outlets.tail, outlets.trace]) expect(text).toMatch(/bad key (?:\*\*\*|<redacted>)/)
  } finally {
    endPlugins(registry)
    gateway.close()
    setKnownSecrets({ secrets: new Map() })
  }
}, 90_000)

interface Node {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}
const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/** Whether a field is text, or has texts in a list or by name. */
function isText(node: Node | boolean | undefined, depth = 0): boolean {
  if (node === undefined || typeof node === 'boolean' || depth > 5) return false
  if (node.$ref !== undefined) return isText(definitions[node.$ref.slice(node.$ref.lastIndexOf('/') + 1)], depth + 1)
  if (node.enum !== undefined) return false
  return (
    node.type === 'string' ||
    (node.type === 'array' && isText(node.items, depth + 1)) ||
    (node.type === 'object' && isText(node.additionalProperties, depth + 1))
  )
}

function* fieldsOf(node: Node, path: string): Generator<string> {
  for (const [name, field] of Object.entries(node.properties ?? {})) {
    if (isText(field)) yield `${path}.${name}`
    yield* fieldsOf(field, `${path}.${name}`)
  }
  if (node.items !== undefined) yield* fieldsOf(node.items, path)
}

test('each text field of the schemas whose name sounds like a credential has a row here, or is named as public', () => {
  const fields = Object.entries(definitions).flatMap(([name, node]) => [...fieldsOf(node, name)])
  const sounding = fields.filter((field) =>
    /key|secret|token|passw|credential|users|cookie|command|\.env$|\.url$|auth|inline|header/i.test(field.slice(field.indexOf('.'))),
  )
  expect(sounding.length).toBeGreaterThan(40)
  expect(sounding.filter((field) => secretFields[field] === undefined && !publicFields.test(field))).toEqual([])
  // Values of headers have another name.
  expect(Object.keys(secretFields).filter((field) => !fields.includes(field))).toEqual([])
})

test.each(Object.entries(secretFields))('the credential of %s is found in a config, valid or not', (_, place) => {
  const secret = 'correct-horse-battery'
  expect(findSecrets({ policies: [place(secret)] }).join(' ')).toContain(secret)
})
