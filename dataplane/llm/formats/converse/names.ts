import { createHash } from 'node:crypto'
import type { Chat } from '../../common/neutral.ts'

const SAFE = /^[A-Za-z0-9_-]{1,64}$/

/** Converse takes tool names of `[A-Za-z0-9_-]{1,64}` only. Every name gets one safe name, and answers get the client's back. */
export class ToolNames {
  readonly #safe = new Map<string, string>()
  /** Safe names that differ -> the client's. */
  readonly restored = new Map<string, string>()

  constructor(chat: Chat) {
    const names = new Set(chat.tools.map(({ name }) => name))
    for (const { blocks } of chat.turns) for (const block of blocks) if (block.type === 'toolUse') names.add(block.name)
    if (chat.toolChoice?.type === 'tool') names.add(chat.toolChoice.name)
    // Names that are safe already keep their name, whoever else would map to it.
    const taken = new Set<string>()
    for (const name of names) if (SAFE.test(name)) this.#take(name, name, taken)
    for (const name of names) if (!SAFE.test(name)) this.#take(name, sanitise(name, taken), taken)
  }

  #take(name: string, safe: string, taken: Set<string>): void {
    taken.add(safe)
    this.#safe.set(name, safe)
    if (safe !== name) this.restored.set(safe, name)
  }

  safe(name: string): string {
    return this.#safe.get(name) ?? name
  }
}

function sanitise(name: string, taken: ReadonlySet<string>): string {
  const plain = name === '' ? 'tool' : name.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain.length <= 64 && !taken.has(plain)) return plain
  return `${plain.slice(0, 57)}_${createHash('sha256').update(name).digest('hex').slice(0, 6)}`
}
