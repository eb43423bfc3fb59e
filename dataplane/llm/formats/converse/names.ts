import { createHash } from 'node:crypto'
import type { Chat } from '../../common/neutral.ts'

const SAFE = /^[A-Za-z0-9_-]{1,64}$/

/** Maps tool names to names that Converse accepts, `[A-Za-z0-9_-]{1,64}`, and back for responses. */
export class ToolNames {
  readonly #safe = new Map<string, string>()
  /** Accepted name -> the client's name, if they differ. */
  readonly restored = new Map<string, string>()

  constructor(chat: Chat) {
    const names = new Set(chat.tools.map(({ name }) => name))
    for (const { blocks } of chat.turns) for (const block of blocks) if (block.type === 'toolUse') names.add(block.name)
    if (chat.toolChoice?.type === 'tool') names.add(chat.toolChoice.name)
    // Names that are accepted already keep their name, so assign them first.
    const taken = new Set<string>()
    for (const name of names) if (SAFE.test(name)) this.#assign(name, name, taken)
    for (const name of names) if (!SAFE.test(name)) this.#assign(name, sanitise(name, taken), taken)
  }

  #assign(name: string, safe: string, taken: Set<string>): void {
    taken.add(safe)
    this.#safe.set(name, safe)
    if (safe !== name) this.restored.set(safe, name)
  }

  /** The accepted name for a client's name. */
  safe(name: string): string {
    return this.#safe.get(name) ?? name
  }
}

function sanitise(name: string, taken: ReadonlySet<string>): string {
  const plain = name === '' ? 'tool' : name.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain.length <= 64 && !taken.has(plain)) return plain
  return `${plain.slice(0, 57)}_${createHash('sha256').update(name).digest('hex').slice(0, 6)}`
}
