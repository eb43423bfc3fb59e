import type { PluginHooks } from '#api/plugin/index.ts'
import { isStreamMessage, PluginCalls } from './calls.ts'
import { createFetch } from './fetch-messages.ts'
import { listHooks } from '../hooks/run.ts'
import type { FromPlugin, PluginData, ToPlugin } from './messages.ts'
import { describeError } from './module-url.ts'
import { MetricCollector } from './plugin-metrics.ts'
import { importInSandbox } from './sandbox.ts'
import { ServiceClient } from './service-client.ts'
import { createKv } from './services.ts'
import { createLog, setUpPlugin } from './setup.ts'

/** Time after which metrics are sent that no other message follows. */
const METRICS_MS = 100

/**
 * Loads a plugin in this thread or process, which has nothing else to do, and runs its calls. `post` sends messages to the gateway. Returns the receiver of messages
 * of the gateway, which sends no call before `ready`.
 *
 * @param thread ID of this thread in the operating system
 */
export function servePlugin({ code, file, config, secrets }: PluginData, post: (message: FromPlugin) => void, thread = 0): (message: ToPlugin) => void {
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
    send({ type: 'started', thread })
    Object.assign(globalThis, { console: { ...log, log: log.info, trace: log.debug } })
    return setUpPlugin(await importInSandbox(code, file), { config, log, metrics, kv, fetch, secrets: Object.freeze({ ...secrets }) })
  }

  let calls: PluginCalls | undefined
  const serve = (hooks: PluginHooks): void => {
    calls = new PluginCalls(hooks, send, (error) => describeError(error, file))
    send({ type: 'ready', hooks: listHooks(hooks) })
  }
  load().then(serve, (error: unknown) => send({ type: 'invalid', message: describeError(error, file) }))

  return (message) => {
    if (message.type === 'used') client.receive(message.id, message.result, message.error)
    else if (message.type === 'ping') send({ type: 'pong' })
    else if (message.type === 'collect') globalThis.gc?.()
    else if (message.type === 'response') calls?.respond(message)
    else if (message.type === 'cancel') calls?.cancel(message.id)
    else if (isStreamMessage(message)) calls?.receive(message)
    else calls?.run(message).catch((error: unknown) => send({ type: 'failed', id: message.id, message: describeError(error, file) }))
  }
}
