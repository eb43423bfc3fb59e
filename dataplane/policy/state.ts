import type { Destinations } from '../net/destination/destinations.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import type { KeyValueCall, KeyValueResult } from '../runtime/key-value.ts'
import type { SharedCells } from '../runtime/shared-cells.ts'
import type { SharedRing } from '../runtime/shared-ring.ts'
import type { SharedHealthTable } from '../net/upstream/balancer/shared-health.ts'
import type { SessionKeys } from '../runtime/seal.ts'
import type { Quotas } from '../runtime/quotas.ts'
import type { Shares } from '../runtime/shares.ts'
import type { Logger } from '../observe/telemetry/log.ts'
import { createRegistry, type Registry } from '../observe/telemetry/metrics/registry.ts'

/** Inputs of compiled policies besides their section of the config. */
export interface PolicyState {
  /** Secrets with credentials. */
  readonly secrets: ConfigSnapshot['secrets']
  readonly kept: KeptState
  /** Resolves references of policies, `forPolicy(ref)`, and hosts that plugins call. */
  readonly destinations: Pick<Destinations, 'forPolicy'> & Partial<Pick<Destinations, 'forHost'>>
  /** Registry of metrics; see `defineMetrics` in telemetry/metrics/area.ts. */
  readonly registry: Registry
  /** Log of policies; undefined: none. */
  readonly log?: Logger | undefined
  /** Milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
  /** Milliseconds since 1970, for the validity of tokens. */
  readonly epochMs: () => number
  /** State of all workers of the data plane; undefined: this thread handles all traffic. */
  readonly shared?: SharedState | undefined
  /** Memory of the counters of budgets if they outlive the process and this thread handles all traffic; with workers that of `shared`. */
  readonly budgetCells?: SharedCells | undefined
  /** Gets shares of budgets that hold for all replicas; undefined: this is the only one. */
  readonly shares?: Shares | undefined
  /** Gets assignments from rate limit quota services; undefined: budgets are those of this replica. */
  readonly quotas?: Quotas | undefined
  /** Keys of login cookies; none: nobody can log in. */
  readonly loginKeys: SessionKeys
  /** Whether plugins with isolation InProcess may run. Default: no. */
  readonly permitsInProcess?: boolean
}

/** State that all workers of a data plane share. */
export interface SharedState {
  readonly cells: SharedCells
  /** Budgets of rate limits by key; the least recently used one is evicted if there are too many. */
  readonly keyedCells: SharedCells
  /** Counters of budgets; the least recently used one is evicted if there are too many. */
  readonly budgetCells: SharedCells
  readonly health: SharedHealthTable
  /** Responses of LLM providers that are stored; undefined: each worker stores its own. */
  readonly responses?: SharedRing
  /** Values of plugins, by plugin; see KeyValueStore. Undefined for `call`: the values of the plugin are dropped. */
  keyValue(plugin: string, call: KeyValueCall | undefined): Promise<KeyValueResult>
  /** Name of a section of a config message, the same in all workers. A new version of the message has new names. Undefined for sections without state. */
  nameOf(section: object): string | undefined
}

/** Default: no secrets, no keys, no kept state, the system's clocks, no destinations and an unread registry. */
export function createPolicyState(
  own: Partial<
    Pick<
      PolicyState,
      'monotonicMs' | 'epochMs' | 'destinations' | 'registry' | 'shared' | 'budgetCells' | 'shares' | 'quotas' | 'log' | 'permitsInProcess' | 'loginKeys'
    >
  > = {},
): PolicyState {
  return {
    secrets: new Map(),
    kept: new KeptState(),
    destinations: nowhere,
    registry: own.registry ?? createRegistry(),
    monotonicMs: () => performance.now(),
    epochMs: () => Date.now(),
    loginKeys: [],
    ...own,
  }
}

const nowhere: PolicyState['destinations'] = {
  forPolicy: () => {
    throw new Error('destinations are not available to policies here')
  },
}

/** The Secrets that policies read. Returns `before` if none of them changed, so that a renewed certificate does not recompose chains. */
export function selectSecrets(before: PolicyState['secrets'], all: ConfigSnapshot['secrets']): PolicyState['secrets'] {
  const taken = new Map([...all].filter(([, { type }]) => type === 'opaque'))
  return taken.size === before.size && taken.entries().every(([key, secret]) => before.get(key) === secret) ? before : taken
}

interface Entry {
  readonly inputs: readonly unknown[]
  readonly value: unknown
}

/**
 * State that is kept over config versions and shared by all rules of one target: rate-limit budgets, key tables, caches of verified
 * credentials. The key is a section of a Policy message, which has one target and is the same object while it is unchanged. A new
 * version of the policy is a new object with new state.
 */
export class KeptState {
  readonly #bySection = new WeakMap<object, Entry>()

  /** The value of `create` for the section. Created again if one of `inputs`, such as the Secrets it depends on, is another object. */
  get<T>(section: object, inputs: readonly unknown[], create: () => T): T {
    const known = this.#bySection.get(section)
    // All calls for one section pass the same `create`.
    if (known !== undefined && isSame(known.inputs, inputs)) return known.value as T
    const value = create()
    this.#bySection.set(section, { inputs, value })
    return value
  }
}

const isSame = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((value, index) => value === b[index])
