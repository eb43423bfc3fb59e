import { randomUUID } from 'node:crypto'
import { seal, unseal, type SessionKeys } from '../../../runtime/seal.ts'
import type { PeerAddress, PeerMessages, SessionSharing } from './sharing.ts'

/** A call at a target that waits for input of its client. */
interface WaitingCall {
  /** The client sent no input in time. */
  expire(): void
}

/** What a retry must have in common with the call that waits. */
export interface WaitingKey {
  /** Backend, target, method and name of the item. */
  readonly place: string
  /** The user; undefined if the client is anonymous. */
  readonly principal: string | undefined
  /** The credentials of an anonymous client, see `principal.ts`. Undefined: not known, because a replica of the version before sent the retry. */
  readonly credentials: string | undefined
}

export interface WaitingLimits {
  /** Maximum number of calls that wait, of all clients and of one. */
  readonly count: number
  readonly perClient: number
  readonly waitMs: number
}

const defaultWaitingLimits: WaitingLimits = { count: 1000, perClient: 32, waitMs: 10 * 60_000 }

/** The call of a `requestState`. `lost`: it does not wait in this thread. `peer`: the replica that it was made in. */
export type FoundCall<T> =
  | { readonly kind: 'found'; readonly call: T }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'lost'; readonly id: string; readonly peer: PeerAddress | undefined }

export interface WaitingOptions {
  readonly keys: SessionKeys
  readonly sharing?: SessionSharing | undefined
  readonly peers?: Pick<PeerMessages, 'address'> | undefined
  readonly limits?: WaitingLimits | undefined
}

interface Entry<T> {
  readonly call: T
  readonly key: WaitingKey
  readonly client: string
  readonly timer: NodeJS.Timeout
}

/** Authenticated with a `requestState`, so that a session id is not one. */
const CONTEXT = 'requestState'
/** Length of a UUID and an address, sealed, with space for other forms. */
const MAX_STATE_CHARS = 256
const CONTENT = /^([0-9a-f-]{36})(?: (\S+) (\d+))?$/

/** The calls of this process that wait for input of clients without sessions (mcp.md §13.2). Each `requestState` is accepted once. */
export class WaitingCalls<T extends WaitingCall> {
  readonly #keys: SessionKeys
  readonly #sharing: SessionSharing | undefined
  readonly #peers: WaitingOptions['peers']
  readonly #limits: WaitingLimits
  readonly #entries = new Map<string, Entry<T>>()
  readonly #ids = new Map<T, string>()
  readonly #counts = new Map<string, number>()

  constructor({ keys, sharing, peers, limits = defaultWaitingLimits }: WaitingOptions) {
    this.#keys = keys
    this.#sharing = sharing
    this.#peers = peers
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  /** Keeps a call until its retry, and returns the `requestState`; undefined if too many calls wait. `client` is the user or the address of the client. */
  add(call: T, key: WaitingKey, client: string): string | undefined {
    const count = this.#counts.get(client) ?? 0
    if (this.#entries.size >= this.#limits.count || count >= this.#limits.perClient) return undefined
    const id = randomUUID()
    const timer = setTimeout(() => {
      this.#remove(id)
      call.expire()
    }, this.#limits.waitMs).unref()
    this.#ids.set(call, id)
    this.#entries.set(id, { call, key, client, timer })
    this.#counts.set(client, count + 1)
    this.#sharing?.claim(id)
    const { host, port } = this.#peers?.address ?? {}
    return seal(this.#keys, CONTEXT, host === undefined ? id : `${id} ${host} ${port}`)
  }

  /** The call that a `requestState` belongs to. It does not wait any more. */
  take(state: string, key: WaitingKey): FoundCall<T> {
    const content = state.length > MAX_STATE_CHARS ? undefined : unseal(this.#keys, CONTEXT, state)?.toString()
    const [, id, host, port] = CONTENT.exec(content ?? '') ?? []
    if (id === undefined) return { kind: 'invalid' }
    return this.takeById(id, key, host === undefined ? undefined : { host, port: Number(port) })
  }

  /** Like `take`, for the id in a `requestState` that another thread read. */
  takeById(id: string, { place, principal, credentials }: WaitingKey, peer?: PeerAddress): FoundCall<T> {
    const entry = this.#entries.get(id)
    if (entry === undefined) return { kind: 'lost', id, peer }
    const { key } = entry
    const isOther = key.place !== place || key.principal !== principal || (credentials !== undefined && key.credentials !== credentials)
    if (isOther) return { kind: 'invalid' }
    this.#remove(id)
    return { kind: 'found', call: entry.call }
  }

  /** Forgets a call that has ended. */
  delete(call: T): void {
    const id = this.#ids.get(call)
    if (id !== undefined) this.#remove(id)
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    clearTimeout(entry.timer)
    this.#entries.delete(id)
    this.#ids.delete(entry.call)
    const count = (this.#counts.get(entry.client) ?? 1) - 1
    if (count === 0) this.#counts.delete(entry.client)
    else this.#counts.set(entry.client, count)
    this.#sharing?.release(id)
  }
}
