import type { Prompt } from './prompt.ts'
import type { ModelServer } from './server.ts'

/** Servers that are known to have a block. What more of them have is balanced by load alone. */
const MAX_HOLDERS = 32
/** Blocks that are remembered, for one server and for a pool: about 20 MB if all are in use. */
const SERVER_BLOCKS = 4096
const MAX_BLOCKS = 131_072
const MIN_BLOCKS = 16_384

/** So many holders, or a quarter of the servers if that is more, are many. */
const MIN_MANY = 4

/** A server that was sent a block, and the reading of its clock at that time. */
interface Holder {
  server: ModelServer
  readAt: number
}

/**
 * Which servers were sent which prefixes. A server is expected to have what it was sent since it last read as many other tokens as its cache holds: the rule
 * of a cache that evicts the least recently used. Blocks that were not sent for the longest time are forgotten.
 */
export class PrefixIndex {
  readonly #blocks = new Map<number, Holder[]>()
  #limit = MIN_BLOCKS
  #many = MIN_MANY

  get size(): number {
    return this.#blocks.size
  }

  /** Sets the bound by the number of servers. */
  resize(servers: number): void {
    this.#many = Math.max(MIN_MANY, Math.min(MAX_HOLDERS, servers / 4))
    this.#limit = Math.min(MAX_BLOCKS, Math.max(MIN_BLOCKS, servers * SERVER_BLOCKS))
  }

  /**
   * Sets `matched` of the servers that have most of the prompt, at most 32, and `seenBy` of those to `turn`. Returns the number of blocks at its start that
   * many servers have.
   */
  match({ hashes, tokensAt }: Prompt, turn: number): number {
    const found: Holder[][] = []
    let common = 0
    for (const hash of hashes) {
      const block = this.#blocks.get(hash)
      if (block === undefined) break
      found.push(block)
      if (block.length >= this.#many) common = found.length
    }
    let count = 0
    // The deepest block first: a server that has it has those before.
    for (const [at, block] of [...found.entries()].reverse()) {
      if (count >= MAX_HOLDERS) break
      const tokens = tokensAt[at] ?? 0
      for (const { server, readAt } of block) {
        if (!server.isEligible || server.seenBy === turn || server.tokensRead - readAt > server.cacheTokens) continue
        server.seenBy = turn
        server.matched = tokens
        count++
      }
    }
    return common
  }

  /** Remembers that `server` is sent the prompt, of which it has `matched` tokens. */
  record({ hashes, tokens }: Prompt, server: ModelServer, matched: number): void {
    server.tokensRead += tokens - matched
    for (const hash of hashes) {
      let block = this.#blocks.get(hash)
      if (block === undefined) block = []
      else this.#blocks.delete(hash)
      this.#blocks.set(hash, block)
      hold(block, server)
    }
    for (const hash of this.#blocks.keys()) {
      if (this.#blocks.size <= this.#limit) break
      this.#blocks.delete(hash)
    }
  }
}

/** Adds a server to the holders of a block, in place of the one whose copy is the oldest if there are too many. */
function hold(block: Holder[], server: ModelServer): void {
  const readAt = server.tokensRead
  let oldest: Holder | undefined
  for (const holder of block) {
    if (holder.server === server) return void (holder.readAt = readAt)
    if (oldest === undefined || ageOf(holder) > ageOf(oldest)) oldest = holder
  }
  if (oldest === undefined || (block.length < MAX_HOLDERS && ageOf(oldest) !== Infinity)) block.push({ server, readAt })
  else Object.assign(oldest, { server, readAt })
}

const ageOf = ({ server, readAt }: Holder): number => (server.isGone ? Infinity : server.tokensRead - readAt)
