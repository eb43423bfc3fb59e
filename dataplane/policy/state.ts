import type { Destinations } from '../destination/destinations.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import { createRegistry, type Registry } from '../telemetry/metrics/registry.ts'

/** What compiled policies have besides their section of the config. */
export interface PolicyState {
  /** Those with credentials. */
  readonly secrets: ConfigSnapshot['secrets']
  readonly kept: KeptState
  /** Where references of policies lead to: `forPolicy(ref)`. */
  readonly destinations: Pick<Destinations, 'forPolicy'>
  /** Where metrics are counted: `defineMetrics` in telemetry/area.ts. */
  readonly registry: Registry
  /** Milliseconds of a clock that never goes back. */
  readonly monotonicMs: () => number
  /** Milliseconds since 1970: for what tokens say. */
  readonly epochMs: () => number
}

/** Default: no secrets, nothing kept, the machine's clocks, nowhere to call, and metrics that nobody reads. */
export function createPolicyState(own: Partial<Pick<PolicyState, 'monotonicMs' | 'epochMs' | 'destinations' | 'registry'>> = {}): PolicyState {
  return {
    secrets: new Map(),
    kept: new KeptState(),
    destinations: nowhere,
    registry: own.registry ?? createRegistry(),
    monotonicMs: () => performance.now(),
    epochMs: () => Date.now(),
    ...own,
  }
}

const nowhere: PolicyState['destinations'] = {
  forPolicy: () => {
    throw new Error('a policy asked for a destination where none can be had')
  },
}

/** The Secrets that policies read; `before` when none of them is new, so that a renewed certificate composes no chain anew. */
export function takeSecrets(before: PolicyState['secrets'], all: ConfigSnapshot['secrets']): PolicyState['secrets'] {
  const taken = new Map([...all].filter(([, { type }]) => type === 'opaque'))
  return taken.size === before.size && taken.entries().every(([key, secret]) => before.get(key) === secret) ? before : taken
}

interface Entry {
  readonly inputs: readonly unknown[]
  readonly value: unknown
}

/**
 * What outlives a config version and is shared by all rules under one target: rate-limit budgets, key tables, caches of verified
 * credentials. Its key is a section of a Policy message, which has one target and stays the same object as long as it is
 * unchanged; a new version of the policy is a new object and starts anew.
 */
export class KeptState {
  readonly #bySection = new WeakMap<object, Entry>()

  /** What `create` made for the section, made anew when one of `inputs` (such as the Secrets it was made from) is another. */
  get<T>(section: object, inputs: readonly unknown[], create: () => T): T {
    const known = this.#bySection.get(section)
    // One section is always asked for with the same `create`.
    if (known !== undefined && isSame(known.inputs, inputs)) return known.value as T
    const value = create()
    this.#bySection.set(section, { inputs, value })
    return value
  }
}

const isSame = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((value, index) => value === b[index])
