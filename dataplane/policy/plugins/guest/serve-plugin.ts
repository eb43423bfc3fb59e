import type { PluginHooks } from '#api/plugin/index.ts'
import { isStreamMessage, PluginCalls } from './calls.ts'
import { createFetch } from './fetch-messages.ts'
import { watchIntrinsics } from './intrinsics.ts'
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
/** Time between two checks of the intrinsics while calls succeed, and after calls that failed or took too long. */
const CHECK_MS = 1000
const FAILED_CHECK_MS = 100
const now = performance.now.bind(performance)

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
  let findBroken: (() => string | undefined) | undefined
  let checkedAtMs = 0
  /** A thread whose intrinsics the plugin changed after `setup` fails in other places and for good: the gateway replaces it. */
  function checkIntrinsics(intervalMs: number): void {
    if (findBroken === undefined || now() - checkedAtMs < intervalMs) return
    checkedAtMs = now()
    const problem = findBroken()
    if (problem !== undefined) post({ type: 'invalid', message: `${file}: ${problem} after setup; change intrinsics in the module or in setup only` })
  }
  async function run(message: Parameters<PluginCalls['run']>[0]): Promise<void> {
    try {
      await calls?.run(message)
      checkIntrinsics(CHECK_MS)
    } catch (error) {
      send({ type: 'failed', id: message.id, message: describeError(error, file) })
      checkIntrinsics(FAILED_CHECK_MS)
    }
  }
  const serve = (hooks: PluginHooks): void => {
    // Calls of the middleware need them; they are loaded when they are first read.
    if (hooks.request !== undefined) void [Request, Response, Headers]
    findBroken = watchIntrinsics()
    calls = new PluginCalls(hooks, send, (error) => describeError(error, file))
    send({ type: 'ready', hooks: listHooks(hooks) })
  }
  load().then(serve, (error: unknown) => send({ type: 'invalid', message: describeError(error, file) }))

  return (message) => {
    if (message.type === 'used') client.receive(message.id, message.result, message.error)
    else if (message.type === 'ping') {
      send({ type: 'pong' })
      checkIntrinsics(FAILED_CHECK_MS)
    } else if (message.type === 'collect') globalThis.gc?.()
    else if (message.type === 'response') calls?.respond(message)
    else if (message.type === 'cancel') {
      calls?.cancel(message.id)
      checkIntrinsics(FAILED_CHECK_MS)
    } else if (isStreamMessage(message)) calls?.receive(message)
    else void run(message)
  }
}
