import { parentPort, workerData } from 'node:worker_threads'
import type { PluginHooks } from '#api/plugin/index.ts'
import { isStreamMessage, PluginCalls } from './calls.ts'
import { listHooks } from '../hooks/run.ts'
import type { FromPlugin, PluginData, ToPlugin } from './messages.ts'
import { MetricCollector } from './plugin-metrics.ts'
import { describeError } from './module-url.ts'
import { importInSandbox } from './sandbox.ts'
import { createFetch } from './fetch-messages.ts'
import { ServiceClient } from './service-client.ts'
import { createKv } from './services.ts'
import { createLog, setUpPlugin } from './setup.ts'

const { code, file, config, secrets } = workerData as PluginData
const port = parentPort
if (port === null) throw new Error('plugin-worker.ts runs in a worker thread only')
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
const post = (message: FromPlugin): void => port.postMessage(message)

/** Time after which metrics are sent that no other message follows. */
const METRICS_MS = 100
const { setTimeout, clearTimeout } = globalThis
let timer: NodeJS.Timeout | undefined
const metrics = new MetricCollector(() => {
  timer ??= setTimeout(sendMetrics, METRICS_MS)
})
function sendMetrics(): void {
  clearTimeout(timer)
  timer = undefined
  const samples = metrics.take()
  if (samples.length > 0) post({ type: 'metrics', samples })
}
/** Sends a message after the metrics that were written before it. */
function send(message: FromPlugin): void {
  if (timer !== undefined) sendMetrics()
  post(message)
}

const log = createLog(file, (level, message) => send({ type: 'log', level, message }))

const client = new ServiceClient((id, call) => send({ type: 'use', id, call }))
const kv = createKv(client.services.keyValue)
const fetch = createFetch(client.services.fetch)

async function load(): Promise<PluginHooks> {
  Object.assign(globalThis, { console: { ...log, log: log.info, trace: log.debug } })
  return setUpPlugin(await importInSandbox(code, file), { config, log, metrics, kv, fetch, secrets: Object.freeze({ ...secrets }) })
}

let calls: PluginCalls | undefined
port.on('message', (message: ToPlugin) => {
  if (message.type === 'used') client.receive(message.id, message.result, message.error)
  else if (message.type === 'ping') send({ type: 'pong' })
  else if (message.type === 'response') calls?.respond(message)
  else if (message.type === 'cancel') calls?.cancel(message.id)
  else if (isStreamMessage(message)) calls?.receive(message)
  else calls?.run(message).catch((error: unknown) => send({ type: 'failed', id: message.id, message: describeError(error, file) }))
})

/** The gateway sends no call before `ready`. */
function serve(hooks: PluginHooks): void {
  calls = new PluginCalls(hooks, send, (error) => describeError(error, file))
  send({ type: 'ready', hooks: listHooks(hooks) })
}

load().then(serve, (error: unknown) => send({ type: 'invalid', message: describeError(error, file) }))
