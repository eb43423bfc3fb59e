import { parentPort, workerData } from 'node:worker_threads'
import { Ajv, type ErrorObject } from 'ajv'
import type { MiddlewareHandler } from 'hono'
import type { Plugin, PluginLog } from '#api/plugin/index.ts'
import { PluginCalls } from './calls.ts'
import type { FromPlugin, PluginData, ToPlugin } from './messages.ts'
import { MetricCollector } from './plugin-metrics.ts'
import { describeError, importPlugin } from './sandbox.ts'

const { code, file, config } = workerData as PluginData
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

type Level = Extract<FromPlugin, { type: 'log' }>['level']
const MAX_LOG_LENGTH = 2000
const toText = (part: unknown): string => {
  if (typeof part === 'string') return part
  if (part instanceof Error) return describeError(part, file)
  return JSON.stringify(part) ?? String(part)
}
const logAt =
  (level: Level) =>
  (...parts: unknown[]): void =>
    send({ type: 'log', level, message: parts.map(toText).join(' ').slice(0, MAX_LOG_LENGTH) })
const log: PluginLog = { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') }

const ajvErrors = (errors: ErrorObject[] | null | undefined): string =>
  (errors ?? []).map(({ instancePath, message }) => `config${instancePath.replaceAll('/', '.')} ${message ?? ''}`).join('; ')

/** Loads the plugin and checks its shape and its config. */
async function load(): Promise<MiddlewareHandler> {
  Object.assign(globalThis, { console: { ...log, log: log.info, trace: log.debug } })
  const plugin = await importPlugin(code, file)
  if (typeof plugin !== 'object' || plugin === null || !('setup' in plugin) || typeof plugin.setup !== 'function')
    throw new Error('the default export is not a plugin: export default definePlugin({ setup })')
  const { configSchema, setup } = plugin as Plugin
  if (configSchema !== undefined) {
    const validate = new Ajv({ strict: false, useDefaults: true }).compile(configSchema)
    if (!validate(config)) throw new Error(ajvErrors(validate.errors))
  }
  const hooks = await setup({ config, log, metrics })
  if (typeof hooks?.request !== 'function') throw new Error('setup does not return { request }')
  return hooks.request
}

/** The gateway sends no call before `ready`. */
function serve(request: MiddlewareHandler): void {
  const calls = new PluginCalls(request, send)
  port?.on('message', (message: ToPlugin) => {
    if (message.type === 'request')
      calls.start(message).catch((error: unknown) => send({ type: 'failed', id: message.id, message: describeError(error, file) }))
    else if (message.type === 'response') calls.respond(message)
    else if (message.type === 'cancel') calls.cancel(message.id)
    else send({ type: 'pong' })
  })
  send({ type: 'ready' })
}

load().then(serve, (error: unknown) => send({ type: 'invalid', message: describeError(error, file) }))
