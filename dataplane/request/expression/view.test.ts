import { describe, expect, test } from '@jest/globals'
import { environments, evalHost, HostMap } from '#api/cel/index.ts'
import { ProxyError } from '../exchange/error.ts'
import { Exchange, type Connection } from '../exchange/exchange.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { LongBody, ManualBody } from '../../testing/body.ts'
import { testConnection, testExchange, testRequest } from '../../testing/exchange.ts'
import { bufferRequest, bufferResponse, replaceRequestBody } from './buffer.ts'
import { compileExpression, readsRequestBody, readsResponseBody } from './program.ts'
import { ExchangeView } from './view.ts'
import { variables } from '../exchange/variables.ts'
import { defineSlot } from '../exchange/slot.ts'

/** Value of an expression on a finished exchange, as a JavaScript value. */
const evaluate = (exchange: Exchange, expression: string): unknown => evalHost(compileExpression(expression, 'log'), new ExchangeView(exchange))

function sample(connection: Partial<Connection> = {}): Exchange {
  const request = testRequest({ method: 'POST', target: '/a/b?x=1&x=2', authority: 'h.com:8080' }, { 'x-a': '1', 'x-utf': 'Ã©', authorization: 'Bearer t' })
  const exchange = new Exchange({ ...testConnection, remoteAddress: '::ffff:10.1.2.3', ...connection }, request, performance.now())
  exchange.labels = { gateway: 'ns/gw', listener: 'http', route: 'ns/r', rule: 'first', kind: 'GRPCRoute' }
  exchange.backend = 'ns/svc:80'
  exchange.response = { status: 503, headers: new HeaderList(['grpc-status', '7', 'x-r', '1']), body: undefined, upgraded: undefined }
  variables.jwt.set(exchange, { sub: 'ann', groups: ['a'] })
  variables.metadata.set(exchange, { tenant: 'acme' })
  defineSlot<number>('telemetry.private').set(exchange, 1)
  return exchange
}

const certificate = { pem: 'PEM', subject: 'CN=a,O=b', subjectCn: 'a', issuer: 'CN=ca', subjectAltNames: ['a.com', 'spiffe://td/ns/n/sa/s'] }
const tls = { sni: 'sni.com', alpn: 'h2', protocol: 'TLSv1.3', clientCertificate: certificate }

describe('ExchangeView', () => {
  test.each<[string, unknown]>([
    ['request.method', 'POST'],
    ['request.path', '/a/b'],
    ['request.pathAndQuery', '/a/b?x=1&x=2'],
    ['request.uri', 'http://h.com:8080/a/b?x=1&x=2'],
    ['request.uri.query("x")', ['1', '2']],
    ['request.host', 'h.com:8080'],
    ['request.scheme', 'http'],
    ['request.version', 'HTTP/1.1'],
    ['request.headers["X-A"]', '1'],
    ['request.headers["x-utf"]', 'é'],
    ['string(request.headers.redacted()["authorization"])', '<redacted>'],
    ['request.startTime < timestamp("2100-01-01T00:00:00Z") && request.startTime > timestamp("2025-01-01T00:00:00Z")', true],
    ['response.code', 503],
    ['response.grpcStatus', 7],
    ['response.headers["x-r"]', '1'],
    ['string(source.address)', '10.1.2.3'],
    ['cidr("10.0.0.0/8").containsIP(source.address)', true],
    ['[source.port, destination.port]', [40000, 80]],
    ['string(destination.address)', '127.0.0.1'],
    ['destination.hostname', undefined],
    ['has(source.identity)', false],
    ['jwt.sub', 'ann'],
    ['has(jwt.email)', false],
    ['apiKey.key', undefined],
    ['apiKey', null],
    ['has(apiKey.key) || has(basicAuth.username) || has(extauthz.a) || has(extproc.a) || has(mcp.methodName) || has(llm.model)', false],
    ['apiKey == null && basicAuth == null && extauthz == null && extproc == null && mcp == null && llm == null', true],
    ['has(apiKey.name) ? apiKey.name : "anon"', 'anon'],
    ['default(apiKey.name, "anon")', 'anon'],
    ['variables().filter(k, k == "apiKey")', []],
    ['backend', { name: 'ns/svc:80', type: 'unknown', protocol: 'http' }],
    ['metadata.tenant', 'acme'],
    ['proxy.bind', 'test'],
    ['proxy.gateway.namespace + proxy.gateway.name + proxy.listener.name', 'nsgwhttp'],
    ['proxy.route', { namespace: 'ns', name: 'r', rule: 'first', kind: 'GRPCRoute' }],
    ['env.podName + env.namespace + env.gateway', 'proxydefaultproxy'],
    ['has(env.PATH)', false],
    ['request.body', undefined],
    ['variables().filter(k, k == "telemetry.private")', []],
  ])('evaluates %s', (expression, expected) => expect(evaluate(sample(), expression)).toEqual(expected))

  test.each<[string, unknown]>([
    ['source.identity', { trustDomain: 'td', namespace: 'n', serviceAccount: 's' }],
    ['source.spiffeId', 'spiffe://td/ns/n/sa/s'],
    ['source.subjectAltNames[0]', 'a.com'],
    ['[source.subject, source.subjectCn, source.issuer, source.certificate]', ['CN=a,O=b', 'a', 'CN=ca', 'PEM']],
    ['destination.hostname', 'sni.com'],
  ])('evaluates %s with a client certificate', (expression, expected) => expect(evaluate(sample({ tls }), expression)).toEqual(expected))

  test.each([
    ['only ASCII', 'a', 'b', 'b'],
    ['UTF-8 that is set later', 'a', 'Ã©', 'é'],
    ['UTF-8 that is replaced later', 'Ã©', 'b', 'b'],
  ])('shows the current value of a header with %s', (_, before, after, seen) => {
    const exchange = testExchange({}, { 'x-a': before })
    const view = new ExchangeView(exchange)
    const program = compileExpression('request.headers["x-a"] + request.path', 'request')
    expect(evalHost(program, view)).toBe(`${Buffer.from(before, 'latin1').toString()}/`)
    exchange.request.headers.set('x-a', after)
    exchange.request.target = '/c'
    expect(evalHost(program, view)).toBe(`${seen}/c`)
  })

  test.each<[Exchange['backendType'], string]>([
    ['service', 'http'],
    ['static', 'http'],
    ['dynamic', 'http'],
    ['ai', 'llm'],
    ['mcp', 'mcp'],
  ])('reports a backend of type %s with the protocol %s', (type, protocol) => {
    const exchange = sample()
    exchange.backendType = type
    expect(evaluate(exchange, '[backend.type, backend.protocol]')).toEqual([type, protocol])
  })

  test('builds only the variables that are read', () => {
    const exchange = sample({ tls })
    const read: string[] = []
    Object.defineProperty(exchange, 'slots', { get: () => (read.push('slots'), undefined) })
    evaluate(exchange, 'request.method == "POST" || jwt.sub == "x"')
    expect(read).toEqual([])
  })

  test('lists only the variables that are set', () => {
    expect([...new ExchangeView(testExchange()).keys()]).toEqual(['request', 'source', 'destination', 'proxy', 'env'])
    expect(new ExchangeView(testExchange())).toBeInstanceOf(HostMap)
  })
})

describe('bodies in expressions', () => {
  test.each<[string, boolean, boolean]>([
    ['json(request.body).model == "a"', true, false],
    ['size(request.bodyPrefix) > 1', true, false],
    ['request.path == "/body"', false, false],
    ['string(response.body)', false, true],
    ['variables()', true, true],
    ['request.body +', false, false],
  ])('%s reads the request body: %s, the response body: %s', (expression, isRequest, isResponse) => {
    const programs = [compileExpression(expression, 'response')]
    expect([readsRequestBody(programs), readsResponseBody(programs)]).toEqual([isRequest, isResponse])
  })

  test('a message without a body has an empty body', async () => {
    const exchange = testExchange()
    await bufferRequest(exchange, 10)
    expect([evaluate(exchange, 'string(request.body)'), exchange.request.body]).toEqual(['', undefined])
  })

  test('reading a body beyond the limit fails, reading its prefix does not', async () => {
    const exchange = testExchange({ body: new LongBody(100_000) })
    await bufferRequest(exchange, 70_000)
    expect([evaluate(exchange, 'request.body'), evaluate(exchange, 'size(request.bodyPrefix)')]).toEqual([undefined, 70_000])
  })

  test('a body is read once for several policies', async () => {
    const source = new ManualBody()
    const exchange = testExchange({ body: source })
    const buffered = bufferRequest(exchange, 10)
    source.push('ab')
    source.end()
    await buffered
    await bufferRequest(exchange, 10)
    expect([source.asked, evaluate(exchange, 'string(request.body)')]).toEqual([['start'], 'ab'])
  })

  test('expressions see a replaced body', async () => {
    const exchange = testExchange({ body: new BufferBody('old') })
    await bufferRequest(exchange, 10)
    replaceRequestBody(exchange, Buffer.from('new'))
    expect(evaluate(exchange, 'string(request.body)')).toBe('new')
  })

  test.each<[string, (source: ManualBody) => void, number | undefined, string]>([
    ['fails', (source) => source.fail(new Error('secret')), undefined, 'processing failed: the request body broke off'],
    ['exceeds the deadline', () => undefined, performance.now() + 20, 'request timeout'],
  ])('a request whose body %s is rejected', async (_, act, deadlineAtMs, message) => {
    const source = new ManualBody()
    const exchange = testExchange({ body: source })
    exchange.deadlineAtMs = deadlineAtMs
    const buffered = bufferRequest(exchange, 10)
    act(source)
    await expect(buffered).rejects.toThrow(message)
    expect(source.asked).toContain('cancel')
  })

  test.each<[string, Error, string]>([
    ['the body fails', new Error('secret'), 'upstream call failed: the response broke off'],
    ['the request timeout expires', new ProxyError('REQUEST_TIMEOUT'), 'request timeout'],
  ])('buffering a response rejects if %s', async (_, error, message) => {
    const source = new ManualBody()
    const exchange = testExchange()
    exchange.response = { status: 200, headers: new HeaderList(), body: source, upgraded: undefined }
    const buffered = bufferResponse(exchange, 10)
    source.fail(error)
    await expect(buffered).rejects.toThrow(message)
  })
})

test('each member of a request is in the table of the expression language', () => {
  const all = evaluate(sample({ tls: { sni: 'a', clientCertificate: certificate } as never }), 'variables()') as Record<string, object>
  const { members = new Map<string, ReadonlySet<string>>() } = environments.log
  const known = Object.entries(all).filter(([root]) => members.has(root))
  expect(known.map(([root]) => root)).toEqual(expect.arrayContaining(['request', 'response', 'source', 'destination', 'backend', 'proxy', 'env']))
  expect(known.flatMap(([root, value]) => Object.keys(value).filter((member) => !members.get(root)?.has(member)))).toEqual([])
})
