import { afterEach, expect, test } from '@jest/globals'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BackendFull } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { createPool } from '../../net/upstream/pools.ts'
import { logFieldOf } from '../../observe/telemetry/access-log/fields.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { RequestTrace } from '../../request/exchange/trace.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

interface Model {
  readonly label: string
  readonly port: number
  chats: number
  scrapes: number
  metrics: string | undefined
  status: number
}

/** A model server with metrics; undefined: 404. */
async function startModel(metrics: string | undefined): Promise<Model> {
  const server = createServer((request, response) => {
    const isScrape = request.url === '/metrics'
    if (isScrape) model.scrapes++
    else model.chats++
    request.resume().on('end', () => {
      if (!isScrape) response.writeHead(model.status).end(model.label)
      else if (model.metrics === undefined) response.writeHead(404).end()
      else response.end(model.metrics)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const model: Model = { label: `127.0.0.1:${port}`, port, chats: 0, scrapes: 0, metrics, status: 200 }
  open.push(() => (server.closeAllConnections(), server.close()))
  return model
}

function startGateway(models: readonly { readonly port: number }[], loadBalancer?: BackendFull['loadBalancer'], key = 'ns/models.inference') {
  const registry = createRegistry()
  const store = createConfigStore()
  const gateway = new Gateway({ createPool, registry })
  open.push(() => gateway.close())
  store.subscribe((snapshot) => gateway.update(snapshot))
  const messages: ConfigMessage[] = [
    ...testListener,
    testRoute({ service: key, port: 8000 }),
    {
      kind: 'service',
      message: { key, ports: [{ port: 8000, appProtocol: 'HTTP11', endpoints: models.map(({ port }) => ({ address: '127.0.0.1', port })) }] },
    },
  ]
  if (loadBalancer !== undefined)
    messages.push({
      kind: 'policy',
      message: {
        key: 'backend/ns/p:0',
        policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
        target: { kind: 'Service', namespace: 'ns', name: key.slice(3) },
        backend: { loadBalancer },
      },
    })
  replaceMessages(store, messages)
  const send = async (content: string) => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })
    const exchange = new Exchange(
      testConnection,
      testRequest({ method: 'POST', body: new BufferBody(body) }, { 'content-length': String(body.length) }),
      performance.now(),
    )
    exchange.trace = new RequestTrace(performance.now())
    await gateway.handle(exchange)
    return { exchange, text: (await readBody(exchange.response?.body, 10_000)).bytes.toString() }
  }
  return { send, registry, metrics: () => [...registry.expose('text')].join('') }
}
const long = (name: string): string => name.repeat(8000)
const idle = 'vllm:num_requests_waiting 0\nvllm:num_requests_running 0\n'

test('a pool without a picker sends requests with one prefix to one server, and others to others', async () => {
  const models = await Promise.all(Array.from({ length: 4 }, () => startModel(idle)))
  const { send, metrics } = startGateway(models)
  const servers = new Set<string>()
  for (let nth = 0; nth < 8; nth++) {
    const { exchange, text } = await send(`${long('shared ')}${nth}`)
    expect(logFieldOf(exchange, 'inferencepool.selected_endpoint')).toBe(text)
    servers.add(text)
  }
  expect(servers.size).toBe(1)
  const all = new Set<string>()
  for (const name of ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm']) all.add((await send(long(name))).text)
  expect(all.size).toBeGreaterThan(1)
  expect(metrics()).toMatch(/proxy_inference_cached_tokens_total\{backend="ns\/models.inference:8000"\} [1-9]/)
  expect(metrics()).toContain('proxy_inference_running_requests{backend="ns/models.inference:8000"} 0')
})

test('metrics of the servers decide, and are read while requests arrive', async () => {
  const busy = await startModel('vllm:num_requests_waiting 50\nvllm:num_requests_running 200\nvllm:kv_cache_usage_perc 1\n')
  const other = await startModel(idle)
  const { send, metrics } = startGateway([busy, other])
  await send('a')
  await until(() => busy.scrapes > 0 && other.scrapes > 0 && metrics().includes('metrics="read"} 2'))
  for (const name of ['b', 'c', 'd', 'e', 'f', 'g']) expect((await send(long(name))).text).toBe(other.label)
})

test('servers without metrics, with those of an unknown program, or that do not respond are reported, and requests succeed', async () => {
  const models = [await startModel(undefined), await startModel('# nothing known\nup 1\n')]
  const { send, metrics } = startGateway([...models, { port: 1 }])
  expect((await send('a')).exchange.response?.status).toBeDefined()
  await until(() => ['missing', 'unsupported', 'unreachable'].every((state) => metrics().includes(`metrics="${state}"} 1`)))
  for (const name of ['b', 'c', 'd', 'e', 'f', 'g', 'h']) expect((await send(long(name))).exchange.response?.status).toBe(200)
})

test('a server that fails is avoided, also for prefixes that it has', async () => {
  const models = [await startModel(undefined), await startModel(undefined)]
  const { send } = startGateway(models)
  const { text } = await send(long('a'))
  const first = models.find(({ label }) => label === text)
  if (first !== undefined) first.status = 503
  expect((await send(long('a'))).exchange.response?.status).toBe(503)
  for (let nth = 0; nth < 5; nth++) expect((await send(long('a'))).exchange.response?.status).toBe(200)
  expect(first?.chats).toBe(2)
})

test('the trace of a request says why its server was picked', async () => {
  const { send } = startGateway([await startModel(undefined), await startModel(undefined)])
  await send(long('a'))
  const { exchange } = await send(long('a'))
  expect(JSON.stringify(exchange.trace)).toMatch(
    /the built-in picker \(1\d{3} of about 20\d\d tokens cached, 0 to read, 0 requests, cost \d+; \d cost about the same\)/,
  )
})

test('a Service picks model servers if a policy says so, and a pool does not if a policy names another type', async () => {
  const models = [await startModel(idle), await startModel(idle)]
  const service = startGateway(models, { type: 'ModelServer', modelServer: { weights: { prefix: 200 } } }, 'ns/models')
  const first = (await service.send(long('a'))).text
  for (let nth = 0; nth < 5; nth++) expect((await service.send(long('a'))).text).toBe(first)
  const pool = startGateway(models, { type: 'RoundRobin' })
  const texts = [(await pool.send(long('a'))).text, (await pool.send(long('a'))).text]
  expect(new Set(texts).size).toBe(2)
  expect(logFieldOf((await pool.send('a')).exchange, 'inferencepool.selected_endpoint')).toBeUndefined()
})
