import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bufferedRequest, bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { HeaderList } from '../../http/headers.ts'
import { pathOf, type ResponseHead } from '../../http/message.ts'
import type { BackendService, ServiceConfig } from '../forward/service.ts'
import { setProtocol } from '../../observe/telemetry/outcome.ts'
import type { CallPlan } from '../forward/call-plan.ts'
import { failureResponse, relay, toResponse } from './answer/answer.ts'
import { resumeForPeer, resumeForWorker } from './answer/resumed.ts'
import { McpHooks } from './hooks/index.ts'
import { judgeItems } from './target/authorize.ts'
import { dispatch } from './method/dispatch.ts'
import { dispatchModern } from './method/modern.ts'
import { McpFailure } from './message/failure.ts'
import { headersFor } from './message/headers.ts'
import { readModernClient } from './message/modern.ts'
import { deliver, feed, LegacyClients } from './method/legacy.ts'
import { listen } from './method/listen.ts'
import { ToolCapture } from './record/capture.ts'
import { recordAnswer, recordError, recordMessage, recordOutcome, recordSession, readsResults } from './record/log.ts'
import { countMessage, isNewItem, recordListed } from './record/metrics.ts'
import { checkGet, checkPost, checkVersion, isWellKnown } from './message/request.ts'
import { runWhileConnected } from '../../request/exchange/connected.ts'
import { INVALID_REQUEST, isRequest, isResponse, parseClientMessage, type ClientMessage, type RpcMessage, type RpcRequest } from './message/rpc.ts'
import { Bridge } from './run/bridge.ts'
import { Inputs, type ProcessCalls } from './run/inputs.ts'
import { endLinks, toFailure, type Run } from './run/run.ts'
import { BridgedSessions, newBridgedSession, type BridgedSession } from './session/bridged.ts'
import type { SessionKeys } from '../../runtime/seal.ts'
import { recordRevision, recordStart } from './session/about.ts'
import { publishSessions } from './session/list.ts'
import { principalOf } from './session/principal.ts'
import { Revisions } from './session/revisions.ts'
import type { PeerMessages, SessionSharing, WorkerMessages } from './session/sharing.ts'
import { defaultLimits, newSession, Sessions, type Session, type SessionLimits } from './session/sessions.ts'
import { WaitingCalls, type WaitingLimits } from './session/waiting.ts'
import { prepareStateless } from './method/stateless.ts'
import { findView } from './target/views.ts'
import { announceChanges, compileMcp, type McpConfig, type Target } from './target/target.ts'
import { withTrace } from './record/trace.ts'
import { callTarget } from './upstream/call.ts'
import { ServerMemory } from './upstream/memory.ts'

import { endPrograms } from './stdio/server.ts'
export { endProcesses } from './stdio/process.ts'

/** Options of all MCP services of the process. */
export interface McpOptions {
  readonly keys: SessionKeys
  /** Build version, reported to clients and servers. */
  readonly version: string
  readonly limits?: SessionLimits
  /** Undefined: this thread handles all traffic. */
  readonly sharing?: SessionSharing | undefined
  /** Messages between workers. Undefined: there is one thread. */
  readonly messages?: WorkerMessages | undefined
  /** Messages between replicas. Undefined: this one is alone. */
  readonly peers?: PeerMessages | undefined
  readonly waitingLimits?: WaitingLimits
}

/** Path of the older transport, HTTP+SSE. */
const LEGACY_PATH = '/sse'

/** Returns the factory for backends of kind `mcp`. Services of one backend with different policies share its sessions. */
export function createMcpFactory(options: McpOptions): (config: ServiceConfig) => BackendService {
  const shared = new WeakMap<object, Map<string, SharedState>>()
  const { keys, sharing, messages, peers, waitingLimits: limits } = options
  const calls: ProcessCalls = { waiting: new WaitingCalls({ keys, sharing, peers, limits }), messages, peers }
  messages?.handle((text) => resumeForWorker(calls.waiting, text))
  peers?.handle((text, onGone) => resumeForPeer(calls, text, onGone))
  return (config) => {
    let states = shared.get(config.destinations)
    if (states === undefined) shared.set(config.destinations, (states = new Map()))
    const { key } = config.backend
    let state = states.get(key)
    if (state === undefined)
      states.set(
        key,
        (state = {
          sessions: new Sessions(key, options.keys, config.state.monotonicMs, options.limits, options.sharing),
          legacy: new LegacyClients(options.sharing),
          bridged: new BridgedSessions(config.state.monotonicMs, options.limits ?? defaultLimits),
          revisions: new Revisions(),
          memory: new ServerMemory(config.state.monotonicMs, options.sharing),
          users: 0,
        }),
      )
    const { sessions, legacy, bridged } = state
    publishSessions(config.destinations, key, {
      nowMs: config.state.monotonicMs,
      kinds: [
        ['session', sessions],
        ['stream', legacy],
        ['shared', bridged],
      ],
    })
    const used = state
    used.users++
    return new McpService(config, options, used, calls, () => {
      if (--used.users > 0) return
      used.sessions.close()
      used.legacy.close()
      used.bridged.close()
    })
  }
}

const hookedConfigs = new WeakMap<McpConfig, McpConfig>()

/** The config for requests with hooks of plugins: no message passes unread. */
function hookedOf(config: McpConfig): McpConfig {
  if (config.hasRules) return config
  const known = hookedConfigs.get(config)
  if (known !== undefined) return known
  const hooked = { ...config, hasRules: true }
  hookedConfigs.set(config, hooked)
  return hooked
}

const statelessConfigs = new WeakMap<McpConfig, McpConfig>()

/** The config for clients without sessions. */
function statelessOf(config: McpConfig): McpConfig {
  const known = statelessConfigs.get(config)
  if (known !== undefined) return known
  const stateless = { ...config, isStateful: false }
  statelessConfigs.set(config, stateless)
  return stateless
}

/** What a run has for some messages only. */
type RunExtra = Partial<Pick<Run, 'prepare' | 'received' | 'linkOf' | 'idPrefix'>>

interface SharedState {
  readonly sessions: Sessions
  readonly legacy: LegacyClients
  readonly bridged: BridgedSessions
  readonly revisions: Revisions
  readonly memory: ServerMemory
  users: number
}

class McpService implements BackendService {
  readonly #options: McpOptions
  readonly #shared: SharedState
  readonly #calls: ProcessCalls
  readonly #onClose: () => void
  #state: ServiceConfig['state']
  #config: McpConfig

  constructor(config: ServiceConfig, options: McpOptions, shared: SharedState, calls: ProcessCalls, onClose: () => void) {
    this.#options = options
    this.#calls = calls
    this.#shared = shared
    this.#onClose = onClose
    this.#state = config.state
    this.#config = compileMcp(config)
  }

  update(config: ServiceConfig): void {
    const previous = this.#config
    this.#state = config.state
    this.#config = compileMcp(config, previous)
    announceChanges(previous, this.#config)
    endPrograms(previous.targets, this.#config.targets)
  }

  close(): void {
    this.#config.pins?.close()
    endPrograms(this.#config.targets, [])
    this.#onClose()
  }

  async handle(exchange: Exchange, plan: CallPlan): Promise<ResponseHead> {
    setProtocol(exchange, 'mcp')
    const base = this.#config
    if (base.broken !== undefined) throw new ProxyError('FILTER_FAILED', { cause: new Error(base.broken) })
    const seen: { message: RpcMessage | undefined } = { message: undefined }
    try {
      if (isForeign(base, exchange)) throw McpFailure.text(403, FOREIGN)
      const answer = await base.authentication?.admit(exchange)
      if (answer !== undefined) return answer
      const view = viewFor(base, exchange)
      const config = McpHooks.of(exchange) === undefined ? view : hookedOf(view)
      if (config.targets.length === 0 && !config.isFailOpen) throw McpFailure.text(503, 'no backends configured')
      return await this.#answer(exchange, plan, config, seen)
    } catch (error) {
      const response = failureResponse(exchange, error, seen.message)
      if (response === undefined) throw error
      return response
    } finally {
      releaseRequest(exchange)
    }
  }

  async #answer(exchange: Exchange, plan: CallPlan, config: McpConfig, seen: { message: RpcMessage | undefined }): Promise<ResponseHead> {
    const { method, target } = exchange.request
    const path = pathOf(target)
    const [sole] = config.targets
    // An API or a program has no OAuth documents of an MCP server.
    const hasDocuments = sole !== undefined && sole.openapi === undefined && sole.grpc === undefined && sole.program === undefined && !config.isMultiplexing
    if ((method === 'GET' || method === 'OPTIONS') && hasDocuments && isWellKnown(path))
      return this.#proxy(this.#runOf(exchange, plan, config, freshSession(config, undefined)), sole, method)
    if (path === LEGACY_PATH) return this.#answerLegacy(exchange, plan, config, seen)
    if (method === 'POST') return this.#post(exchange, plan, config, seen)
    if (!config.isStateful || (method !== 'GET' && method !== 'DELETE')) throw McpFailure.method(config.isStateful ? 'GET, POST, DELETE' : 'POST')
    if (checkVersion(exchange.request.headers)) throw McpFailure.method('POST')
    if (method === 'GET') checkGet(exchange.request.headers)
    const session = this.#sessionOf(exchange, config, 'session ID is required: send Mcp-Session-Id')
    if (session.logId !== undefined) recordSession(exchange, session.logId)
    const run = this.#runOf(exchange, plan, config, session)
    if (method === 'DELETE') {
      await endLinks(run)
      this.#shared.sessions.end(session)
      return { status: 204, headers: new HeaderList(), body: undefined, upgraded: undefined }
    }
    return this.#respond(run, listen(run, exchange.request.headers.get('last-event-id')))
  }

  async #post(exchange: Exchange, plan: CallPlan, config: McpConfig, seen: { message: RpcMessage | undefined }): Promise<ResponseHead> {
    const { headers } = exchange.request
    checkPost(headers)
    const bytes = await readMessage(exchange, plan)
    const received = await runWhileConnected(parseClientMessage(bytes, config.hasRules, exchange.jsonLimits), exchange)
    seen.message = received.message
    recordMessage(exchange, received.message)
    if (checkVersion(headers, received.message)) return this.#postModern(exchange, plan, config, received)
    const { message, text } = withTrace(received.message, headers) ?? received
    const isInitialize = message.method === 'initialize' && isRequest(message)
    const isNew = !config.isStateful || isInitialize
    const session = isNew
      ? freshSession(config, config.isStateful ? principalOf(exchange) : undefined)
      : this.#sessionOf(exchange, config, 'session header is required: send Mcp-Session-Id, or initialize first')
    const prepare = config.isStateful || isInitialize ? undefined : prepareStateless(this.#options.version)
    const run = this.#runOf(exchange, plan, config, session, { prepare, received: { message, text } })
    const admit = config.isStateful ? () => this.#admit(session, message) : undefined
    try {
      return await this.#respond(run, dispatch(run, message, text, { admit, version: this.#options.version }), message, !config.isStateful)
    } finally {
      if (session.logId !== undefined) recordSession(exchange, session.logId)
    }
  }

  #admit(session: Session, { params }: RpcMessage): string {
    recordStart(session.about, params, this.#state.monotonicMs())
    return this.#shared.sessions.admit(session)
  }

  /** Handles a message of the revision without sessions (mcp.md §13). */
  async #postModern(exchange: Exchange, plan: CallPlan, config: McpConfig, received: ClientMessage): Promise<ResponseHead> {
    const { headers } = exchange.request
    const { message } = received
    if (isResponse(message)) throw McpFailure.rpc(INVALID_REQUEST, 'responses are not accepted: send a request with params.inputResponses', { status: 400 })
    const names = config.targets.map(({ name }) => name)
    const gateway = { name: 'proxy', version: this.#options.version }
    const statelessRun = (session: BridgedSession, extra?: RunExtra): Run => this.#runOf(exchange, plan, statelessOf(config), session, extra)
    // Clients cancel requests by closing their connection, so no notification has an effect.
    if (!isRequest(message)) return this.#respond(statelessRun(newBridgedSession(names, undefined)), Promise.resolve({ kind: 'accepted' }), message)
    const client = readModernClient(headers, message)
    const { message: request, text } = withTrace(message, headers) ?? received
    const principal = principalOf(exchange)
    const sharers = { principal, address: exchange.connection.remoteAddress, headers, client: { info: client.info, capabilities: client.capabilities } }
    // Servers have one stream of notifications for each session.
    const isShared = config.isStateful && message.method !== 'subscriptions/listen'
    const session = isShared ? this.#shared.bridged.open(sharers, names) : newBridgedSession(names, principal)
    session.owners.clear()
    const { capabilities } = client
    const inputs = isShared ? new Inputs({ ...this.#calls, principal, address: exchange.connection.remoteAddress, capabilities }) : undefined
    const bridge = new Bridge(session, client, gateway, inputs)
    const run = statelessRun(session, { linkOf: bridge.linkOf, idPrefix: nextIdPrefix() })
    const replied = dispatchModern(run, request as RpcRequest, text, { client, bridge, gateway })
    const response = await this.#respond(run, replied, message, !isShared)
    if (response.headers.get('content-type') === 'text/event-stream') response.headers.append('x-accel-buffering', 'no')
    return response
  }

  /** Converts a reply to a response. The session is in use until the response is complete. `counted` is the message of a POST, for metrics. `isOnce`: the sessions with targets end with it. */
  async #respond(run: Run, replied: ReturnType<typeof dispatch>, counted?: RpcMessage, isOnce = false): Promise<ResponseHead> {
    const { session, config, exchange } = run
    const count = counted && onceOnly(() => countMessage(run, counted))
    let isDone = false
    const onDone = (): void => {
      if (isDone) return
      isDone = true
      count?.()
      session.open--
      if (isOnce) void endLinks(run)
    }
    session.open++
    try {
      const reply = await replied
      if (!isNewItem(run)) count?.()
      const response = toResponse(exchange, reply, onDone)
      // With several targets, the headers of one are not those of the response. Relayed responses have them already.
      if (!config.isMultiplexing && reply.kind !== 'relay') response.headers.raw.push(...run.answerHeaders.raw)
      return response
    } catch (error) {
      onDone()
      throw error
    }
  }

  #sessionOf(exchange: Exchange, config: McpConfig, missing: string): Session {
    const id = exchange.request.headers.get('mcp-session-id')
    if (id === undefined) throw McpFailure.text(400, missing)
    const session = this.#shared.sessions.find(id, principalOf(exchange))
    const isOurs = session !== undefined && session.links.size === config.targets.length && config.targets.every(({ name }) => session.links.has(name))
    if (!isOurs) throw McpFailure.text(404, 'session not found')
    recordRevision(session.about, exchange.request.headers.get('mcp-protocol-version'))
    return session
  }

  #runOf(exchange: Exchange, plan: CallPlan, config: McpConfig, session: Session, extra: RunExtra = {}): Run {
    const { registry } = this.#state
    const capture = ToolCapture.of(exchange, registry)
    return {
      exchange,
      config,
      session,
      registry,
      timeoutMs: plan.backendRequestMs,
      retry: plan.retry,
      maxBufferBytes: plan.maxBufferBytes,
      answerHeaders: new HeaderList(),
      judge: judgeItems(exchange, config.rules),
      hooks: McpHooks.of(exchange),
      prepare: extra.prepare,
      received: extra.received,
      linkOf: extra.linkOf,
      revisions: this.#shared.revisions,
      memory: this.#shared.memory,
      idPrefix: extra.idPrefix ?? 'proxy',
      onAnswer: (message) => {
        recordAnswer(exchange, message)
        capture?.result(message)
      },
      onArguments: capture && ((args) => capture.arguments(args)),
      onRejection: () => void (exchange.error = new ProxyError('GUARD_REJECTED')),
      onOutcome: (isSuccessful) => recordOutcome(exchange, isSuccessful),
      onListed: (item) => recordListed({ registry }, item),
      isNewItem: () => isNewItem({ registry, exchange }),
      onFailure: (code, detail) => recordError(exchange, code, detail),
      readsResults: capture !== undefined || readsResults(exchange),
    }
  }

  /** Passes a request for OAuth metadata to the target (mcp.md §3 step 2). */
  async #proxy(run: Run, target: Target, method: 'GET' | 'OPTIONS'): Promise<ResponseHead> {
    const { headers, target: path } = run.exchange.request
    const sent = headersFor(headers, { sessionId: undefined, accept: headers.get('accept') ?? '*/*', hasBody: false })
    try {
      const { response } = await callTarget(run, target, { method, path, headers: sent })
      return relay(response, () => undefined)
    } catch (error) {
      throw toFailure(run, target, error)
    }
  }

  async #answerLegacy(exchange: Exchange, plan: CallPlan, compiled: McpConfig, seen: { message: RpcMessage | undefined }): Promise<ResponseHead> {
    const { method } = exchange.request
    const { legacy } = this.#shared
    // The stream is the session, with both kinds of session routing.
    const config: McpConfig = { ...compiled, isStateful: true }
    if (method === 'GET') {
      const session = freshSession(config, config.isStateful ? principalOf(exchange) : undefined)
      const run = this.#runOf(exchange.fork(exchange.request), plan, config, session)
      return legacy.open(exchange, session, () => void endLinks(run))
    }
    if (method !== 'POST') throw McpFailure.method('GET, POST')
    const client = legacy.find(exchange, principalOf(exchange))
    const bytes = await readMessage(exchange, plan)
    const received = await runWhileConnected(parseClientMessage(bytes, config.hasRules, exchange.jsonLimits), exchange)
    seen.message = received.message
    recordMessage(exchange, received.message)
    if (client.session.logId !== undefined) recordSession(exchange, client.session.logId)
    client.session.usedAtMs = this.#state.monotonicMs()
    if (received.message.method === 'initialize') recordStart(client.session.about, received.message.params, client.session.usedAtMs)
    const { message, text } = withTrace(received.message, exchange.request.headers) ?? received
    // The log of this request has the fields that are known when the 202 is sent.
    const run = this.#runOf(exchange.fork(exchange.request), plan, config, client.session)
    const onDone = onceOnly(() => countMessage(run, message))
    const delivered = deliver(client, message, dispatch(run, message, text, { admit: undefined, version: this.#options.version }), onDone)
    if (!isRequest(message)) await delivered
    else if (message.method === 'initialize') void delivered.then(() => this.#listenFor(run, client))
    return toResponse(exchange, { kind: 'accepted' }, () => undefined)
  }

  /** Adds messages that targets send on their own to the client's stream. Targets without such a stream are ignored. */
  async #listenFor(run: Run, { stream, feeders }: ReturnType<LegacyClients['find']>): Promise<void> {
    const reply = await listen(run, undefined, true).catch(() => undefined)
    if (reply?.kind === 'stream') feed(stream, feeders, reply.feed)
    if (reply?.kind === 'relay') reply.response.body?.cancel()
  }
}

/** Pages of all origins may read OAuth documents and register. */
function isForeign({ authentication, isForeignOrigin }: McpConfig, exchange: Exchange): boolean {
  const path = pathOf(exchange.receivedTarget)
  return isForeignOrigin(exchange) && !isWellKnown(path) && authentication?.isPublic(path) !== true
}

const FOREIGN =
  'the Origin of the request is not allowed: add it to allowOrigins of a CORS policy of the route, for pages in browsers, or to mcp.allowOrigins of the backend'

/** The view that the request is for. OAuth documents are those of the backend. */
function viewFor(config: McpConfig, exchange: Exchange): McpConfig {
  if (config.views.length === 0 || isWellKnown(pathOf(exchange.request.target))) return config
  const view = findView(config.views, exchange)
  if (view === undefined) throw McpFailure.text(404, 'no view of the MCP backend has this path and host')
  return view.config
}

let requests = 0

/** Requests of clients without sessions share those with targets, so their ids must differ in this process. */
const nextIdPrefix = (): string => `proxy_${(requests = (requests + 1) % Number.MAX_SAFE_INTEGER)}`

/** The function, which has an effect at its first call only. */
function onceOnly(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}

/** A session before `initialize`. */
function freshSession({ targets }: McpConfig, principal: string | undefined): Session {
  const links = new Map(targets.map(({ name }) => [name, { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: false }]))
  return newSession({ links, principal, client: undefined }, 0)
}

async function readMessage(exchange: Exchange, { maxBufferBytes = MAX_BUFFER_BYTES }: CallPlan): Promise<Buffer> {
  await bufferRequest(exchange, maxBufferBytes)
  const buffered = bufferedRequest(exchange)
  if (buffered?.isComplete === true) return buffered.prefix
  exchange.request.body?.cancel()
  throw new ProxyError('BODY_TOO_LARGE')
}
