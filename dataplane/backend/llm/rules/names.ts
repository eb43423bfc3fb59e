import { createHash } from 'node:crypto'
import type { NameRule } from './types.ts'

/** Length of the digest that makes a shortened name unique. */
const DIGEST = 6

/**
 * Maps names of tools to those that a target accepts, and back for responses. Replacements depend on the tools of the request and on earlier names of the
 * conversation only, so that a turn has the same names in each later request.
 */
export class ToolNames {
  readonly #rule: NameRule
  readonly #safe = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** Accepted name -> the client's name, if they differ. */
  readonly restored = new Map<string, string>()

  /** `tools` are the names of the tools; `others` those of calls, in the order of the conversation, and of the choice. */
  constructor(tools: Iterable<string>, others: Iterable<string>, rule: NameRule) {
    this.#rule = rule
    const offered = new Set(tools)
    // Names that are accepted already keep their name, so assign them first.
    for (const name of offered) if (rule.pattern.test(name)) this.#assign(name)
    for (const name of offered) if (!this.#safe.has(name)) this.#assign(name)
    for (const name of others) if (!this.#safe.has(name)) this.#assign(name)
  }

  /** The accepted name for a client's name. */
  safe(name: string): string {
    return this.#safe.get(name) ?? name
  }

  #assign(name: string): void {
    const safe = this.#rule.pattern.test(name) && !this.#taken.has(name) ? name : this.#sanitise(name)
    this.#taken.add(safe)
    this.#safe.set(name, safe)
    if (safe !== name) this.restored.set(safe, name)
  }

  #sanitise(name: string): string {
    const { pattern, forbidden, max } = this.#rule
    const plain = name === '' ? 'tool' : name.replace(forbidden, '_')
    const started = pattern.test(plain.slice(0, 1)) ? plain : `t_${plain}`
    if (started.length <= max && !this.#taken.has(started)) return started
    return `${started.slice(0, max - DIGEST - 1)}_${createHash('sha256').update(name).digest('hex').slice(0, DIGEST)}`
  }
}
