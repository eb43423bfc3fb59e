import type { ConfigVersionDetail, ConfigVersions, Difference } from '#api/management/config.ts'
import type { ConfigChanges, ConfigSnapshot, ConfigStore } from '../../config/store.ts'

const MAX_VERSIONS = 20
const MAX_REJECTIONS = 20
/** Changes that are kept of a version. */
const MAX_CHANGES = 50
const MAX_DIFFERENCES = 100
/** Endpoints of a Service whose differences are kept. */
const MAX_ENDPOINTS = 200
const MAX_DEPTH = 12

type Change = 'added' | 'changed' | 'removed'

interface KeptChange {
  readonly kind: string
  readonly key: string
  readonly change: Change
  readonly before: object | undefined
  readonly after: object | undefined
}

interface KeptVersion {
  readonly version: number
  readonly appliedAtMs: number
  readonly counts: Readonly<Record<Change, number>>
  readonly changes: readonly KeptChange[]
}

/** A part of the config that was not applied. */
export type Rejection = Omit<ConfigVersions['rejections'][number], 'timeMs' | 'pod'>

const mapNames = {
  bind: 'binds',
  listener: 'listeners',
  route: 'routes',
  tcpRoute: 'tcpRoutes',
  backend: 'backends',
  policy: 'policies',
  secret: 'secrets',
  service: 'services',
} as const

/** Redacts a message of the config; `secrets` are Secret messages whose values must not appear in it. */
export type RedactMessage = (kind: string, message: object, secrets: readonly object[]) => unknown

/** The last versions of the config with their changes, and the last rejections. Messages are immutable: it keeps references to them. */
export class VersionHistory {
  readonly #now: () => number
  #last: ConfigSnapshot
  #versions: KeptVersion[] = []
  #rejections: ConfigVersions['rejections'] = []

  constructor(store: Pick<ConfigStore, 'snapshot' | 'subscribe'>, now: () => number = Date.now) {
    this.#now = now
    this.#last = store.snapshot()
    store.subscribe((snapshot, changes) => this.#add(snapshot, changes))
  }

  reject(rejection: Rejection): void {
    this.#rejections = [{ timeMs: this.#now(), ...rejection, pod: null }, ...this.#rejections].slice(0, MAX_REJECTIONS)
  }

  list(): ConfigVersions {
    return {
      current: this.#last.version,
      versions: this.#versions.map(({ changes, ...version }) => ({
        ...version,
        changes: changes.map(({ kind, key, change }) => ({ kind, key, change })),
        pod: null,
      })),
      rejections: this.#rejections,
    }
  }

  /** A version with the differences of its messages; undefined if it is not kept. */
  find(version: number, redact: RedactMessage): ConfigVersionDetail | undefined {
    const found = this.#versions.find((each) => each.version === version)
    if (found === undefined) return undefined
    const secrets = [
      ...this.#last.secrets.values(),
      ...this.#versions.flatMap(({ changes }) => changes.flatMap(({ kind, before, after }) => (kind === 'secret' ? [before ?? [], after ?? []].flat() : []))),
    ]
    const shown = (kind: string, message: object | undefined): unknown => message && redact(kind, message, secrets)
    return {
      ...found,
      pod: null,
      changes: found.changes.map(({ kind, key, change, before, after }) => ({
        kind,
        key,
        change,
        differences: compare(shown(kind, before), shown(kind, after)),
      })),
    }
  }

  #add(snapshot: ConfigSnapshot, changes: ConfigChanges): void {
    const before = this.#last
    this.#last = snapshot
    const counts = { added: 0, changed: 0, removed: 0 }
    const kept: KeptChange[] = []
    for (const [kind, keys] of changes) {
      const [old, now]: ReadonlyMap<string, object>[] = [before[mapNames[kind]], snapshot[mapNames[kind]]]
      for (const key of keys) {
        const [from, to] = [old?.get(key), now?.get(key)]
        const change: Change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed'
        counts[change]++
        if (kept.length < MAX_CHANGES) kept.push({ kind, key, change, before: keepable(from), after: keepable(to) })
      }
    }
    this.#versions = [{ version: snapshot.version, appliedAtMs: this.#now(), counts, changes: kept }, ...this.#versions].slice(0, MAX_VERSIONS)
  }
}

/** Large Services change often: their endpoints are not kept. */
function keepable(message: object | undefined): object | undefined {
  if (message === undefined || !('ports' in message) || !Array.isArray(message.ports)) return message
  const ports = message.ports as readonly { readonly endpoints?: readonly unknown[] }[]
  const count = ports.reduce((sum, { endpoints = [] }) => sum + endpoints.length, 0)
  return count <= MAX_ENDPOINTS ? message : { ...message, ports: ports.map((port) => ({ ...port, endpoints: `${port.endpoints?.length ?? 0} endpoints` })) }
}

/** Differences of two JSON values, at most `MAX_DIFFERENCES`, as paths of fields. */
export function compare(before: unknown, after: unknown): Difference[] {
  const found: Difference[] = []
  const walk = (path: string, a: unknown, b: unknown, depth: number): void => {
    if (found.length >= MAX_DIFFERENCES || a === b || JSON.stringify(a) === JSON.stringify(b)) return
    if (depth >= MAX_DEPTH || !isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) {
      found.push({ path, before: a ?? null, after: b ?? null })
      return
    }
    const [left, right] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>]
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)]))
      walk(Array.isArray(a) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`, left[name], right[name], depth + 1)
  }
  walk('', before, after, 0)
  return found
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null
