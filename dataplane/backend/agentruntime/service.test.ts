import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { BackendFull, FrontendHTTP } from '#gen/config/types.ts'
import { createConfigStore } from '../../config/store.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { startHttp1Server, type TestServer } from '../../net/server/http1/testing.ts'
import { createPool } from '../../net/upstream/pools.ts'
import { runtimeEndpoint } from './arn.ts'
import { createAgentRuntime } from './service.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

const ARN = 'arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/my_agent-Ab12'
const HOST = 'bedrock-agentcore.us-west-2.amazonaws.com'
const PATH = '/runtimes/arn%3Aaws%3Abedrock%2Dagentcore%3Aus%2Dwest%2D2%3A123456789012%3Aruntime%2Fmy%5Fagent%2DAb12/invocations'

describe('the endpoint of a runtime', () => {
  test.each<[string, string, string | undefined, unknown]>([
    ['its ARN (row 48)', ARN, undefined, { host: HOST, region: 'us-west-2', target: PATH }],
    ['its ARN and a qualifier', ARN, 'prod/1', { host: HOST, region: 'us-west-2', target: `${PATH}?qualifier=prod%2F1` }],
    [
      'an ARN of the Chinese partition',
      ARN.replace('arn:aws:', 'arn:aws-cn:').replaceAll('us-west-2', 'cn-north-1'),
      undefined,
      expect.objectContaining({ host: 'bedrock-agentcore.cn-north-1.amazonaws.com.cn' }),
    ],
  ])('is derived from %s', (_, arn, qualifier, expected) => expect(runtimeEndpoint(arn, qualifier)).toEqual(expected))

  test.each([
    ['an ARN of another service', ARN.replace('bedrock-agentcore', 's3')],
    ['an ARN without account', ARN.replace('123456789012', '')],
    ['a region that changes the host', ARN.replace('us-west-2', 'evil.example/')],
    ['an ARN of another resource', ARN.replace('runtime/', 'memory/')],
    ['an ARN with too few parts', 'arn:aws:bedrock-agentcore'],
    ['a path with dot segments', ARN.replace('my_agent', '../x')],
  ])('is not derived from %s', (_, arn) =>
    expect(runtimeEndpoint(arn, undefined)).toBe(`agentRuntimeRef "${arn}" is not arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>`),
  )
})

/** Verifies a request's signature by AWS's specification, independently of the signing library. Returns the flaw, if any. */
function verify(request: IncomingMessage, body: Buffer, secret: string): string {
  const { authorization = '' } = request.headers
  const [, credential = '', signedHeaders = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(authorization) ?? []
  const [, date = '', region = '', service = '', last = ''] = credential.split('/')
  if (`${region} ${service} ${last}` !== 'us-west-2 bedrock-agentcore aws4_request') return `scope ${credential}`
  const sha = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex')
  if (request.headers['x-amz-content-sha256'] !== sha(body)) return 'the hash of the body'
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const headers = signedHeaders.split(';').map((name) => `${name}:${String(request.headers[name]).trim().replaceAll(/ +/g, ' ')}\n`)
  const canonical = [request.method, encodeURIComponent(path).replaceAll('%2F', '/'), query, headers.join(''), signedHeaders, sha(body)].join('\n')
  const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], `${date}/${region}/${service}/aws4_request`, sha(canonical)].join('\n')
  const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const key = mac(mac(mac(mac(`AWS4${secret}`, date), region), service), 'aws4_request')
  return mac(key, toSign).toString('hex') === signature ? 'good' : 'the signature'
}

describe('an agent runtime', () => {
  let fake: Server
  let server: TestServer
  let gateway: Gateway
  let seen: { request: IncomingMessage; body: string; verdict: string }[]
  let configure: (arn: string, policies?: BackendFull, qualifier?: string, http?: FrontendHTTP) => void

  /** The response ends when the test calls `finish`. */
  let isHeld: boolean
  let finish: () => void

  beforeEach(async () => {
    isHeld = false
    seen = []
    fake = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks)
        seen.push({ request, body: body.toString(), verdict: verify(request, body, 'the-secret') })
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
        finish = () => void response.end('data: 2\n\n')
        if (!isHeld) finish()
      })
    })
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
    const { port } = fake.address() as AddressInfo
    const dialled: string[] = []
    gateway = new Gateway({
      createPool: (kind, transport) => {
        dialled.push(`${transport.host}:${transport.port} ${transport.tls?.servername ?? 'plaintext'}`)
        return createPool(kind === 'negotiate' ? 'http1' : kind, { ...transport, host: '127.0.0.1', port, tls: undefined })
      },
      factories: { cloudBackend: createAgentRuntime },
    })
    const store = createConfigStore()
    store.subscribe((snapshot) => gateway.update(snapshot))
    configure = (agentRuntimeRef, policies, qualifier, http = {}) =>
      void replaceMessages(store, [
        ...testListener,
        testRoute({ backend: 'ns/agent' }),
        {
          kind: 'backend',
          message: {
            key: 'ns/agent',
            cloudBackend: { agentRuntime: { agentRuntimeRef, ...(qualifier !== undefined && { qualifier }) } },
            ...(policies && { policies }),
          },
        },
        {
          kind: 'policy',
          message: { key: 'p', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' }, target: testGateway, frontend: { http } },
        },
        { kind: 'secret', message: { key: 'ns/aws', type: 'opaque', data: { accessKey: 'AKIDEXAMPLE', secretKey: 'the-secret', sessionToken: 'temporary' } } },
      ])
    server = await startHttp1Server((exchange) => gateway.handle(exchange))
    dialledHosts = dialled
  })
  let dialledHosts: string[]
  afterEach(async () => {
    await server.close()
    gateway.close()
    fake.closeAllConnections()
    await new Promise((resolve) => fake.close(resolve))
  })

  const signed: BackendFull = { auth: { cloudA: { secretRef: { secret: 'ns/aws' } } } }
  const post = (headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${server.port}/mcp?x=1`, { method: 'POST', body: '{"jsonrpc":"2.0"}', headers: { 'content-type': 'application/json', ...headers } })

  test('is called at its path, signed, with the client’s session header; its response streams (row 48)', async () => {
    configure(ARN, signed, 'v 1')
    isHeld = true
    const session = 'x-amzn-bedrock-agentcore-runtime-session-id'
    const response = await post({ [session]: 'abc', 'x-amz-date': 'forged', authorization: 'Bearer client' })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: 1\n\n')
    finish()
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: 2\n\n')
    const [{ request, body, verdict } = { request: undefined, body: '', verdict: '' }] = seen
    expect([verdict, request?.method, request?.url, request?.headers.host, body]).toEqual([
      'good',
      'POST',
      `${PATH}?qualifier=v%201`,
      HOST,
      '{"jsonrpc":"2.0"}',
    ])
    expect(request?.headers).toMatchObject({ [session]: 'abc', 'x-amz-security-token': 'temporary', 'content-type': 'application/json' })
    expect(request?.headers.authorization).toContain(`;${session}`)
    expect(dialledHosts).toEqual([`${HOST}:443 ${HOST}`])
  })

  test('is called with a bearer token instead of a signature if one is configured', async () => {
    configure(ARN, { auth: { key: 'token' } })
    await (await post()).text()
    expect([seen[0]?.request.headers.authorization, seen[0]?.request.headers['x-amz-date']]).toEqual(['Bearer token', undefined])
  })

  test('with an invalid ARN rejects all requests', async () => {
    configure('arn:aws:s3:us-west-2:123456789012:bucket/x', signed)
    const response = await post()
    expect([response.status, await response.text(), seen.length]).toEqual([500, expect.stringContaining('agentRuntimeRef'), 0])
  })

  test('rejects requests without resolvable credentials, and bodies that are too large to sign', async () => {
    configure(ARN, { auth: { cloudA: { secretRef: { secret: 'ns/none' } } } })
    expect((await post()).status).toBeGreaterThanOrEqual(500)
    configure(ARN, signed)
    expect((await fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST', body: 'x'.repeat(3_000_000) })).status).toBe(413)
    configure(ARN, signed, undefined, { maxBufferSize: 10 })
    expect((await post()).status).toBe(413)
    expect(seen).toEqual([])
  })
})
