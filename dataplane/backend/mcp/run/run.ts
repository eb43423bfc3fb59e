import { ProxyError } from '../../../request/exchange/error.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { BodyTooLargeError, type Body } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { failureClass } from '../../../net/upstream/failure-class.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import type { Item, ItemJudge } from '../target/authorize.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { MODERN_VERSION, type SessionClient } from '../message/modern.ts'
import type { McpHooks } from '../hooks/index.ts'
import { Flow } from '../message/reply.ts'
import { INTERNAL_ERROR, isAnswerTo, parseUpstreamMessage, type RpcId, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import { clientOf } from '../session/principal.ts'
import type { Revisions } from '../session/revisions.ts'
import type { Session } from '../session/sessions.ts'
import type { EventSource } from '../sse/source.ts'
import type { McpConfig, Target } from '../target/target.ts'
import { EndpointGoneError, messageLimit, type CallContext, type MessageLabel } from '../upstream/call.ts'
import type { Link, LinkAnswer, LinkState } from '../upstream/link.ts'
import type { ServerMemory } from '../upstream/memory.ts'
import { grpcOf } from '../grpc/api.ts'
import { openApiOf } from '../openapi/api.ts'
import { servedLink } from '../served/link.ts'
import { stdioLink } from '../stdio/link.ts'
import { sseLink } from '../upstream/sse.ts'
import { streamableLink } from '../upstream/streamable.ts'
import { upgradedLink } from '../upstream/upgraded.ts'

/** One message of a client while it is processed. */
export interface Run extends CallContext {
  readonly config: McpConfig
  readonly session: Session
  readonly judge: ItemJudge
  /** Hooks of plugins; undefined if the request has none. */
  readonly hooks?: McpHooks | undefined
  /** Stateless mode: starts the target's session for this message. */
  readonly prepare: ((run: Run, target: Target) => Promise<void>) | undefined
  /** Clients without sessions: the link to a target, which starts the target's session if it needs one. */
  readonly linkOf?: ((run: Run, target: Target) => Link) | undefined
  readonly revisions: Revisions
  /** What is known about servers of revision 2026-07-28. */
  readonly memory: ServerMemory
  /** Start of the ids of the gateway's own requests to targets. Unique if requests share sessions. */
  readonly idPrefix: string
  /** Called with the response to a request, for logs. */
  readonly onAnswer: ((message: RpcMessage) => void) | undefined
  /** Called with the error of a request whose response head was sent already, for logs. */
  readonly onFailure: ((code: number, detail: string) => void) | undefined
  /** Called instead of `onAnswer` if logs do not need the response: whether it is a success. */
  readonly onOutcome: ((isSuccess: boolean) => void) | undefined
  /** Called with the arguments of a tool as the server receives them; undefined: nobody stores them. */
  readonly onArguments?: ((args: unknown) => void) | undefined
  /** Called if a guard rejects a call of a tool, for logs. */
  readonly onRejection?: (() => void) | undefined
  /** Called with each page of a target's list that is merged with others. */
  readonly onPage?: ((result: JsonObject, isFirst: boolean) => void) | undefined
  /** The reply is converted: its reader parses a message that `isUnread`, and reports it. */
  readonly isConverted?: boolean | undefined
  /** The client without a session that the request is converted for. */
  readonly client?: SessionClient | undefined
  /** Called with each item of a target's list, if the list is read. */
  readonly onListed: ((item: Item) => void) | undefined
  /** Whether `onAnswer` receives results of tools too, not only errors. */
  readonly readsResults: boolean
  /** Whether the outcome of the request is needed, because its item is new to the metrics. */
  readonly isNewItem: () => boolean
}

/** A target responded with an HTTP error status. The client receives that response. The message is for logs. */
export class RefusedError extends Error {
  readonly response: ResponseHead
  constructor(target: string, response: ResponseHead) {
    super(`${target} answered ${response.status}`)
    this.response = response
  }
}

/** Whether the results of the target's tools are checked or changed: they pass as a whole, and a task's result, which does not name its tool, does not. */
export const checksResults = ({ hooks }: Pick<Run, 'hooks'>, { guards }: Target): boolean => guards?.checkOutput !== undefined || hooks?.changesResults === true

const UNKNOWN_CLIENT: SessionClient = { capabilities: {}, info: undefined }

/** The link of the session to a target. */
export function linkTo(run: Run, target: Target): Link {
  return run.linkOf?.(run, target) ?? plainLink(run, target)
}

/** The link to a target whose session was started already. */
export function plainLink({ session, memory }: Pick<Run, 'session' | 'memory'>, target: Target): Link {
  if (target.openapi !== undefined) return servedLink(openApiOf(target, target.openapi), stateOf(session, target))
  if (target.grpc !== undefined) return servedLink(grpcOf(target, target.grpc), stateOf(session, target))
  if (target.protocol === 'SSE') return sseLink(target, session.connections)
  if (target.program !== undefined) return stdioLink(target, target.program, session.connections, clientOf)
  const state = stateOf(session, target)
  return state.version === MODERN_VERSION ? upgradedLink(target, state, session.client ?? UNKNOWN_CLIENT, memory) : streamableLink(target, state)
}

/** The state of the session with a target. Throws a McpFailure 404 if the session does not include the target. */
export function stateOf(session: Session, { name }: Target): LinkState {
  const state = session.links.get(name)
  if (state === undefined) throw McpFailure.text(404, 'session not found')
  return state
}

/** The label of a request for `post`. `name` is that of the item, as the target knows it. */
export function labelOf({ method, id, params }: RpcRequest, name?: string): MessageLabel {
  const meta = params?.['_meta']
  const sent = params?.['name']
  return { method, id, name, shownName: typeof sent === 'string' ? sent : undefined, progressToken: isObject(meta) ? meta['progressToken'] : undefined }
}

/** Sends a message to a target. Rejects with a McpFailure, or with a ProxyError at the request timeout. */
export async function post(run: Run, target: Target, text: string, label: MessageLabel): Promise<LinkAnswer> {
  try {
    if (stateOf(run.session, target).isMissing) throw new UpstreamError('connect', `${target.name} was not available when the session started`)
    await run.prepare?.(run, target)
    return await linkTo(run, target).post(run, text, label)
  } catch (error) {
    throw toFailure(run, target, error)
  }
}

/** The error that a failed call is reported to the client as (mcp.md §3.2). */
export function toFailure({ session, config }: Pick<Run, 'session' | 'config'>, target: Target, error: unknown): Error {
  if (error instanceof McpFailure || error instanceof ProxyError || error instanceof RefusedError) return error
  if (error instanceof EndpointGoneError) return McpFailure.text(404, 'session not found')
  if (!(error instanceof UpstreamError)) return error instanceof Error ? error : new Error(String(error))
  // The instance that held the session is down: the client must start a new session on another one (mcp.md §5.1).
  const isOver = config.isStateful && session.id !== undefined && (isInstanceDown(session.links.get(target.name), error) || isConnectionOver(session, target))
  if (isOver) return McpFailure.text(404, 'session not found')
  const detail = `failed to send message: ${error.message}`
  return McpFailure.rpc(INTERNAL_ERROR, `failed to send message: ${failureClass(error)}`, { status: 500, cause: error, detail })
}

function isInstanceDown(state: LinkState | undefined, { failure }: UpstreamError): boolean {
  return state?.endpoint !== undefined && (failure === 'connect' || failure === 'connect-timeout')
}

const isConnectionOver = ({ connections, links }: Session, { name, protocol }: Target): boolean =>
  protocol !== 'StreamableHTTP' && links.get(name)?.isMissing !== true && connections.get(name)?.isClosed !== false

/**
 * Reads messages until the response to request `id`. Earlier ones are passed to `onOther`. Rejects like `post`, and with a RefusedError
 * for an HTTP error status.
 */
export function readAnswer(run: Run, target: Target, answer: LinkAnswer, id: RpcId, flow: Flow, onOther: (message: RpcMessage) => void): Promise<RpcMessage> {
  switch (answer.kind) {
    case 'refused':
      return Promise.reject(new RefusedError(target.name, answer.response))
    case 'accepted':
      return Promise.reject(upstreamFailure(target, 'accepted a request without a response', 500))
    case 'json': {
      const reading: EventSource = { start() {}, pause() {}, resume() {}, cancel: () => answer.body.cancel() }
      flow.add(reading)
      return readMessageText(run, answer.body)
        .finally(() => flow.remove(reading))
        .then(
          (text) => {
            const message = parseUpstreamMessage(text)
            if (message === undefined || !isAnswerTo(message, id)) throw badAnswer(target)
            return message
          },
          (error: Error) => Promise.reject(brokenAnswer(target, error)),
        )
    }
    case 'events':
      return readEventsUntil(target, answer.events, id, flow, onOther)
  }
}

/**
 * As `readAnswer`, for a response that the gateway needs whole: it has the timeout of the target once more after its head, because servers send the head of a
 * stream before they have the response.
 */
export function readInTime(run: Run, target: Target, answer: LinkAnswer, id: RpcId, flow: Flow, onOther: (message: RpcMessage) => void): Promise<RpcMessage> {
  const limitMs = Math.min(run.timeoutMs ?? Infinity, target.destination.settings.requestMs ?? Infinity)
  if (limitMs === Infinity) return readAnswer(run, target, answer, id, flow, onOther)
  const own = new Flow()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      own.onClose()
      reject(upstreamFailure(target, `took longer than ${limitMs} ms`))
    }, limitMs)
  })
  const part: EventSource = {
    start() {},
    pause: () => own.onPressure(true),
    resume: () => own.onPressure(false),
    cancel() {
      clearTimeout(timer)
      own.onClose()
    },
  }
  flow.add(part)
  return Promise.race([readAnswer(run, target, answer, id, own, onOther), late]).finally(() => {
    clearTimeout(timer)
    flow.remove(part)
  })
}

function readEventsUntil(
  target: Target,
  events: Extract<LinkAnswer, { kind: 'events' }>['events'],
  id: RpcId,
  flow: Flow,
  onOther: (message: RpcMessage) => void,
) {
  flow.add(events)
  return new Promise<RpcMessage>((resolve, reject) => {
    let terminal: RpcMessage | undefined
    events.start({
      onEvent({ data }) {
        if (data === '' || terminal !== undefined) return
        const message = parseUpstreamMessage(data)
        if (message === undefined) return
        if (!isAnswerTo(message, id)) return onOther(message)
        terminal = message
        flow.remove(events)
        events.cancel()
        resolve(message)
      },
      onEnd: () => reject(endedAnswer(target, 500)),
      onError: (error) => reject(brokenAnswer(target, error)),
    })
  })
}

/** The text of a message in a body. Rejects as reading it does. */
export const readMessageText = async (run: Run, body: Body): Promise<string> => (await readHeldBody(run.exchange, body, messageLimit(run))).bytes.toString()

/** The error for a result of the wrong type. */
export function badAnswer({ name }: Target, what = 'the request'): McpFailure {
  const message = `upstream returned a result incompatible with ${what}`
  return McpFailure.rpc(INTERNAL_ERROR, message, { detail: `${message} (${name})` })
}

/** The error for a response that ended early. */
export function brokenAnswer(target: Target, error: Error): McpFailure | ProxyError {
  if (error instanceof McpFailure || error instanceof ProxyError) return error
  if (error instanceof BodyTooLargeError)
    return upstreamFailure(target, `sent a response larger than ${error.limit} bytes, the limit for messages that the gateway reads`)
  return upstreamFailure(target, 'broke off its response', 200, error)
}

/** The error for an event stream that ended without the response. */
export const endedAnswer = (target: Target, status = 200): McpFailure => upstreamFailure(target, 'ended its response without a result', status)

function upstreamFailure({ name }: Target, what: string, status = 200, cause?: Error): McpFailure {
  const detail = `${name} ${what}${cause === undefined ? '' : `: ${cause.message}`}`
  return McpFailure.rpc(INTERNAL_ERROR, `an upstream ${what}`, { status, cause, detail })
}

/** Cancels an answer that is not read. */
export function discard(answer: LinkAnswer): void {
  if (answer.kind === 'json') answer.body.cancel()
  if (answer.kind === 'events') answer.events.cancel()
  if (answer.kind === 'refused') answer.response.body?.cancel()
}

/** Timeout of requests that end sessions. */
const END_SESSION_MS = 10_000

/** Ends the sessions with all targets. Responses and errors are ignored. Continues after the client's request ended. */
export async function endLinks(run: Run): Promise<void> {
  const detached: Run = {
    ...run,
    exchange: run.exchange.fork(run.exchange.request),
    timeoutMs: Math.min(run.timeoutMs ?? END_SESSION_MS, END_SESSION_MS),
    retry: undefined,
  }
  await Promise.allSettled(
    run.config.targets.filter(({ name }) => run.session.links.get(name)?.isMissing === false).map((target) => linkTo(detached, target).end(detached)),
  )
}
