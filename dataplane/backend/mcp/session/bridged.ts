import { createHash } from 'node:crypto'
import type { HeaderList } from '../../../http/headers.ts'
import type { JsonObject } from '../message/json.ts'
import { MODERN_VERSION } from '../message/modern.ts'
import type { RpcRequest } from '../message/rpc.ts'
import type { LinkState } from '../upstream/link.ts'
import { recordStart } from './about.ts'
import { newSession, type Session, type SessionLimits } from './sessions.ts'

/** A call to a target that may require input of the client. */
export interface BridgedCall {
  /** Passes a request of the target to the client. */
  receive(request: RpcRequest): void
  abort(): void
}

/** The stream of messages that a target sends on its own. */
export interface OwnMessages {
  /** Whether the stream has ended and may be opened again. */
  readonly isClosed: boolean
  /** Resolves when the stream is open, or the target has none. */
  readonly ready: Promise<void>
  /** Adds a call that requests of the target can belong to. */
  add(call: BridgedCall): void
  remove(call: BridgedCall): void
  close(): void
}

/** The gateway's session with one target, or its start. */
export interface BridgedTarget {
  /** Result of `initialize`; undefined before the first request and after the target lost the session. */
  started: Promise<JsonObject> | undefined
  /** The last start that succeeded, with its result. */
  known: { readonly started: Promise<JsonObject>; readonly result: JsonObject } | undefined
  /** Index of the level of log messages that the target was set to; undefined: none. */
  logLevel: number | undefined
  /** The stream of messages that the target sends on its own; undefined until a call may need it. */
  own: OwnMessages | undefined
  /** Calls that may require input of the client. */
  readonly pending: Set<BridgedCall>
}

/** Sessions with targets on behalf of clients that have none (mcp.md §13.2). Requests of one user and client share them. */
export interface BridgedSession extends Session {
  readonly targets: ReadonlyMap<string, BridgedTarget>
}

/** What two requests must have in common to share sessions. */
export interface Sharers {
  /** Identifies the user; see `principal.ts`. */
  readonly principal: string | undefined
  /** Address of the client. */
  readonly address: string
  readonly headers: HeaderList
  /** Everything about the client that targets learn at `initialize`. */
  readonly client: JsonObject
}

/** Headers that differ between requests of one user. Any other one may be a credential. */
const VOLATILE: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'baggage',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'idempotency-key',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'pragma',
  'priority',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'x-correlation-id',
  'x-request-id',
])
const PARAMETER = 'mcp-param-'

/** What a session is shared by, as text. Values of headers have no line breaks, nor have names of targets. */
function textOf({ principal, address, headers: { raw }, client }: Sharers, names: readonly string[]): string {
  // Addresses tell anonymous clients apart.
  let text = `${principal === undefined ? `address ${address}` : `principal ${principal}`}\n${names.join(' ')}\n`
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (!VOLATILE.has(name) && !name.startsWith(PARAMETER)) text += `${name}:${raw[i + 1] ?? ''}\n`
  }
  return text + JSON.stringify(client)
}

const MAX_KNOWN_TEXTS = 256
const MAX_KNOWN_CHARS = 4096

/** Digests of the texts, which may be long and contain credentials. Those of recent requests are kept, because the next ones have the same text. */
class Keys {
  readonly #known = new Map<string, string>()

  of(text: string): string {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const key = createHash('sha256').update(text).digest('base64url')
    if (text.length > MAX_KNOWN_CHARS) return key
    if (this.#known.size >= MAX_KNOWN_TEXTS) this.#known.clear()
    this.#known.set(text, key)
    return key
  }

  clear(): void {
    this.#known.clear()
  }
}

const newTarget = (): BridgedTarget => ({ started: undefined, known: undefined, logLevel: undefined, own: undefined, pending: new Set() })

/** A session that is not started with any target. */
export function newBridgedSession(names: readonly string[], principal: string | undefined): BridgedSession {
  const links = new Map(names.map((name): [string, LinkState] => [name, { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: false }]))
  const targets = new Map(names.map((name) => [name, newTarget()]))
  return { ...newSession({ links, principal, client: undefined }, 0), targets }
}

/** The bridged sessions of one backend in this process. */
export class BridgedSessions {
  readonly #limits: Pick<SessionLimits, 'idleMs' | 'sweepMs' | 'count'>
  readonly #nowMs: () => number
  /** By key, the most recently used last. */
  readonly #live = new Map<string, BridgedSession>()
  readonly #keys = new Keys()
  #timer: NodeJS.Timeout | undefined

  constructor(nowMs: () => number, limits: Pick<SessionLimits, 'idleMs' | 'sweepMs' | 'count'>) {
    this.#nowMs = nowMs
    this.#limits = limits
  }

  get size(): number {
    return this.#live.size
  }

  /** The sessions in memory, the most recently used last. */
  list(): Iterable<BridgedSession> {
    return this.#live.values()
  }

  /** The session for a request, with the targets of these names. */
  open(sharers: Sharers, names: readonly string[]): BridgedSession {
    const key = this.#keys.of(textOf(sharers, names))
    const session = this.#live.get(key) ?? this.#create(sharers, names)
    session.usedAtMs = this.#nowMs()
    this.#live.delete(key)
    this.#live.set(key, session)
    if (this.#live.size > this.#limits.count) this.#dropOldest()
    this.#timer ??= setInterval(() => this.sweep(), this.#limits.sweepMs).unref()
    return session
  }

  #create({ principal, client }: Sharers, names: readonly string[]): BridgedSession {
    const session = newBridgedSession(names, principal)
    recordStart(session.about, { protocolVersion: MODERN_VERSION, clientInfo: client['info'] }, this.#nowMs())
    return session
  }

  /** Drops idle sessions. */
  sweep(): void {
    const nowMs = this.#nowMs()
    for (const [key, session] of this.#live) if (session.open === 0 && session.usedAtMs + this.#limits.idleMs <= nowMs) this.#drop(key, session)
    if (this.#live.size > 0) return
    this.#keys.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const [key, session] of this.#live) this.#drop(key, session)
  }

  #dropOldest(): void {
    for (const [key, session] of this.#live) if (session.open === 0) return this.#drop(key, session)
  }

  #drop(key: string, { connections, targets }: BridgedSession): void {
    this.#live.delete(key)
    for (const { own, pending } of targets.values()) {
      for (const call of pending) call.abort()
      own?.close()
    }
    for (const connection of connections.values()) connection.close()
  }
}
