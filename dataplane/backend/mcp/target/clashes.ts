import type { PolicyState } from '../../../policy/state.ts'

/** Names of one backend that are reported. Servers choose them, so that they may be many. */
const MAX_NAMES = 100
/** Characters of a name in the log. */
const MAX_LENGTH = 128

/** Logs each name that several targets of a backend offer once (mcp.md §4). */
export class NameClashes {
  readonly #backend: string
  readonly #log: PolicyState['log']
  readonly #known = new Set<string>()

  /** `backend`: key of the backend. */
  constructor(backend: string, log: PolicyState['log']) {
    this.#backend = backend
    this.#log = log
  }

  /** `targets` offer a tool or prompt of that name, which is in no list of clients. */
  report(kind: string, name: string, targets: readonly string[]): void {
    const shown = name.slice(0, MAX_LENGTH)
    const key = `${kind} ${shown}`
    if (this.#known.size >= MAX_NAMES || this.#known.has(key)) return
    this.#known.add(key)
    this.#log?.warn('several MCP targets have one name', {
      code: 'PX4038',
      backend: this.#backend,
      kind,
      name: shown,
      targets: [...new Set(targets)].join(','),
    })
  }
}
