import { createHash, randomUUID } from 'node:crypto'
import type { Connection, LinkState } from '../upstream/link.ts'
import { MODERN_VERSION, type SessionClient } from '../message/modern.ts'
import { nothingKnown, type SessionAbout } from './about.ts'
import type { SessionSharing } from './sharing.ts'
import { decodeSession, encodeSession, type SessionContent } from './codec.ts'
import type { SessionKeys } from '../../../runtime/seal.ts'

/** One client's session with a backend, as cached in this process. State that must survive the process is in its id. */
export interface Session {
  /** Undefined until `initialize` is answered, and in Stateless mode. */
  id: string | undefined
  /** The user that started the session; requests of others are rejected (mcp.md §5.1). Undefined if the client was anonymous. */
  readonly principal: string | undefined
  /** Digest of the id, for logs and traces: the id is a credential. Undefined while there is no id. */
  logId: string | undefined
  readonly links: ReadonlyMap<string, LinkState>
  /** What the client said about itself; set if a target without sessions needs it. */
  client: SessionClient | undefined
  /** Live connections to targets that speak SSE or stdio. */
  readonly connections: Map<string, Connection>
  /** Without prefixes: names of the targets that offer a tool or prompt. Cleared when a target reports that its list changed. */
  readonly owners: Map<string, KnownOwners>
  readonly about: SessionAbout
  usedAtMs: number
  /** Number of open requests and streams. */
  open: number
}

/** The targets that offer a name. */
interface KnownOwners {
  readonly targets: readonly string[]
  /** They are looked up again then, on the clock of `usedAtMs`: a target that could not be asked may offer the name too. */
  readonly untilMs: number
}

/** Limits of the cache of sessions. */
export interface SessionLimits {
  readonly idleMs: number
  readonly sweepMs: number
  /** Maximum number of sessions in memory. The oldest idle ones are dropped and resume from their ids. */
  readonly count: number
  /** Maximum number of ended sessions that are remembered. */
  readonly tombstones: number
}

export const defaultLimits: SessionLimits = { idleMs: 30 * 60_000, sweepMs: 30_000, count: 20_000, tombstones: 100_000 }

/** A session without an id. */
export function newSession({ links, principal, client }: SessionContent, nowMs: number): Session {
  return {
    id: undefined,
    principal,
    logId: undefined,
    links,
    client,
    connections: new Map(),
    owners: new Map(),
    about: nothingKnown(),
    usedAtMs: nowMs,
    open: 0,
  }
}

/**
 * The sessions of one backend in this process. Ids are self-contained, so this is a cache, except for live connections and
 * ended sessions.
 */
export class Sessions {
  readonly #backend: string
  readonly #keys: SessionKeys
  readonly #limits: SessionLimits
  readonly #nowMs: () => number
  readonly #sharing: SessionSharing | undefined
  /** By id, the most recently used last. */
  readonly #live = new Map<string, Session>()
  /** Digests of ended ids with their expiry, oldest first. */
  readonly #ended = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(backend: string, keys: SessionKeys, nowMs: () => number, limits: SessionLimits = defaultLimits, sharing?: SessionSharing) {
    this.#sharing = sharing
    this.#backend = backend
    this.#keys = keys
    this.#nowMs = nowMs
    this.#limits = limits
  }

  get size(): number {
    return this.#live.size
  }

  /** The `limit` most recently used sessions in memory, the last one last. Drops those of them that ended in another worker. */
  list(limit: number): Session[] {
    const latest = limit > 0 ? [...this.#live].slice(-limit) : []
    return latest.flatMap(([id, session]) => {
      if (this.#sharing?.hasEnded(id) !== true) return [session]
      this.#drop(id, session)
      return []
    })
  }

  /** Assigns an id to a session and returns it. The id of a session with a live connection is valid in this process only. */
  admit(session: Session): string {
    const { connections, links, principal, client } = session
    const id = encodeSession(this.#keys, this.#backend, { links: connections.size > 0 ? withMark(links) : links, principal, client })
    if (isLocal(session)) this.#sharing?.claim(id)
    this.#add(id, session)
    return id
  }

  /**
   * The session of an id, from memory or restored from the id; undefined if the id is invalid, the session ended, or it belongs to another
   * user than `principal`.
   */
  find(id: string, principal: string | undefined): Session | undefined {
    const nowMs = this.#nowMs()
    if (this.#sharing?.hasEnded(id) === true) {
      const ended = this.#live.get(id)
      if (ended !== undefined) this.#drop(id, ended)
      return undefined
    }
    const known = this.#live.get(id)
    if (known !== undefined) {
      if (known.principal !== principal) return undefined
      known.usedAtMs = nowMs
      this.#live.delete(id)
      this.#live.set(id, known)
      return known
    }
    if (this.#ended.has(digest(id))) return undefined
    const content = decodeSession(this.#keys, this.#backend, id)
    if (content?.principal !== principal) return undefined
    // The process that held the connection is gone.
    if (content === undefined || [...content.links.values()].some(({ sessionId }) => sessionId?.startsWith(LOCAL) === true)) return undefined
    const session = newSession(content, nowMs)
    this.#add(id, session)
    return session
  }

  /** Ends a session. Its id is rejected from now on. */
  end(session: Session): void {
    const { id } = session
    if (id === undefined) return
    this.#drop(id, session)
    this.#sharing?.end(id)
    this.#ended.set(digest(id), this.#nowMs() + this.#limits.idleMs)
    if (this.#ended.size > this.#limits.tombstones) for (const oldest of this.#ended.keys()) return void this.#ended.delete(oldest)
    this.#startSweeping()
  }

  /** Drops idle sessions. They resume from their ids unless they had a live connection. */
  sweep(): void {
    const nowMs = this.#nowMs()
    for (const [id, session] of this.#live) if (session.open === 0 && session.usedAtMs + this.#limits.idleMs <= nowMs) this.#drop(id, session)
    for (const [key, untilMs] of this.#ended) if (untilMs <= nowMs) this.#ended.delete(key)
    if (this.#live.size > 0 || this.#ended.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const [id, session] of this.#live) this.#drop(id, session)
  }

  #add(id: string, session: Session): void {
    session.id = id
    session.logId = logIdOf(id)
    session.usedAtMs = this.#nowMs()
    this.#live.set(id, session)
    if (this.#live.size > this.#limits.count) this.#dropOldest()
    this.#startSweeping()
  }

  #dropOldest(): void {
    for (const [id, session] of this.#live) if (session.open === 0) return this.#drop(id, session)
  }

  #drop(id: string, session: Session): void {
    this.#live.delete(id)
    if (isLocal(session)) this.#sharing?.release(id)
    for (const connection of session.connections.values()) connection.close()
  }

  #startSweeping(): void {
    this.#timer ??= setInterval(() => this.sweep(), this.#limits.sweepMs).unref()
  }
}

/** Whether requests of the session must come to this worker: it holds connections, subscriptions to targets without sessions, or calls that the gateway itself cancels. */
const isLocal = ({ connections, links }: Session): boolean =>
  connections.size > 0 || [...links.values()].some(({ version, calls }) => version === MODERN_VERSION || calls !== undefined)

/** Prefix of a target's session id that stands for a connection of this process. */
const LOCAL = 'connection:'

function withMark(links: Session['links']): Session['links'] {
  return new Map([...links].map(([name, state]) => [name, state.sessionId === undefined ? { ...state, sessionId: `${LOCAL}${randomUUID()}` } : state]))
}

/** A short digest of a session id: tells sessions apart in logs, but does not open them. */
export const logIdOf = (id: string): string => digest(id).slice(0, 16)

const digest = (id: string): string => createHash('sha256').update(id).digest('base64url')
