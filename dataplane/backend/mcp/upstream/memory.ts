import type { ParamHeader } from '../message/param-headers.ts'
import type { Target } from '../target/target.ts'

/** Counts the changes of named things. The workers of a data plane share the counts. */
interface ChangeCounts {
  bumpChanges(name: string): void
  changesOf(name: string): number
}

/** A list of a server, as received. */
interface CachedList {
  /** The result as JSON, without `ttlMs`. */
  readonly text: string
  readonly freshUntilMs: number
  /** Changes of the list before it was requested. */
  readonly changes: number
}

/** Limits of the tools and lists of one backend. */
const MAX_TOOLS = 10_000
const MAX_LISTS = 1000
const MAX_LIST_CHARS = 16 * 1024 * 1024
/** Servers choose how long their lists hold. */
const MAX_TTL_MS = 24 * 60 * 60_000

/** What a gateway remembers of the servers of revision 2026-07-28 behind one backend, for all clients of this process. */
export class ServerMemory {
  readonly #nowMs: () => number
  /** Changes that this thread saw, and those of all. */
  readonly #changes = new LocalChanges()
  readonly #shared: ChangeCounts | undefined
  readonly #params = new Map<string, readonly ParamHeader[]>()
  /** The oldest first. */
  readonly #lists = new Map<string, CachedList>()
  #chars = 0

  constructor(nowMs: () => number, shared?: ChangeCounts) {
    this.#nowMs = nowMs
    this.#shared = shared
  }

  /** The headers of the arguments of a tool; undefined if calls of it were not rejected without. */
  paramsOf(target: Target, tool: string): readonly ParamHeader[] | undefined {
    return this.#params.get(`${keyOf(target)} ${tool}`)
  }

  setParams(target: Target, tool: string, headers: readonly ParamHeader[]): void {
    if (this.#params.size >= MAX_TOOLS) this.#params.clear()
    this.#params.set(`${keyOf(target)} ${tool}`, headers)
  }

  /** A cached list, with what is left of its time; undefined: none, or not fresh. `key` is that of `listKey`. */
  list(target: Target, method: string, key: string): string | undefined {
    const found = this.#lists.get(key)
    if (found === undefined) return undefined
    const leftMs = Math.floor(found.freshUntilMs - this.#nowMs())
    if (leftMs > 0 && found.changes === this.changesOf(target, method)) return `{"ttlMs":${leftMs},${found.text.slice(1)}`
    this.#remove(key, found)
    return undefined
  }

  setList(key: string, text: string, ttlMs: number, changes: number): void {
    const old = this.#lists.get(key)
    if (old !== undefined) this.#remove(key, old)
    this.#lists.set(key, { text, freshUntilMs: this.#nowMs() + Math.min(ttlMs, MAX_TTL_MS), changes })
    this.#chars += text.length
    for (const [oldest, entry] of this.#lists) {
      if (this.#lists.size <= MAX_LISTS && this.#chars <= MAX_LIST_CHARS) return
      this.#remove(oldest, entry)
    }
  }

  /** Number of changes of a list that the server reported. */
  changesOf(target: Target, method: string): number {
    const name = `${keyOf(target)} ${kindOf(method)}`
    return this.#changes.changesOf(name) + (this.#shared?.changesOf(name) ?? 0)
  }

  /** A server reported that its lists of a kind (`tools`, `prompts`, `resources`) changed. */
  listChanged(target: Target, kind: string): void {
    const name = `${keyOf(target)} ${kind}`
    this.#changes.bumpChanges(name)
    this.#shared?.bumpChanges(name)
  }

  #remove(key: string, { text }: CachedList): void {
    this.#lists.delete(key)
    this.#chars -= text.length
  }
}

/** `tools`, `prompts` or `resources`, of the method of a list. */
const kindOf = (method: string): string => method.slice(0, method.indexOf('/'))

/** Another server under the same name is another target. */
const keyOf = ({ name, path, destination }: Target): string => JSON.stringify([name, destination.name, path])

/** The key of a list: what its result depends on. */
export const listKey = (target: Target, method: string, params: object, capabilities: unknown): string =>
  JSON.stringify([keyOf(target), method, params, capabilities])

class LocalChanges implements ChangeCounts {
  readonly #counts = new Map<string, number>()

  bumpChanges(name: string): void {
    if (this.#counts.size >= MAX_LISTS) this.#counts.clear()
    this.#counts.set(name, this.changesOf(name) + 1)
  }

  changesOf(name: string): number {
    return this.#counts.get(name) ?? 0
  }
}
