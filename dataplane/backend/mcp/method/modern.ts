import { BufferBody } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { McpFailure, UpstreamRpcError } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import {
  Freshness,
  progressTokenOf,
  statusOf,
  toModernError,
  toModernMessage,
  toModernResult,
  withUniqueId,
  type ModernClient,
  type ModernConversion,
} from '../message/modern.ts'
import { streamOf, type EventOutput, type Reply } from '../message/reply.ts'
import { SUPPORTED_VERSIONS } from '../message/request.ts'
import { INTERNAL_ERROR, METHOD_NOT_FOUND, parseUpstreamMessage, resultText, toText, type RpcRequest } from '../message/rpc.ts'
import type { Bridge } from '../run/bridge.ts'
import { readMessageText, RefusedError, toFailure, type Run } from '../run/run.ts'
import { reportMessage } from '../run/single.ts'
import type { StreamFeeder } from '../sse/body.ts'
import type { Target } from '../target/target.ts'
import { discover } from './discover.ts'
import { dispatch } from './dispatch.ts'
import { isMerged, listShape } from './lists.ts'
import { subscribe } from './subscribe.ts'
import { callTask, isTaskMethod } from './tasks.ts'

/** Methods of older revisions that this one does not have. */
const REMOVED: ReadonlySet<string> = new Set(['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])
/** Other methods for tasks are those of older revisions. */
const isUnknownTaskMethod = (method: string): boolean => method.startsWith('tasks/') && !isTaskMethod(method)

/** What a request of a client without sessions is handled with. */
export interface ModernContext {
  readonly client: ModernClient
  readonly bridge: Bridge
  /** Identity of the gateway, for results of several targets. */
  readonly gateway: JsonObject
}

/** Handles one request of a client of the revision without sessions (mcp.md §13). `text` is the request as JSON. Rejects with the error for the client. */
export async function dispatchModern(run: Run, request: RpcRequest, text: string, context: ModernContext): Promise<Reply> {
  try {
    if (REMOVED.has(request.method)) throw notFound(request.method)
    const sole = soleUnchanged(run)
    if (sole !== undefined && (run.revisions.isModern(sole) ?? (await speaksRevision(run, sole, context)))) {
      context.bridge.passUnchanged()
      const described = request.method === 'server/discover' ? await describe(run, sole, request, context) : undefined
      if (described !== undefined) return described
      return await dispatch(run, request, text, { admit: undefined, version: '' })
    }
    if (isUnknownTaskMethod(request.method)) throw notFound(request.method)
    if (request.method === 'subscriptions/listen') return await subscribe({ ...run, client: context.client }, request, context.bridge)
    return await dispatchConverted(run, request, sole, context)
  } catch (error) {
    throw toModernFailure(error)
  }
}

async function speaksRevision(run: Run, target: Target, { bridge }: ModernContext): Promise<boolean> {
  try {
    return await bridge.isModern(run, target)
  } catch (error) {
    throw toFailure(run, target, error)
  }
}

/** The result of the target, with the revisions of the gateway; undefined if the target speaks another revision now. */
async function describe(run: Run, target: Target, { id }: RpcRequest, { bridge }: ModernContext): Promise<Reply | undefined> {
  const result = await bridge.describe(run, target)
  if (!Array.isArray(result['supportedVersions'])) return undefined
  return { kind: 'message', body: new BufferBody(resultText(id, { ...result, supportedVersions: SUPPORTED_VERSIONS })) }
}

/** Handles a request whose message or response is not passed unchanged. `unchanged`: the only target, if it receives the request with no other changes. */
async function dispatchConverted(
  plainRun: Run,
  request: RpcRequest,
  unchanged: Target | undefined,
  { bridge, client, gateway }: ModernContext,
): Promise<Reply> {
  const { exchange, config, idPrefix: id } = plainRun
  const [sole] = config.targets
  const freshness = new Freshness()
  const run: Run = { ...plainRun, client, isConverted: true, onPage: (result, isFirst) => freshness.add(result, isFirst) }
  const shape = listShape(request.method)
  const conversion: ModernConversion = {
    method: request.method,
    id,
    clientId: request.id,
    progressToken: progressTokenOf(request),
    logLevel: client.logLevel,
    server: () => (config.isMultiplexing || sole === undefined ? gateway : bridge.serverOf(sole)),
    freshness: () => (shape !== undefined && isMerged(run, shape) ? freshness.members(config.targets.length) : undefined),
    isPrivate: config.hasRules,
    capabilities: client.capabilities,
  }
  if (request.method === 'server/discover') {
    const result = { supportedVersions: SUPPORTED_VERSIONS, ...(await discover(run, bridge)) }
    return streamOf([resultText(request.id, toModernResult(request.method, result, conversion.server()))])
  }
  let isAnswered = false
  const onGone = (): void => {
    if (!isAnswered) bridge.cancel(run)
    isAnswered = true
  }
  const onAnswered = (): void => void (isAnswered = true)
  exchange.onAbort(onGone)
  try {
    const unique = withUniqueId(request, id)
    const text = bridge.setRequest(run, unique, unchanged)
    const reply = isTaskMethod(request.method) ? callTask(run, unique, text, bridge) : dispatch(run, unique, text, { admit: undefined, version: '' })
    return await convertReply(run, unique, await reply, conversion, { onAnswered, onGone })
  } catch (error) {
    onAnswered()
    throw error
  }
}

/** The only target, if its items need neither checks nor other names. */
function soleUnchanged({ config }: Run): Target | undefined {
  const { naming, isMultiplexing, hasRules, targets, portable, toolIndexes } = config
  if (portable !== undefined || toolIndexes !== undefined) return undefined
  return isMultiplexing || hasRules || naming.prefixesNames || naming.prefixesUris ? undefined : targets[0]
}

const notFound = (method: string): McpFailure => McpFailure.rpc(METHOD_NOT_FOUND, `Method not found: ${method}`, { status: 404 })

/** Statuses of targets that tell the client what to do. Others would make it conclude that the gateway speaks another revision. */
const isPassed = ({ status }: ResponseHead): boolean => status === 401 || status === 403 || status === 429

/** The error in the form of the revision: an unknown method is 404. */
function toModernFailure(error: unknown): unknown {
  if (error instanceof UpstreamRpcError) return new UpstreamRpcError({ ...error.rpc, error: toModernError(error.rpc['error']) })
  if (error instanceof RefusedError && !isPassed(error.response)) return refusal(error.response, error.message)
  if (!(error instanceof McpFailure)) return error
  if (error.rpc?.code === METHOD_NOT_FOUND) return McpFailure.rpc(METHOD_NOT_FOUND, error.message, { status: 404, detail: error.detail })
  // The client has no session that could be over: the gateway's own one could not be started.
  if (error.rpc === undefined) return McpFailure.rpc(INTERNAL_ERROR, 'an upstream lost its session', { status: 502, detail: error.detail })
  // The target could not be reached.
  if (error.cause instanceof UpstreamError) return McpFailure.rpc(INTERNAL_ERROR, error.message, { status: 503, cause: error.cause, detail: error.detail })
  return error
}

function refusal({ status, body }: ResponseHead, detail = `an upstream responded with status ${status}`): McpFailure {
  body?.cancel()
  return McpFailure.rpc(INTERNAL_ERROR, `an upstream responded with status ${status}`, { status: 502, detail })
}

interface Listeners {
  /** The response was passed to the client. */
  readonly onAnswered: () => void
  /** The client disconnected. */
  readonly onGone: () => void
}

/** The reply of a target in the form of the revision. */
async function convertReply(run: Run, request: RpcRequest, reply: Reply, conversion: ModernConversion, { onAnswered, onGone }: Listeners): Promise<Reply> {
  switch (reply.kind) {
    case 'accepted':
      return reply
    case 'relay':
      if (isPassed(reply.response)) return reply
      throw refusal(reply.response)
    case 'message': {
      const message = parseUpstreamMessage(await readMessageText(run, reply.body))
      if (message !== undefined && reply.isUnread === true) reportMessage(run, message, request)
      const converted = message && toModernMessage(message, conversion)
      if (converted === undefined) throw McpFailure.rpc(INTERNAL_ERROR, 'an upstream responded with no message', { status: 500 })
      onAnswered()
      const status = statusOf(converted.error)
      if (isObject(converted.error) && status !== 200)
        throw McpFailure.rpc(Number(converted.error['code']), String(converted.error['message']), { status, data: converted.error['data'] })
      return { kind: 'message', body: new BufferBody(toText(converted)) }
    }
    case 'stream': {
      const feed = (out: EventOutput): StreamFeeder => {
        const feeder = reply.feed(new ModernOutput(out, conversion, onAnswered))
        return {
          onPressure: (isBehind) => feeder.onPressure?.(isBehind),
          onClose() {
            onGone()
            feeder.onClose?.()
          },
        }
      }
      return { kind: 'stream', feed }
    }
  }
}

/** Output of a stream whose messages are converted. Streams of the revision cannot be resumed, so events have no ids. */
class ModernOutput implements EventOutput {
  readonly isResumable = false
  readonly #out: EventOutput
  readonly #conversion: ModernConversion
  readonly #onAnswered: () => void

  constructor(out: EventOutput, conversion: ModernConversion, onAnswered: () => void) {
    this.#out = out
    this.#conversion = conversion
    this.#onAnswered = onAnswered
  }

  write({ data }: { readonly data: string }): void {
    this.send(data)
  }

  send(text: string): void {
    const message = text === '' ? undefined : parseUpstreamMessage(text)
    const converted = message && toModernMessage(message, this.#conversion)
    if (converted === undefined) return
    if (converted.method === undefined) this.#onAnswered()
    this.#out.send(toText(converted))
  }

  end(): void {
    this.#out.end()
  }

  fail(error: Error): void {
    this.#out.fail(error)
  }
}
