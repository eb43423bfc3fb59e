import { readHeldBody } from '../../exchange/held.ts'
import { withinDeadline } from '../../expression/buffer.ts'
import { BufferBody } from '../../http/body.ts'
import type { ResponseHead } from '../../http/message.ts'
import { UpstreamError } from '../../upstream/types.ts'
import { offersOf, withoutReverse } from '../message/capabilities.ts'
import { UpstreamRpcError } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { initializeFor, levelName, type ModernClient } from '../message/modern.ts'
import { Flow } from '../message/reply.ts'
import { resultText, toText, type RpcId } from '../message/rpc.ts'
import type { BridgedSession, BridgedTarget } from '../session/bridged.ts'
import type { Target } from '../target/target.ts'
import { EndpointGoneError, type CallContext, type MessageLabel } from '../upstream/call.ts'
import type { Link, LinkAnswer } from '../upstream/link.ts'
import { badAnswer, discard, plainLink, readAnswer, RefusedError, stateOf, type Run } from './run.ts'

/** Limit of the start of a session, in milliseconds. It is not bound to the request that needs it first, because others wait for it too. */
const START_MS = 30_000
const START_ID = 0
const MAX_REFUSAL_BYTES = 64 * 1024

/** A request that was sent to a target and not cancelled. */
interface Sent {
  readonly target: Target
  readonly id: RpcId
}

/** The connection of one request of a client without sessions to targets that need one (mcp.md §13.2). */
export class Bridge {
  readonly #session: BridgedSession
  readonly #client: ModernClient
  readonly #gateway: JsonObject
  readonly #sent: Sent[] = []

  /** `gateway` is the identity for clients that do not name themselves. */
  constructor(session: BridgedSession, client: ModernClient, gateway: JsonObject) {
    this.#session = session
    this.#client = client
    this.#gateway = gateway
  }

  /** The link to a target, for `Run.linkOf`. */
  readonly linkOf = (run: Run, target: Target): Link => {
    const link = plainLink(run, target)
    return {
      post: (context, text, label) => this.#post(run, target, context, text, label),
      listen: (context, lastEventId) => link.listen(context, lastEventId),
      end: (context) => link.end(context),
    }
  }

  /** The result of the target's `initialize`. Rejects like `post` of `run.ts`. */
  async describe(run: Run, target: Target): Promise<JsonObject> {
    const { result } = await this.#start(run, target)
    return result
  }

  /** The result of the target's `initialize`, if its session was started. */
  known(target: Target): JsonObject | undefined {
    return this.#known.get(target)
  }

  readonly #known = new Map<Target, JsonObject>()

  /** Cancels what was sent: the client disconnected before the response. */
  cancel(run: Run): void {
    for (const { target, id } of this.#sent.splice(0)) {
      const detached: Run = { ...run, exchange: run.exchange.fork(run.exchange.request), retry: undefined, timeoutMs: START_MS }
      const method = 'notifications/cancelled'
      const text = toText({ jsonrpc: '2.0', method, params: { requestId: id, reason: 'the client disconnected' } })
      plainLink(run, target)
        .post(detached, text, { method })
        .then(discard, () => undefined)
    }
  }

  async #post(run: Run, target: Target, context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer> {
    const { started, isNew } = await this.#start(run, target)
    const answer = await this.#send(run, target, context, text, label)
    if (answer !== undefined) return answer
    if (isNew) throw lost(target)
    // The message was not processed: it is sent again in a new session.
    const bridged = this.#of(target)
    if (bridged.started === started) bridged.started = undefined
    await this.#start(run, target)
    const again = await this.#send(run, target, context, text, label)
    if (again === undefined) throw lost(target)
    return again
  }

  /** Undefined if the target does not know the session, or the instance with the session is gone. */
  async #send(run: Run, target: Target, context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer | undefined> {
    const link = plainLink(run, target)
    const state = stateOf(run.session, target)
    if (label.id !== undefined) await this.#setLevel(run, target, link)
    if (label.id !== undefined) this.#sent.push({ target, id: label.id })
    try {
      return await unlessLost(await link.post(context, text, label), state.sessionId !== undefined || target.protocol === 'SSE')
    } catch (error) {
      const isGone = error instanceof EndpointGoneError || (error instanceof UpstreamError && error.failure === 'connect' && state.endpoint !== undefined)
      if (isGone) return undefined
      throw error
    }
  }

  /** Servers of older revisions keep one level for the session: it is set to the most verbose one that was requested. */
  async #setLevel(run: Run, target: Target, link: Link): Promise<void> {
    const { logLevel } = this.#client
    const bridged = this.#of(target)
    const isSet = bridged.logLevel !== undefined && logLevel !== undefined && bridged.logLevel <= logLevel
    if (logLevel === undefined || isSet || stateOf(run.session, target).offers?.includes('l') !== true) return
    bridged.logLevel = logLevel
    const method = 'logging/setLevel'
    const id = `${run.idPrefix}_level`
    const text = toText({ jsonrpc: '2.0', id, method, params: { level: levelName(logLevel) } })
    const answer = await link.post(run, text, { method, id })
    await readAnswer(run, target, answer, id, new Flow(), () => undefined).catch(() => undefined)
  }

  #of({ name }: Target): BridgedTarget {
    const bridged = this.#session.targets.get(name)
    if (bridged === undefined) throw new EndpointGoneError(`${name} is not a target of this session`)
    return bridged
  }

  /** Starts the session with a target unless it is started. Others may wait for the same start. */
  async #start(run: Run, target: Target): Promise<{ result: JsonObject; started: Promise<JsonObject>; isNew: boolean }> {
    const bridged = this.#of(target)
    if (this.#session.connections.get(target.name)?.isClosed === true) bridged.started = undefined
    const isNew = bridged.started === undefined
    const started = (bridged.started ??= this.#initialize(run, target))
    const { exchange } = run
    const gone = new Promise<never>((_, reject) => exchange.onAbort(reject))
    gone.catch(() => undefined)
    const waiting = Promise.race([started, gone])
    try {
      const result = await (exchange.deadlineAtMs === undefined ? waiting : withinDeadline(waiting, exchange.deadlineAtMs))
      this.#known.set(target, result)
      return { result, started, isNew }
    } catch (error) {
      throw error instanceof RefusedError ? new RefusedError(target.name, copyOf(error.response)) : error
    }
  }

  async #initialize(run: Run, target: Target): Promise<JsonObject> {
    const exchange = run.exchange.fork(run.exchange.request)
    const detached: Run = { ...run, exchange, timeoutMs: Math.min(run.timeoutMs ?? START_MS, START_MS) }
    try {
      return await withinDeadline(this.#shakeHands(detached, target), performance.now() + START_MS)
    } catch (error) {
      this.#of(target).started = undefined
      exchange.abort(error as Error)
      throw error
    }
  }

  async #shakeHands(run: Run, target: Target): Promise<JsonObject> {
    const state = stateOf(run.session, target)
    const bridged = this.#of(target)
    this.#session.connections.get(target.name)?.close()
    this.#session.connections.delete(target.name)
    const request = initializeFor(this.#client, this.#gateway, withoutReverse(this.#client.capabilities))
    Object.assign(state, { sessionId: undefined, endpoint: undefined, version: String((request['params'] as JsonObject)['protocolVersion']) })
    bridged.logLevel = undefined
    const link = plainLink(run, target)
    const answer = await link.post(run, toText(request), { method: 'initialize', id: START_ID })
    if (answer.kind === 'refused') throw new RefusedError(target.name, await keepable(answer.response))
    const message = await readAnswer(run, target, answer, START_ID, new Flow(), ({ id, method }) => {
      if (method === 'ping' && id !== undefined) link.post(run, resultText(id, {}), { method: undefined }).then(discard, () => undefined)
    })
    if (message.error !== undefined) throw new UpstreamRpcError(message)
    const { result } = message
    if (!isObject(result) || typeof result['protocolVersion'] !== 'string') throw badAnswer(target, 'initialize')
    state.version = result['protocolVersion']
    state.offers = offersOf(result)
    const method = 'notifications/initialized'
    discard(await link.post(run, toText({ jsonrpc: '2.0', method }), { method }))
    return result
  }
}

const lost = ({ name }: Target): EndpointGoneError => new EndpointGoneError(`${name} lost the session that was just started`)

/** A response whose body can be copied. */
async function keepable(response: ResponseHead): Promise<ResponseHead> {
  const { bytes } = await readHeldBody(undefined, response.body, MAX_REFUSAL_BYTES).catch(() => ({ bytes: Buffer.alloc(0) }))
  return { ...response, body: new BufferBody(bytes) }
}

/** Several requests may wait for one start, and each one needs a response of its own. */
const copyOf = ({ headers, body, ...head }: ResponseHead): ResponseHead => ({
  ...head,
  headers: headers.clone(),
  body: body instanceof BufferBody ? body.copy() : body,
})

/** The answer; undefined if the target does not know the session: 404, or a 400 that says so, as servers of some SDKs respond. */
async function unlessLost(answer: LinkAnswer, hasSession: boolean): Promise<LinkAnswer | undefined> {
  if (answer.kind !== 'refused' || !hasSession) return answer
  const { status } = answer.response
  if (status !== 404 && status !== 400) return answer
  const response = await keepable(answer.response)
  const isLost = status === 404 || (response.body instanceof BufferBody && /session/i.test(response.body.bytes.toString()))
  return isLost ? undefined : { kind: 'refused', response }
}
