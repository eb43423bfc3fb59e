import { describe, expect, test } from '@jest/globals'
import { ProxyError } from '../../../request/exchange/error.ts'
import { Exchange, type Connection } from '../../../request/exchange/exchange.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead } from '../../../http/message.ts'
import { testConnection, testRequest } from '../../../testing/exchange.ts'
import { createAccessLog, setLogField, type TcpSession } from './access-log.ts'
import { createLogging, type LogFormat } from '../log.ts'
import { setProtocol } from '../outcome.ts'
import type { LineWriter } from '../writer.ts'

const connection: Connection = { ...testConnection, id: 9, remoteAddress: '10.1.2.3', remotePort: 5000 }

function makeExchange(change: (exchange: Exchange) => void, request: Partial<RequestHead> = {}, from: Partial<Connection> = {}): Exchange {
  const exchange = new Exchange({ ...connection, ...from }, testRequest({ target: '/a?b=c', ...request }), 1000)
  exchange.finishedAtMs = 1012.4
  exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  change(exchange)
  return exchange
}

function collect(): LineWriter & { lines: string[] } {
  const lines: string[] = []
  return { lines, dropped: 0, write: (line) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
}

/** The one line, without its timestamp. */
function lineOf(exchange: Exchange, format: LogFormat, level = 'info'): string {
  const writer = collect()
  createAccessLog(createLogging({ writer, format, level })).logExchange(exchange)
  expect(writer.lines).toHaveLength(1)
  const line = writer.lines[0] ?? ''
  const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/
  expect(line).toMatch(time)
  return line.replace(time, 'TIME')
}

const routed = (exchange: Exchange): void => {
  exchange.labels = { gateway: 'default/web', listener: 'http', route: 'default/shop', rule: 'all' }
  exchange.endpoint = '10.0.0.9:8080'
}
const SOURCE = 'src.addr=10.1.2.3:5000'

interface Row {
  change: (exchange: Exchange) => void
  request?: Partial<RequestHead>
  from?: Partial<Connection>
  text: string
}

const rows: Record<string, Row> = {
  'a routed request shows route, endpoint, source, head and duration': {
    change: routed,
    text: `gateway=default/web listener=http route_rule=all route=default/shop endpoint=10.0.0.9:8080 ${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 protocol=http duration=12ms`,
  },
  'empty labels are absent': {
    change: (exchange) => {
      exchange.labels = { gateway: 'default/web', listener: 'http', rule: '' }
    },
    text: `gateway=default/web listener=http ${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 protocol=http duration=12ms`,
  },
  'an error is quoted and names its reason and cause': {
    change: (exchange) => {
      exchange.error = new ProxyError('UPSTREAM_FAILED', { cause: new Error('connect ECONNREFUSED 10.0.0.9:80') })
      if (exchange.response) exchange.response.status = 503
    },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=503 protocol=http error="upstream call failed: connect ECONNREFUSED 10.0.0.9:80" reason=UpstreamFailure duration=12ms`,
  },
  'a local answer has the reason DirectResponse and no error': {
    change: (exchange) => {
      exchange.isLocalAnswer = true
    },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 protocol=http reason=DirectResponse duration=12ms`,
  },
  'gRPC shows its own status, retries their number': {
    change: (exchange) => {
      exchange.grpcStatus = '14'
      exchange.retryAttempt = 2
    },
    request: { version: 'HTTP/2' },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/2 http.status=200 grpc.status=14 protocol=http retry.attempt=2 duration=12ms`,
  },
  'a client that left before the answer leaves no status': {
    change: (exchange) => {
      exchange.response = undefined
      exchange.cutBy = 'client'
    },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 protocol=http error="client closed the connection before the end of the response" duration=12ms`,
  },
  'a response that the upstream broke off is its failure': {
    change: (exchange) => {
      exchange.cutBy = 'upstream'
    },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 protocol=http error="upstream closed the connection before the end of the response" reason=UpstreamFailure duration=12ms`,
  },
  'contributed fields come in their own order, whatever order they were set in': {
    change: (exchange) => {
      setLogField(exchange, 'gen_ai.usage.input_tokens', 12)
      setLogField(exchange, 'jwt.sub', 'bob smith')
      setLogField(exchange, 'trace.id', 'abc')
      setProtocol(exchange, 'llm')
    },
    text: `${SOURCE} http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 trace.id=abc jwt.sub="bob smith" protocol=llm gen_ai.usage.input_tokens=12 duration=12ms`,
  },
  'IPv6 sources stand in brackets; an empty host is absent': {
    change: () => undefined,
    request: { authority: '', method: 'OPTIONS', target: '*' },
    from: { remoteAddress: '::1' },
    text: `src.addr=[::1]:5000 http.method=OPTIONS http.path=* http.version=HTTP/1.1 http.status=200 protocol=http duration=12ms`,
  },
  'what could forge a field or a line is quoted and escaped': {
    change: () => undefined,
    request: { authority: 'a b', target: '/x\n2026 info request reason=Fake"\u009b' },
    text: `${SOURCE} http.method=GET http.host="a b" http.path="/x\\n2026 info request reason=Fake\\"\\u009b" http.version=HTTP/1.1 http.status=200 protocol=http duration=12ms`,
  },
  'a verified workload identity of the client is shown': {
    change: () => undefined,
    from: {
      tls: {
        sni: 'a.example',
        alpn: undefined,
        protocol: 'TLSv1.3',
        clientCertificate: { pem: '', subject: '', subjectCn: '', issuer: '', subjectAltNames: ['DNS:x', 'URI:spiffe://cluster.local/ns/a/sa/b'] },
      },
    },
    text: `${SOURCE} src.identity=spiffe://cluster.local/ns/a/sa/b http.method=GET http.host=example.com http.path=/a?b=c http.version=HTTP/1.1 http.status=200 protocol=http duration=12ms`,
  },
}

describe('access log', () => {
  test.each(Object.entries(rows))('text: %s', (_name, { change, request, from, text }) => {
    expect(lineOf(makeExchange(change, request, from), 'text')).toBe(`TIME\tinfo\trequest ${text}\n`)
  })

  test.each(Object.entries(rows))('json holds the same fields in the same order: %s', (_name, { change, request, from, text }) => {
    const entry = JSON.parse(lineOf(makeExchange(change, request, from), 'json')) as Record<string, unknown>
    const names = [...text.matchAll(/(?:^| )([a-z][a-z_.]*)=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)/g)].map((match) => match[1])
    expect(Object.keys(entry)).toEqual(['level', 'time', 'scope', ...names])
    expect(entry).toMatchObject({ level: 'info', time: 'TIME', scope: 'request', 'http.path': request?.target ?? '/a?b=c', duration: '12ms' })
  })

  test('json keeps numbers as numbers', () => {
    expect(lineOf(makeExchange(routed), 'json')).toBe(
      '{"level":"info","time":"TIME","scope":"request","gateway":"default/web","listener":"http","route_rule":"all","route":"default/shop","endpoint":"10.0.0.9:8080","src.addr":"10.1.2.3:5000","http.method":"GET","http.host":"example.com","http.path":"/a?b=c","http.version":"HTTP/1.1","http.status":200,"protocol":"http","duration":"12ms"}\n',
    )
  })

  test('debug adds the ids of connection and request', () => {
    expect(lineOf(makeExchange(routed), 'text', 'request=debug')).toMatch(/ duration=12ms connection\.id=9 request\.id=1\n$/)
  })

  test.each(['request=off', 'error', 'request=warn,debug'])('the level %s silences it, and a change at run time brings it back', (level) => {
    const writer = collect()
    const logging = createLogging({ writer, level })
    const accessLog = createAccessLog(logging)
    accessLog.logExchange(makeExchange(routed))
    expect(writer.lines).toEqual([])
    logging.setLevel('info')
    accessLog.logExchange(makeExchange(routed))
    expect(writer.lines).toHaveLength(1)
  })

  test('a TCP session shows SNI, endpoint and failure', () => {
    const writer = collect()
    const session: TcpSession = {
      connection: { ...connection, tls: { sni: 'db.example', alpn: undefined, protocol: undefined, clientCertificate: undefined } },
      labels: { gateway: 'default/web', listener: 'tls', route: 'default/db' },
      endpoint: '10.0.0.3:5432',
      error: new ProxyError('UPSTREAM_FAILED', { detail: 'connection refused' }),
      startedAtMs: 0,
      finishedAtMs: 1500.6,
    }
    createAccessLog(createLogging({ writer })).logTcpSession(session)
    expect(writer.lines[0]?.slice(28)).toBe(
      'info\trequest gateway=default/web listener=tls route=default/db endpoint=10.0.0.3:5432 src.addr=10.1.2.3:5000 tls.sni=db.example protocol=tcp error="upstream call failed: connection refused" reason=UpstreamFailure duration=1501ms\n',
    )
  })
})
