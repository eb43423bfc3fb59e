import type { Entry } from './encode.ts'
import type { Entries } from './snapshot.ts'

/** The parts of a DeltaDiscoveryRequest that change a subscription. */
export interface SubscriptionRequest {
  readonly resourceNamesSubscribe: readonly string[]
  readonly resourceNamesUnsubscribe: readonly string[]
  readonly initialResourceVersions: Readonly<Record<string, string>>
}

export interface Difference {
  readonly resources: readonly Entry[]
  readonly removed: readonly string[]
}

/**
 * Names and versions that one stream subscribed to and holds, of one type (delta xDS). The stream passes in requests and
 * changed names, and takes the difference to send when no response is unacknowledged. One response in flight makes every
 * nonce unambiguous, and a slow client gets all changes of its pause in one response.
 */
export class Subscription {
  /** Nonce of the response that is not acknowledged yet. */
  inFlight: string | undefined = undefined
  #isWildcard = false
  #isAnswered = false
  readonly #names = new Set<string>()
  /** Name -> version that the client has, or was sent. */
  readonly #known = new Map<string, string>()
  /** Names that may differ from what the client holds. */
  readonly #dirty = new Set<string>()
  /** Names that were requested explicitly and must be in the response, if only as removed. */
  readonly #requested = new Set<string>()

  /** Reads the first request of the type on a stream: it alone may carry the versions that a reconnecting client holds. */
  static open(request: SubscriptionRequest, entries: Entries | undefined): Subscription {
    const subscription = new Subscription()
    for (const [name, version] of Object.entries(request.initialResourceVersions)) subscription.#known.set(name, version)
    // xDS protocol, "wildcard subscription": an empty first list requests everything, as the name `*` does.
    if (request.resourceNamesSubscribe.length === 0) subscription.#subscribeAll(entries)
    subscription.#change(request, entries)
    for (const name of subscription.#known.keys()) subscription.#dirty.add(name)
    return subscription
  }

  /** Reads a later request. A name that is subscribed again is sent again, whatever the client holds. */
  change(request: SubscriptionRequest, entries: Entries | undefined): void {
    for (const name of request.resourceNamesSubscribe) this.#known.delete(name)
    this.#change(request, entries)
  }

  /** Notes names that changed in the snapshot. */
  touch(names: readonly string[]): void {
    for (const name of names) if (this.#isWanted(name)) this.#dirty.add(name)
  }

  /**
   * Returns the difference to send and records it as known, or undefined if there is none. The first request always gets a
   * response, if only an empty one, by which the client knows that it has everything. While the Gateway is unknown
   * (`entries` undefined) a client that holds nothing waits, so that it does not become ready on an empty config.
   * @param isRemoving false: names to remove wait for the next call
   */
  take(entries: Entries | undefined, isRemoving = true): Difference | undefined {
    if (this.inFlight !== undefined) return undefined
    if (entries === undefined && !this.#isAnswered && this.#known.size === 0) return undefined
    // Most changes concern few of the streams. Clearing a set allocates memory, even if it is empty.
    if (this.#isAnswered && this.#dirty.size === 0 && this.#requested.size === 0) return undefined
    const resources: Entry[] = []
    const removed: string[] = []
    const kept: string[] = []
    for (const name of this.#dirty) {
      const entry = entries?.get(name)
      if (entry !== undefined && this.#isWanted(name)) {
        if (this.#known.get(name) === entry.version) continue
        this.#known.set(name, entry.version)
        resources.push(entry)
      } else if (!isRemoving) kept.push(name)
      else if (this.#known.delete(name) || this.#requested.has(name)) removed.push(name)
    }
    this.#dirty.clear()
    for (const name of kept) this.#dirty.add(name)
    if (isRemoving) this.#requested.clear()
    if (this.#isAnswered && resources.length === 0 && removed.length === 0) return undefined
    this.#isAnswered = true
    return { resources, removed }
  }

  #isWanted(name: string): boolean {
    return this.#isWildcard || this.#names.has(name)
  }

  #change(request: SubscriptionRequest, entries: Entries | undefined): void {
    for (const name of request.resourceNamesSubscribe) {
      if (name === '*') this.#subscribeAll(entries)
      else {
        this.#names.add(name)
        this.#dirty.add(name)
        this.#requested.add(name)
      }
    }
    for (const name of request.resourceNamesUnsubscribe) {
      if (name === '*') this.#isWildcard = false
      else {
        this.#names.delete(name)
        this.#requested.delete(name)
      }
    }
    // Unsubscribed names are dropped on both sides without a message.
    if (request.resourceNamesUnsubscribe.length > 0) for (const name of this.#known.keys()) if (!this.#isWanted(name)) this.#known.delete(name)
  }

  #subscribeAll(entries: Entries | undefined): void {
    this.#isWildcard = true
    for (const name of entries?.keys() ?? []) this.#dirty.add(name)
  }
}
