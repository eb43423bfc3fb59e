import type { Next } from 'hono'
import type { Plugin } from '#gen/config/types.ts'
import { toResponseHead } from '../../request/exchange/answer.ts'
import { respondWithError } from '../../request/exchange/compose.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import {
  bufferedRequest,
  bufferedResponse,
  bufferRequest,
  bufferResponse,
  decodeContent,
  isUnknownCoding,
  MAX_BUFFER_BYTES,
  releaseRequest,
  type BufferedBody,
} from '../../request/expression/buffer.ts'
import type { Body } from '../../http/body.ts'
import type { PolicyState } from '../state.ts'
import { runWhen } from '../when.ts'
import { changeRequest, changeResponse, toAnswer } from './changes.ts'
import { DirectTarget, urlOf, type DirectPlugin } from './direct.ts'
import { addHooks } from './hooks.ts'
import { pluginSlot, type PluginSlot } from './host.ts'
import type { Fields, MessageBody, StreamName } from './guest/messages.ts'
import { PluginCall } from './guest/plugin-call.ts'
import { pluginMetrics } from './metrics.ts'
import { PluginError } from './plugin-error.ts'
import type { PluginRunner, Step } from './runner.ts'
import { CallStreams } from './streams.ts'

type Phase = NonNullable<Plugin['phase']>

/**
 * Plugins (traffic.md §8.13): Hono middleware of users, each in a worker thread of its own or, if that is permitted, in this thread. Returns the plugins of one phase as one policy, or undefined if
 * there are none. `failureMode` decides about errors, timeouts and plugins that cannot be loaded.
 *
 * @throws ProxyError PLUGIN (500) and PLUGIN_TIMEOUT (504), for requests that are rejected because a plugin failed.
 * @example
 * traffic:
 *   plugins:
 *     - name: tenants
 *       source: { configMapRef: { name: tenants-plugin, key: index.ts } }
 *       config: { tenants: [a, b] }
 */
export function compilePlugins(plugins: readonly Plugin[], phase: Phase, state: PolicyState, maxBufferBytes = MAX_BUFFER_BYTES): Policy | undefined {
  const policies = plugins
    .filter((plugin) => (plugin.phase ?? 'AfterAuthorization') === phase)
    .map((plugin) => runWhen(plugin.when, 'applies', maxBufferBytes, compilePlugin(plugin, state, maxBufferBytes)))
  return policies.length === 0 ? undefined : policies.reduceRight(nest)
}

/** Runs `inner` within `outer`: `outer` sees its response and its errors like those of the rest of the chain. */
function nest(inner: Policy, outer: Policy): Policy {
  return (c, next) =>
    outer(c, async () => {
      const { exchange } = c.var
      try {
        const answer = await inner(c, next)
        if (answer === undefined) return
        exchange.response?.body?.cancel()
        exchange.response = toResponseHead(answer)
        exchange.isLocalAnswer = true
      } catch (thrown) {
        respondWithError(exchange, thrown)
      }
    })
}

function compilePlugin(plugin: Plugin, state: PolicyState, maxBufferBytes: number): Policy {
  const slot = pluginSlot(plugin, state)
  const access: BodyAccess = { mode: plugin.body ?? 'None', limit: maxBufferBytes }
  const isFailOpen = plugin.failureMode === 'FailOpen'
  const { calls } = pluginMetrics(state.registry)
  const passed = calls.series(slot.name, 'passed')
  const count = (result: string): void => void calls.series(slot.name, result).value++

  const record = (error: PluginError): void => {
    count(error.kind)
    slot.report(error)
  }

  /** Records a failure. Returns if the exchange continues without the plugin. `canContinue`: the message is still complete. */
  const fail = (error: unknown, canContinue = true): void => {
    if (!(error instanceof PluginError)) {
      if (isFailOpen && isUnknownCoding(error)) return
      throw error
    }
    record(error)
    if (!canContinue || !isFailOpen) throw new ProxyError(error.kind === 'timeout' ? 'PLUGIN_TIMEOUT' : 'PLUGIN', { cause: slot.redacted(error) })
  }

  /** Notes the version in the trace, and adds the other hooks of the plugin to the request. Returns whether the plugin has a request hook. */
  const prepare = (exchange: Exchange, { hooks }: Pick<PluginRunner, 'hooks'>): boolean => {
    exchange.trace?.add('policy', `plugin ${slot.name}`, { version: slot.version })
    addHooks(exchange, slot, hooks, isFailOpen)
    return hooks.has('request')
  }

  const runInThread: Policy = async ({ var: { exchange } }, next) => {
    let call: CallOfThread | undefined
    let step: Step | undefined
    try {
      if (prepare(exchange, await slot.use())) {
        call = await startCall(slot, exchange, { ...access, onFailure: (error) => record(error) })
        const made = await call.sendRequest(exchange)
        if (made.type === 'answer') {
          const response = toAnswer(made)
          count('answered')
          releaseRequest(exchange)
          return response
        }
        step = made
      }
    } catch (error) {
      fail(error, call?.streams?.hasRead('request') !== true)
    }
    if (step?.type === 'next') changeRequest(exchange, step.change, call?.streams?.body('request'))
    if (call === undefined || step === undefined) {
      await next()
      return call?.cancel()
    }
    try {
      const early = await forward(exchange, next, call.early(), isFailOpen)
      if (early !== undefined) {
        count('answered')
        return toAnswer(early)
      }
    } catch (error) {
      return fail(error)
    }
    const { response } = exchange
    if (response === undefined) return call.cancel()
    try {
      const last = await call.sendResponse(exchange)
      if (last.type === 'done' && response.upgraded === undefined && response.status >= 200)
        changeResponse(exchange, response, last.change, call.streams?.body('response'))
      passed.value++
    } catch (error) {
      call.cancel()
      fail(error, call.streams?.hasRead('response') !== true)
    }
    return undefined
  }
  if (plugin.isolation !== 'InProcess' || access.mode !== 'None') return runInThread

  const reports = { passed, count, fail, isFailOpen }
  const start = (direct: DirectPlugin, exchange: Exchange, next: Next): Promise<Response | void> =>
    prepare(exchange, direct) ? runDirect(direct, exchange, next, reports) : next()

  return (c, next) => {
    const { direct } = slot
    if (direct !== undefined) return start(direct, c.var.exchange, next)
    // Not loaded yet, or an older version in a worker thread is in force.
    return slot.use().then(
      (runner) => (runner.direct === undefined ? runInThread(c, next) : start(runner.direct, c.var.exchange, next)),
      (error: unknown) => {
        fail(error)
        return next()
      },
    )
  }
}

/** Runs the rest of the chain. If the plugin responds or fails before the rest does, the rest is cancelled; with FailOpen it is not cancelled for a failure. */
async function forward(exchange: Exchange, next: Next, early: Promise<Step>, isFailOpen: boolean): Promise<Extract<Step, { type: 'answer' }> | undefined> {
  const { listeners } = exchange
  const rest = next()
  const cancel = (): Promise<void> => exchange.cancelRest(rest, listeners, new Error('a plugin ended before there was a response'))
  try {
    const step = await Promise.race([rest, early])
    if (step?.type !== 'answer') return undefined
    await cancel()
    return step
  } catch (error) {
    await (isFailOpen ? rest : cancel())
    throw error
  }
}

interface CallReports {
  readonly passed: { value: number }
  readonly count: (result: string) => void
  readonly fail: (error: unknown) => void
  readonly isFailOpen: boolean
}

/** Calls a plugin in this thread. */
async function runDirect(direct: DirectPlugin, exchange: Exchange, next: Next, { passed, count, fail, isFailOpen }: CallReports): Promise<Response | void> {
  const target = new DirectTarget(exchange, next)
  const call = new PluginCall(direct, target)
  direct.busy++
  try {
    const answer = await call.run()
    if (answer === undefined) return void passed.value++
    count('answered')
    await target.cancelRest()
    releaseRequest(exchange)
    return toAnswer(answer)
  } catch (error) {
    await (isFailOpen ? target.rest : target.cancelRest())
    fail(error)
    if (target.rest === undefined) await next()
  } finally {
    direct.busy--
  }
}

/** What the plugin sees of bodies. `limit`: most bytes of a buffered one. */
interface BodyAccess {
  readonly mode: NonNullable<Plugin['body']>
  readonly limit: number
}

interface CallOptions extends BodyAccess {
  /** A body that the plugin makes broke off after its step. */
  readonly onFailure: (error: PluginError) => void
}

interface CallOfThread {
  /** Bodies that pass in chunks. */
  readonly streams: CallStreams | undefined
  sendRequest(exchange: Exchange): Promise<Step>
  sendResponse(exchange: Exchange): Promise<Step>
  /** Resolves or rejects if the plugin ends the call before there is a response. */
  early(): Promise<Step>
  /** Ends a call that is not continued. */
  cancel(): void
}

/** Buffers the request if the plugin reads it as a whole, and waits until the plugin is loaded. */
async function startCall(slot: PluginSlot, exchange: Exchange, options: CallOptions): Promise<CallOfThread> {
  const { mode, limit } = options
  if (mode !== 'None') decodeContent(exchange, 'request')
  if (mode === 'Buffered') await bufferRequest(exchange, limit)
  const thread = await slot.use()
  const id = thread.nextId()
  const streams = mode === 'Streamed' ? openStreams(thread, id, options) : undefined
  exchange.onAbort(() => thread.cancel(id))
  const bodyOf = (stream: StreamName, body: Body | undefined): MessageBody => {
    if (body === undefined || streams === undefined)
      return bodyFor(body, options, () => (stream === 'request' ? bufferedRequest(exchange) : bufferedResponse(exchange)))
    streams.offer(stream, body)
    return 'stream'
  }
  return {
    streams,
    cancel: () => thread.cancel(id),
    early: () => thread.early(id),
    async sendRequest({ request }) {
      const { method, authority, headers } = request
      const fields = ['host', authority, ...headers.raw]
      return thread.run({ type: 'request', id, method, url: urlOf(request), headers: fields, body: bodyOf('request', request.body) })
    },
    async sendResponse() {
      if (exchange.response?.upgraded === undefined) {
        if (mode !== 'None') decodeContent(exchange, 'response')
        if (mode === 'Buffered') await bufferResponse(exchange, limit)
      }
      const { status = 500, headers, body } = exchange.response ?? {}
      const fields: Fields = headers?.raw.slice() ?? []
      // Responses below 200 exist for upgrades only; Response of the Fetch standard cannot represent them.
      return thread.run({ type: 'response', id, status: Math.max(status, 200), headers: fields, body: bodyOf('response', body) })
    },
  }
}

function openStreams(thread: PluginRunner, id: number, { onFailure }: CallOptions): CallStreams {
  const { timeoutMs } = thread
  const streams = new CallStreams({
    id,
    timeoutMs,
    onFailure,
    post: (message) => thread.post(message),
    onTimeout: () => thread.timeOut(id),
    onClosed: () => thread.streamsClosed(id),
  })
  thread.attach(id, streams)
  return streams
}

/** A body in the form of messages. Throws a PluginError if it is longer than the plugin can read. */
function bodyFor(body: Body | undefined, { mode, limit }: BodyAccess, buffered: () => BufferedBody | undefined): MessageBody {
  if (body === undefined) return undefined
  if (mode !== 'Buffered') return true
  const { prefix, isComplete } = buffered() ?? {}
  if (prefix === undefined || isComplete !== true) throw new PluginError('failed', `a body is longer than ${limit} bytes`)
  return prefix
}
