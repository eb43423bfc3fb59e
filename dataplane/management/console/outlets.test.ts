import { expect, test } from '@jest/globals'
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
import { testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { readLedgerSettings } from '../../store/ledger/settings.ts'
import type { UpstreamPool } from '../../net/upstream/types.ts'
import { compileBackendAuth } from '../../net/destination/auth.ts'
import { cacheUntilExpiry } from '../../net/upstream/cloud/cached.ts'
import { issuedSecrets } from '../../runtime/issued-secrets.ts'
import { BatchLabels } from '../../store/ledger/labels.ts'
import { createDescribe } from '../../store/ledger/record.ts'
import { TailRecorder } from './tail.ts'

const SECRET = 'sesame-of-the-backend'
const QUERY_KEY = 'key-of-the-client'
const HEADER = 'session-of-the-client'
const OWN_HEADER = 'number-of-the-tenant'
const MODIFIER_KEY = 'written-into-a-modifier'
const BACKEND_KEY = 'written-into-auth-key'
const ISSUED = 'eyJ-token-of-the-cloud'
const SESSION_KEY = 'ab12'.repeat(16)
const secrets = [SECRET, QUERY_KEY, HEADER, OWN_HEADER, MODIFIER_KEY, BACKEND_KEY, ISSUED, SESSION_KEY]
/** Those that a failure may repeat; the others are redacted by the name of their field. */
const repeated = [SECRET, MODIFIER_KEY, BACKEND_KEY, ISSUED, SESSION_KEY]

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

/** What each outlet has of a request whose upstream fails with a text that has the secret. */
async function walk(format: LogFormat): Promise<Record<string, string>> {
  const lines: string[] = []
  const writer = { dropped: 0, write: (line: string) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
  const logging = createLogging({ writer, format, sensitiveHeaders: ['X-Acme-*'] })
  issuedSecrets.add(SESSION_KEY)
  compileBackendAuth({ key: BACKEND_KEY }, new Map(), () => {
    throw new Error('no token endpoint')
  })
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
  replaceMessages(store, messages)
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
      setKnownSecrets(new Map())
      setSensitiveHeaders([])
    }
  },
)
