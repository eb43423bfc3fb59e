import { readHeldBody } from '../../../request/exchange/held.ts'
import { withinDeadline } from '../../../request/expression/buffer.ts'
import { BufferBody } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { offersOf, withoutReverse, withoutTasks } from '../message/capabilities.ts'
import { McpFailure, UpstreamRpcError } from '../message/failure.ts'
import { decodeValue } from '../message/headers.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import {
  clientMeta,
  initializeFor,
  inputIn,
  inputOf,
  isModernAnswer,
  isModernRejection,
  levelName,
  MODERN_VERSION,
  modernErrorIn,
  serverOf,
  toLegacyRequest,
  toLegacyText,
  toModernText,
  withoutTasksIn,
  type ModernClient,
} from '../message/modern.ts'
import { Flow } from '../message/reply.ts'
import { INVALID_PARAMS, resultText, toText, type RpcId, type RpcMessage } from '../message/rpc.ts'
import type { BridgedSession, BridgedTarget } from '../session/bridged.ts'
import type { Target } from '../target/target.ts'
import { EndpointGoneError, type CallContext, type MessageLabel } from '../upstream/call.ts'
import type { Link, LinkAnswer, LinkState } from '../upstream/link.ts'
import { modernLink } from '../upstream/modern-link.ts'
import { streamableLink } from '../upstream/streamable.ts'
import { hasRounds } from '../upstream/rounds.ts'
import { LISTEN_ID, listenText, notificationsOf } from '../upstream/upgraded.ts'
import type { Inputs } from './inputs.ts'
import { badAnswer, checksResults, discard, plainLink, readAnswer, RefusedError, stateOf, type Run } from './run.ts'

/** Limit of the start of a session, in milliseconds. It is not bound to the request that needs it first, because others wait for it too. */
const START_MS = 30_000
const START_ID = 0
const MAX_REFUSAL_BYTES = 64 * 1024
/** Statuses of errors of the revision. Older servers respond with them too. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 404, 405])

/** A request that was sent to a target and not cancelled. */
interface Sent {
  readonly target: Target
  readonly id: RpcId
}

/** The request of the client, and the text that `post` receives for it. */
interface ClientRequest {
  readonly message: RpcMessage
  readonly text: string
  /** The text has the form of revisions with sessions. */
  readonly isLegacy: boolean
}

/** The link to a server without sessions needs no state. */
const MODERN_STATE: LinkState = { sessionId: undefined, endpoint: undefined, offers: undefined, version: MODERN_VERSION, isMissing: false }

/** The connection of one request of a client without sessions to targets of all revisions (mcp.md §13.2, §13.3). */
export class Bridge {
  readonly #session: BridgedSession
  readonly #client: ModernClient
  readonly #gateway: JsonObject
  readonly #inputs: Inputs | undefined
  readonly #sent: Sent[] = []
  readonly #servers = new Map<Target, JsonObject>()
  readonly #subscriptions = new Map<Target, Set<string>>()
  readonly #tasks = new Map<Target, Set<string>>()
  #isUnchanged = false
  #request: ClientRequest | undefined

  /** `gateway` is the identity for clients that do not name themselves. Without `inputs`, requests of targets are rejected. */
  constructor(session: BridgedSession, client: ModernClient, gateway: JsonObject, inputs?: Inputs) {
    this.#inputs = inputs
    this.#session = session
    this.#client = client
    this.#gateway = gateway
  }

  /** The link to a target, for `Run.linkOf`. */
  readonly linkOf = (run: Run, target: Target): Link => ({
    post: (context, text, label) => this.#withSession(run, target, () => this.#send(run, target, context, text, label)),
    listen: (context) => this.#withSession(run, target, () => this.#listen(run, target, context)),
    end: (context) => plainLink(run, target).end(context),
  })

  /** Whether the target speaks the client's revision. Rejects like `post` of `run.ts`. */
  async isModern(run: Run, target: Target): Promise<boolean> {
    return run.revisions.isModern(target) ?? (await this.#discover(run, target)) !== undefined
  }

  /** Rejections of a target of the revision reach the client as they are. */
  passUnchanged(): void {
    this.#isUnchanged = true
  }

  /** The request of the client. Returns the text for `post`, which is converted and parsed once at most. `target`: the only one that receives it as it is. */
  setRequest(run: Run, message: RpcMessage, target: Target | undefined): string {
    const isLegacy = target !== undefined && run.revisions.isModern(target) === false
    const text = toText(isLegacy ? toLegacyRequest(message) : message)
    this.#request = { message, text, isLegacy }
    return text
  }

  /** Capabilities and instructions of the target: its result of `server/discover` or `initialize`. Rejects like `post` of `run.ts`. */
  async describe(run: Run, target: Target): Promise<JsonObject> {
    const found = run.revisions.isModern(target) === false ? undefined : await this.#discover(run, target)
    return found ?? (await this.#start(run, target)).result
  }

  /** Adds a resource to those whose updates `listen` of the target's link returns. */
  subscribeTo(target: Target, uri: string): void {
    const uris = this.#subscriptions.get(target)
    if (uris === undefined) this.#subscriptions.set(target, new Set([uri]))
    else uris.add(uri)
  }

  /** Adds a task to those whose states `listen` of the target's link returns. The target speaks the client's revision. */
  subscribeToTask(target: Target, id: string): void {
    const ids = this.#tasks.get(target)
    if (ids === undefined) this.#tasks.set(target, new Set([id]))
    else ids.add(id)
  }

  /** The identity of the target, if it is known. */
  serverOf(target: Target): JsonObject | undefined {
    const info = this.#session.targets.get(target.name)?.known?.result['serverInfo']
    return this.#servers.get(target) ?? (isObject(info) ? info : undefined)
  }

  /** Cancels what was sent to targets with sessions: the client disconnected before the response. */
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

  /** As `#send`, for the stream of the target's own messages. */
  async #listen(run: Run, target: Target, context: CallContext): Promise<LinkAnswer | undefined> {
    const subscriptions = this.#subscriptions.get(target)
    if (await this.isModern(run, target)) {
      const label = { method: 'subscriptions/listen', id: LISTEN_ID }
      const answer = await modernLink(target, MODERN_STATE, run.memory, { addsParams: false }).post(
        context,
        toModernText(listenText({ subscriptions, taskIds: this.#tasks.get(target) }), this.#client),
        label,
      )
      return answer.kind === 'events' ? { kind: 'events', events: notificationsOf(answer.events) } : answer
    }
    const { started } = await this.#start(run, target)
    const answer = await unlessGone(run, target, async (link) => {
      const method = 'resources/subscribe'
      let count = 0
      for (const uri of subscriptions ?? []) {
        const id = `${run.idPrefix}_subscribe_${count++}`
        const subscribed = await link.post(context, toText({ jsonrpc: '2.0', id, method, params: { uri } }), { method, id, name: uri })
        // An update of a resource that the target rejects never comes.
        if (subscribed.kind === 'refused') discard(subscribed)
        else await readAnswer(run, target, subscribed, id, new Flow(), ignore).catch(() => undefined)
      }
      return link.listen(context, undefined)
    })
    this.#forget(target, answer, started)
    return answer
  }

  /** Sends once more, in a new session, if the target did not process what `send` sent. */
  async #withSession(run: Run, target: Target, send: () => Promise<LinkAnswer | undefined>): Promise<LinkAnswer> {
    const answer = await send()
    if (answer !== undefined) return answer
    // The server may speak another revision now.
    run.revisions.forget(target)
    const again = await send()
    if (again === undefined) throw new EndpointGoneError(`${target.name} rejects a session that was just started`)
    return again
  }

  /** Undefined if the target did not process the message, because it has no such session or does not speak the revision. */
  async #send(run: Run, target: Target, context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer | undefined> {
    if (run.revisions.isModern(target) ?? (await this.isModern(run, target))) return this.#sendModern(run, target, context, text, label)
    const input = label.method !== undefined && hasRounds(label.method) ? this.#inputOf(text) : undefined
    if (input !== undefined) return this.#resume(run, target, label, input)
    const bridged = this.#of(target)
    const { started } = this.#startOf(target) ?? (await this.#start(run, target))
    const send = (detached: CallContext): Promise<LinkAnswer | undefined> => this.#sendLegacy(run, target, detached, this.#toLegacy(text), label)
    const answer = await (this.#inputs?.accepts(label) === true ? this.#inputs.call(run, target, bridged, label, send, text.length) : send(context))
    this.#forget(target, answer, started)
    return answer
  }

  /** Ends a session that the target does not know. Others may have started the next one. */
  #forget(target: Target, answer: LinkAnswer | undefined, started: Promise<JsonObject>): void {
    const bridged = this.#of(target)
    if (answer === undefined && bridged.started === started) bridged.started = undefined
  }

  #toLegacy(text: string): string {
    if (this.#request?.text !== text) return toLegacyText(text)
    return this.#request.isLegacy ? text : toText(toLegacyRequest(this.#request.message))
  }

  #toModern(text: string): string {
    // The target spoke an older revision when the text was written.
    const isLegacy = this.#request?.text === text && this.#request.isLegacy
    return toModernText(isLegacy ? toText(this.#request?.message ?? {}) : text, this.#client)
  }

  #inputOf(text: string): JsonObject | undefined {
    return this.#request?.text === text ? inputOf(this.#request.message) : inputIn(text)
  }

  #resume(run: Run, target: Target, label: MessageLabel, input: JsonObject): Promise<LinkAnswer> {
    if (this.#inputs === undefined) throw McpFailure.rpc(INVALID_PARAMS, 'params.requestState is not one of this gateway')
    return this.#inputs.resume(run, target, label, input)
  }

  async #sendModern(run: Run, target: Target, context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer | undefined> {
    // The revision has no responses of clients: the request that this one answers was none of the revision.
    if (label.method === undefined) return { kind: 'accepted' }
    const name = label.name ?? (this.#isUnchanged ? decodeValue(context.exchange.request.headers.get('mcp-name') ?? '') : undefined)
    // The client has the server's schemas, and adds headers of arguments itself, so that the server can compare them.
    const isAsSent = this.#isUnchanged || label.arguments === this.#request?.message.params?.['arguments']
    const link = modernLink(target, MODERN_STATE, run.memory, { addsParams: !isAsSent })
    const sent = this.#toModern(text)
    // The result of a task could not be checked.
    const admitted = checksResults(run, target) ? withoutTasksIn(sent) : sent
    const answer = await link.post(context, admitted, { ...label, name: name || undefined })
    if (answer.kind !== 'refused' || !REJECTIONS.has(answer.response.status)) return answer
    const response = await keepable(answer.response)
    const error = modernErrorIn(textOf(response))
    if (error === undefined) return undefined
    return this.#isUnchanged ? { kind: 'refused', response } : { kind: 'json', body: new BufferBody(toText(error)) }
  }

  /** The target's result of `server/discover`; undefined if it speaks older revisions only. */
  async #discover(run: Run, target: Target): Promise<JsonObject | undefined> {
    if (run.revisions.isModern(target) === false) return undefined
    const method = 'server/discover'
    const id = `${run.idPrefix}_discover`
    const text = toText({ jsonrpc: '2.0', id, method, params: { _meta: clientMeta(this.#client) } })
    try {
      const answer = await streamableLink(target, MODERN_STATE).post(run, text, { method, id })
      const message =
        answer.kind === 'refused' ? await this.#judgeRefusal(target, answer.response) : await readAnswer(run, target, answer, id, new Flow(), ignore)
      const isModern = message !== undefined && isModernAnswer(message)
      run.revisions.set(target, isModern ? 'modern' : 'legacy')
      if (!isModern) return undefined
      if (!isObject(message.result)) throw new UpstreamRpcError(message)
      const server = serverOf(message.result)
      if (server !== undefined) this.#servers.set(target, server)
      return message.result
    } catch (error) {
      // The response is no message: `initialize` will show whether the target is a server.
      if (error instanceof McpFailure) return undefined
      throw error
    }
  }

  /** The JSON-RPC error of a rejected `server/discover`. Rejects if the rejection says nothing about the revision. */
  async #judgeRefusal(target: Target, response: ResponseHead): Promise<RpcMessage | undefined> {
    const { status } = response
    if (status === 401 || status === 403 || status === 429) throw new RefusedError(target.name, response)
    const kept = await keepable(response)
    if (status >= 500) throw McpFailure.text(status, 'the target is not available')
    return modernErrorIn(textOf(kept))
  }

  async #sendLegacy(run: Run, target: Target, context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer | undefined> {
    if (label.id !== undefined && this.#client.logLevel !== undefined) await this.#setLevel(run, target, plainLink(run, target))
    if (label.id !== undefined) this.#sent.push({ target, id: label.id })
    const takesLogs = this.#client.logLevel !== undefined
    return unlessGone(run, target, (link) => link.post(context, text, takesLogs ? { ...label, takesLogs } : label))
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
    await readAnswer(run, target, answer, id, new Flow(), ignore).catch(() => undefined)
  }

  #of({ name }: Target): BridgedTarget {
    const bridged = this.#session.targets.get(name)
    if (bridged === undefined) throw new EndpointGoneError(`${name} is not a target of this session`)
    return bridged
  }

  /** The start of the session with a target, if it has succeeded and the session is not over. */
  #startOf(target: Target): BridgedTarget['known'] {
    const bridged = this.#of(target)
    if (this.#session.connections.get(target.name)?.isClosed === true) bridged.started = undefined
    return bridged.started !== undefined && bridged.known?.started === bridged.started ? bridged.known : undefined
  }

  /** Starts the session with a target unless it is started. Others may wait for the same start. */
  async #start(run: Run, target: Target): Promise<{ result: JsonObject; started: Promise<JsonObject> }> {
    const known = this.#startOf(target)
    if (known !== undefined) return known
    const bridged = this.#of(target)
    const started = (bridged.started ??= this.#initialize(run, target))
    const { exchange } = run
    const gone = new Promise<never>((_, reject) => exchange.onAbort(reject))
    gone.catch(() => undefined)
    const waiting = Promise.race([started, gone])
    try {
      const result = await (exchange.deadlineAtMs === undefined ? waiting : withinDeadline(waiting, exchange.deadlineAtMs))
      bridged.known = { result, started }
      return bridged.known
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
    bridged.own?.close()
    bridged.own = undefined
    this.#session.connections.get(target.name)?.close()
    this.#session.connections.delete(target.name)
    const { capabilities } = this.#client
    const request = initializeFor(this.#client, this.#gateway, this.#inputs === undefined ? withoutReverse(capabilities) : withoutTasks(capabilities))
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

const ignore = (): void => undefined

const textOf = ({ body }: ResponseHead): string => (body instanceof BufferBody ? body.bytes.toString() : '')

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

/** The answer to what `send` sends in a session; undefined if the target does not know the session, or the instance with the session is gone. */
async function unlessGone(run: Run, target: Target, send: (link: Link) => Promise<LinkAnswer>): Promise<LinkAnswer | undefined> {
  const state = stateOf(run.session, target)
  try {
    const answer = await send(plainLink(run, target))
    const hasSession = state.sessionId !== undefined || target.protocol !== 'StreamableHTTP'
    return answer.kind === 'refused' && hasSession ? await unlessLost(answer.response) : answer
  } catch (error) {
    const isGone = error instanceof EndpointGoneError || (error instanceof UpstreamError && error.failure === 'connect' && state.endpoint !== undefined)
    if (isGone) return undefined
    throw error
  }
}

/** The rejection of a message; undefined if the target does not know the session: 404, a 400 that says so, as servers of some SDKs respond, or one of the newer revision. */
async function unlessLost(refused: ResponseHead): Promise<LinkAnswer | undefined> {
  const { status } = refused
  if (status !== 404 && status !== 400) return { kind: 'refused', response: refused }
  const response = await keepable(refused)
  const isLost = status === 404 || /session/i.test(textOf(response)) || isModernRejection(textOf(response))
  return isLost ? undefined : { kind: 'refused', response }
}
