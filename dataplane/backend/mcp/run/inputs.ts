import { releaseBodies } from '../../../request/exchange/held.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { forgetRequestBody } from '../../../request/expression/buffer.ts'
import { admitsInput, takesInput } from '../message/capabilities.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, parseInSteps, type JsonObject } from '../message/json.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, parseUpstreamMessage, toText } from '../message/rpc.ts'
import type { BridgedTarget, OwnMessages } from '../session/bridged.ts'
import type { OnGone, PeerMessages, WorkerMessages } from '../session/sharing.ts'
import { credentialsOf } from '../session/principal.ts'
import type { WaitingCalls, WaitingKey } from '../session/waiting.ts'
import { runCooperatively } from '../../../runtime/cooperative.ts'
import { readEvents, type EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import { messageLimit, type CallContext, type MessageLabel } from '../upstream/call.ts'
import type { LinkAnswer } from '../upstream/link.ts'
import { hasRounds } from '../upstream/rounds.ts'
import { OwnStream } from './own-stream.ts'
import { PendingCall } from './pending-call.ts'
import { badAnswer, discard, plainLink, readMessageText, RefusedError, type Run } from './run.ts'

/** Time for the head of the target's own stream, in milliseconds. The call is sent then. */
const OPEN_MS = 5000
/** Limit of messages to a target about a call. */
const POST_MS = 30_000

/** Calls of the process that wait for input of their clients, and the ways to those of other workers and replicas. */
export interface ProcessCalls {
  readonly waiting: WaitingCalls<PendingCall>
  readonly messages: WorkerMessages | undefined
  readonly peers: PeerMessages | undefined
}

/** The user of a request, whose calls may wait for input. */
export interface InputOptions extends ProcessCalls {
  /** The user; undefined if the client is anonymous. */
  readonly principal: string | undefined
  /** Address of the client. */
  readonly address: string
  readonly capabilities: JsonObject
}

/** A message about a retry, to the worker or the replica in which the call waits. */
export interface ResumeMessage extends WaitingKey {
  /** Its id. */
  readonly call: string
  readonly id: string
  readonly responses: JsonObject
}

/** Requests of targets with sessions to a client without: they become results that require input (mcp.md §13.2). */
export class Inputs {
  readonly #options: InputOptions

  constructor(options: InputOptions) {
    this.#options = options
  }

  /** Whether requests of the target during such a call can be passed to the client. */
  accepts({ method, id }: MessageLabel): boolean {
    return method !== undefined && typeof id === 'string' && hasRounds(method) && takesInput(this.#options.capabilities)
  }

  /** Sends a call to a target. `send` is as `post` of a link, or resolves with undefined if the target did not process the call. `size`: length of the call. */
  async call(
    run: Run,
    target: Target,
    bridged: BridgedTarget,
    label: MessageLabel,
    send: (context: CallContext) => Promise<LinkAnswer | undefined>,
    size: number,
  ): Promise<LinkAnswer | undefined> {
    const { waiting, principal, address, capabilities } = this.#options
    const id = String(label.id)
    const key = { place: placeOf(run, target, label), principal, credentials: credentialsOf(run.exchange) }
    const own = await openOwn(run, target, bridged)
    const context = detach(run)
    const { session } = run
    session.open++
    const pending: PendingCall = new PendingCall({
      id,
      size,
      admits: (request) => admitsInput(capabilities, request),
      wait: () => waiting.add(pending, key, principal ?? address),
      respond: (text, other = run) => respond(run, target, other, text),
      cancel() {
        context.exchange.abort(new Error('the call was cancelled'))
        // Otherwise the request of the client cancels what it sent.
        if (!pending.hasWaited) return
        const text = toText({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the client disconnected' } })
        respond(run, target, run, text).catch(() => undefined)
      },
      onEnd() {
        session.open--
        own.remove(pending)
        waiting.delete(pending)
        bridged.pending.delete(pending)
      },
    })
    bridged.pending.add(pending)
    run.exchange.onAbort((reason) => {
      if (!pending.hasWaited) context.exchange.abort(reason)
    })
    own.add(pending)
    const events = pending.attach(id)
    const sent = send(context)
    const first = await Promise.race([sent.then((answer) => ({ answer })), pending.requested]).catch((error: unknown) => {
      pending.abort()
      throw error
    })
    run.exchange.endpoint = context.exchange.endpoint
    if (first === undefined) {
      // The target requires input before its response has begun.
      sent.then((answer) => followAnswer(run, target, pending, answer)).catch((error: unknown) => pending.fail(asError(error)))
      return { kind: 'events', events }
    }
    const { answer } = first
    if (answer?.kind !== 'events') {
      pending.forget()
      return answer
    }
    pending.follow(answer.events)
    return { kind: 'events', events }
  }

  /** Passes the input in the retry of a call to the target. Rejects with the error for the client. */
  async resume(run: Run, target: Target, label: MessageLabel, { requestState, inputResponses = {} }: JsonObject): Promise<LinkAnswer> {
    const { waiting, principal, messages, peers } = this.#options
    if (typeof requestState !== 'string') throw McpFailure.rpc(INVALID_PARAMS, 'params.requestState must be a string')
    if (!isObject(inputResponses) || !Object.values(inputResponses).every(isObject))
      throw McpFailure.rpc(INVALID_PARAMS, 'params.inputResponses must be an object of results')
    const key = { place: placeOf(run, target, label), principal, credentials: credentialsOf(run.exchange) }
    const id = String(label.id)
    const found = waiting.take(requestState, key)
    if (found.kind === 'found') return { kind: 'events', events: await found.call.resume(inputResponses, id, detach(run)) }
    if (found.kind === 'invalid') throw invalidState()
    const message: ResumeMessage = { ...key, call: found.id, id, responses: inputResponses }
    const text = toText({ ...message })
    const onGone: OnGone = (callback) => run.exchange.onAbort(callback)
    const sent = messages?.send(found.id, text, onGone) ?? (found.peer && peers?.send(found.peer, text, onGone))
    const response = await sent?.catch(() => undefined)
    if (response?.status === 200 && response.body !== undefined) return { kind: 'events', events: readEvents(response.body, messageLimit(run)) }
    response?.body?.cancel()
    throw response?.status === 400 ? invalidState() : lost()
  }
}

/** Handles a message of another worker or replica: the retry of a call that waits in this thread. Undefined: it does not wait; `invalid`: it is another's. */
export async function resumeCall(
  waiting: WaitingCalls<PendingCall>,
  { call, place, principal, credentials, id, responses }: ResumeMessage,
): Promise<EventSource | 'invalid' | undefined> {
  const found = waiting.takeById(call, { place, principal, credentials })
  if (found.kind === 'invalid') return 'invalid'
  return found.kind === 'found' ? found.call.resume(responses, id).catch(() => undefined) : undefined
}

/** Reads such a message. Rejects if the text is none: a replica may be of another version. */
export async function readMessage(text: string): Promise<ResumeMessage> {
  const message = await runCooperatively(parseInSteps(text))
  if (!isObject(message)) throw new TypeError('the message is no object')
  const { call, place, principal, credentials, id, responses } = message
  const hasTexts = typeof call === 'string' && typeof place === 'string' && typeof id === 'string'
  if (!hasTexts || !isObject(responses) || !isOptionalText(principal) || !isOptionalText(credentials)) throw new TypeError('the message is incomplete')
  return { call, place, principal, credentials, id, responses }
}

const isOptionalText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string'

const invalidState = (): McpFailure => McpFailure.rpc(INVALID_PARAMS, 'params.requestState is not that of a call of this client with this name')

const lost = (): McpFailure =>
  McpFailure.rpc(
    INTERNAL_ERROR,
    'the call that waited for this input has ended, or the instance of the gateway that has it cannot be reached: send the request again without inputResponses and requestState',
  )

/** The call that a retry must repeat. Arguments are those of the first request. */
const placeOf = ({ config }: Run, { name: target }: Target, { method, name }: MessageLabel): string => JSON.stringify([config.key, target, method, name])

/** The run without its client: it goes on when the client's request ends. */
function detach(run: Run): Run {
  const exchange = run.exchange.fork(run.exchange.request)
  exchange.deadlineAtMs = run.exchange.deadlineAtMs
  return { ...run, exchange }
}

/** The context of a request for what lasts as long as the session: without the body of the request, which would be kept in memory. */
function lasting({ exchange, registry, timeoutMs, maxBufferBytes, answerHeaders }: Run): CallContext {
  const copy = exchange.fork({ ...exchange.request, body: undefined })
  copy.origin = undefined
  // Nothing releases what this copy buffers later.
  releaseBodies(copy)
  forgetRequestBody(copy)
  variables.mcp.set(copy, {})
  return { exchange: copy, registry, timeoutMs, retry: undefined, maxBufferBytes, answerHeaders }
}

/** Sends a message to the session of `run`, with the credentials of `context`. Rejects if the target does not accept it. */
async function respond(run: Pick<Run, 'session' | 'memory'>, target: Target, context: CallContext, text: string): Promise<void> {
  const { exchange } = context
  const detached = { ...context, exchange: exchange.fork(exchange.request), retry: undefined, timeoutMs: Math.min(context.timeoutMs ?? POST_MS, POST_MS) }
  const answer = await plainLink(run, target).post(detached, text, { method: undefined })
  discard(answer)
  if (answer.kind === 'refused') throw new RefusedError(target.name, answer.response)
}

/** The target's own stream. Targets may send requests for input on it. */
async function openOwn(run: Run, target: Target, bridged: BridgedTarget): Promise<OwnMessages> {
  if (bridged.own === undefined || bridged.own.isClosed) {
    const context = lasting(run)
    const link = { session: run.session, memory: run.memory }
    const open = async (): Promise<EventSource | undefined> => {
      const answer = await plainLink(link, target).listen(context, undefined)
      if (answer.kind === 'events') return answer.events
      discard(answer)
      return undefined
    }
    bridged.own = new OwnStream(open, (text) => respond(link, target, context, text))
  }
  const { own } = bridged
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, OPEN_MS)))
  await Promise.race([own.ready, late])
  clearTimeout(timer)
  return own
}

async function followAnswer(run: Run, target: Target, pending: PendingCall, answer: LinkAnswer | undefined): Promise<void> {
  if (answer?.kind === 'events') return pending.follow(answer.events)
  if (answer?.kind !== 'json') {
    if (answer !== undefined) discard(answer)
    throw badAnswer(target)
  }
  const message = parseUpstreamMessage(await readMessageText(run, answer.body))
  if (message === undefined) throw badAnswer(target)
  pending.finishWith(message)
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
