import { createHash } from 'node:crypto'
import type { Chat } from '../common/neutral.ts'
import type { NameRule } from './types.ts'

/** Length of the digest that makes a shortened name unique. */
const DIGEST = 6

/** Maps names of tools to those that a target accepts, and back for responses. */
export class ToolNames {
  readonly #rule: NameRule
  readonly #safe = new Map<string, string>()
  /** Accepted name -> the client's name, if they differ. */
  readonly restored = new Map<string, string>()

  constructor(chat: Chat, rule: NameRule) {
    this.#rule = rule
    const names = new Set(chat.tools.map(({ name }) => name))
    for (const { blocks } of chat.turns) for (const block of blocks) if (block.type === 'toolUse') names.add(block.name)
    if (chat.toolChoice?.type === 'tool') names.add(chat.toolChoice.name)
    // Names that are accepted already keep their name, so assign them first.
    const taken = new Set<string>()
    for (const name of names) if (rule.pattern.test(name)) this.#assign(name, name, taken)
    for (const name of names) if (!rule.pattern.test(name)) this.#assign(name, this.#sanitise(name, taken), taken)
  }

  /** The accepted name for a client's name. */
  safe(name: string): string {
    return this.#safe.get(name) ?? name
  }

  #assign(name: string, safe: string, taken: Set<string>): void {
    taken.add(safe)
    this.#safe.set(name, safe)
    if (safe !== name) this.restored.set(safe, name)
  }

  #sanitise(name: string, taken: ReadonlySet<string>): string {
    const { pattern, forbidden, max } = this.#rule
    const plain = name === '' ? 'tool' : name.replace(forbidden, '_')
    const started = pattern.test(plain.slice(0, 1)) ? plain : `t_${plain}`
    if (started.length <= max && !taken.has(started)) return started
    return `${started.slice(0, max - DIGEST - 1)}_${createHash('sha256').update(name).digest('hex').slice(0, DIGEST)}`
  }
}
