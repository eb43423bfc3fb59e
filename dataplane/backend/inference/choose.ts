import { rendezvousScore } from '../../net/upstream/balancer/hash.ts'
import type { ModelServerBalancing } from '../../net/upstream/balancer/strategy.ts'
import { PrefixIndex } from './prefixes.ts'
import type { Prompt } from './prompt.ts'
import { adapterBit, type ModelServer } from './server.ts'

type Weights = ModelServerBalancing['weights']
const equalWeights: Weights = { prefix: 1, queue: 1, running: 1, kvCache: 1, adapter: 1 }

/** What a token that is not cached costs, in tokens of other prompts: a copy of a prefix also displaces others from the cache. */
const UNCACHED = 4
/** What a request in flight costs: each step of the server becomes longer, by about the time to read so many tokens over its duration. */
const RUNNING = 128
/** What a request costs that waits for a place, unless its tokens are known. */
const WAITING = 1024
/** What a full cache costs, from this share on: new requests wait, or displace others. */
const FULL = 16_384
const FULL_FROM = 0.85
/** What loading an adapter costs. */
const ADAPTER = 8192
/** What a server costs that does not respond: more than any other, which is the last choice. */
const AVOIDED = 1e9
/** Differences that do not matter: among such servers the key of the prompt decides, so that workers and replicas agree without messages. */
const EQUAL = 512
const EQUAL_SHARE = 2

const REUSE_ALPHA = 0.02

/** Why a server was picked. */
export interface Pick {
  readonly server: ModelServer
  /** The next best, for a retry. */
  readonly second: ModelServer | undefined
  /** Tokens of the prompt that it has. */
  readonly matched: number
  /** In tokens. */
  readonly cost: number
  /** Number of servers that cost about the same. */
  readonly equal: number
}

/**
 * Picks servers for prompts: the one that begins to respond first, by the tokens that it has to read until then. The picked server is expected to have the
 * prompt from then on.
 */
export class ServerChooser {
  readonly prefixes = new PrefixIndex()
  weights: Weights
  #costs = new Float64Array(0)
  #turn = 0
  /** Share of recent prompts that their servers had: how much it is worth that gateways agree on the server of a new prompt. */
  #reuse = 0.5

  constructor(weights: Weights = equalWeights) {
    this.weights = weights
  }

  /** `servers`: those that may be picked. Undefined if there is none. */
  pick(prompt: Prompt, servers: readonly ModelServer[], nowMs = 0): Pick | undefined {
    const turn = ++this.#turn
    if (this.#costs.length < servers.length) this.#costs = new Float64Array(servers.length)
    const common = this.prefixes.match(prompt, turn)
    const key = (prompt.hashes[Math.min(prompt.hashes.length - 1, Math.max(common, prompt.keyAt))] ?? turn) >>> 0
    const bit = prompt.model === undefined ? 0 : adapterBit(prompt.model)
    const costs = this.#costs
    let least = Infinity
    let uncached = prompt.tokens
    for (let at = 0; at < servers.length; at++) {
      const server = servers[at]
      if (server === undefined) continue
      const cost = this.#costOf(server, prompt, turn, bit) + (server.isAvoided(nowMs) ? AVOIDED : 0)
      costs[at] = cost
      if (cost >= least) continue
      least = cost
      uncached = server.seenBy === turn ? prompt.tokens - server.matched : prompt.tokens
    }
    const limit = least + EQUAL + EQUAL_SHARE * this.#reuse * uncached
    let best: ModelServer | undefined
    let second: ModelServer | undefined
    let highest = -1
    let leastOther = Infinity
    let equal = 0
    for (let at = 0; at < servers.length; at++) {
      const server = servers[at]
      const cost = costs[at] ?? Infinity
      if (server === undefined || cost > limit) continue
      equal++
      const score = rendezvousScore(key, server.endpoint.hash)
      if (score <= highest) continue
      highest = score
      best = server
    }
    if (best === undefined) return undefined
    for (let at = 0; at < servers.length; at++) {
      const cost = costs[at] ?? Infinity
      if (cost >= leastOther || servers[at] === best) continue
      leastOther = cost
      second = servers[at]
    }
    const matched = best.seenBy === turn ? best.matched : 0
    this.prefixes.record(prompt, best, matched)
    if (prompt.tokens > 0) this.#reuse += REUSE_ALPHA * (matched / prompt.tokens - this.#reuse)
    return { server: best, second, matched, cost: Math.round(costs[servers.indexOf(best)] ?? 0), equal }
  }

  #costOf(server: ModelServer, { tokens }: Prompt, turn: number, bit: number): number {
    const { weights } = this
    const isSeen = server.seenBy === turn
    const uncached = tokens - (isSeen ? server.matched : 0)
    const { kvUse, others, endpoint } = server
    const waiting = Math.min(server.waiting, others)
    const cost =
      weights.prefix * UNCACHED * uncached +
      weights.queue * (server.tokens + WAITING * waiting) +
      weights.running * RUNNING * (server.requests + others) +
      (kvUse > FULL_FROM ? (weights.kvCache * FULL * (kvUse - FULL_FROM)) / (1 - FULL_FROM) : 0) +
      (server.hasAdapters && !isSeen && !server.hasAdapter(bit) ? weights.adapter * ADAPTER : 0)
    // A server that fails fast has no requests in flight, and must not attract all of them.
    return (cost + RUNNING) / Math.max(0.01, endpoint.health ** 2)
  }
}
