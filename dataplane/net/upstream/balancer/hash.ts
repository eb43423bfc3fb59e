import { randomUUID } from 'node:crypto'
import { clientNetwork } from '#api/cel/index.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { queryOf } from '../../../http/message.ts'
import { defineSlot, type SlotHolder } from '../../../request/exchange/slot.ts'

/** A compiled consistent hash: where the key of a request is, and how uneven the load may become. */
export interface ConsistentHash {
  readonly type: 'Header' | 'Cookie' | 'QueryParam' | 'SourceAddress'
  /** Of the header (lower case), cookie or query parameter. */
  readonly name: string
  /** Lifetime of a cookie that the gateway sets; undefined: the session of the browser. */
  readonly ttlSeconds: number | undefined
  /** Requests in flight that an endpoint may have, as a multiple of the average; undefined: any number. */
  readonly maxLoad: number | undefined
}

/** The parts of an exchange that have keys. Call-outs have no client. */
export interface HashSource extends Partial<SlotHolder> {
  readonly request: { readonly headers: HeaderList; readonly target: string }
  readonly connection: { readonly remoteAddress?: string; readonly tls: unknown }
}

/** A cookie that the response sets, because the request has none. */
const newCookie = defineSlot<{ readonly name: string; readonly value: string; readonly field: string }>('loadBalancer.cookie', { isForked: false })

/** The key of a request as a number; undefined if it has none. A missing cookie is made, once per exchange. */
export function hashKeyOf(hash: ConsistentHash, source: HashSource): number | undefined {
  const text = textOf(hash, source)
  return text === undefined ? undefined : hashText(text)
}

function textOf(hash: ConsistentHash, source: HashSource): string | undefined {
  const { request, connection } = source
  switch (hash.type) {
    case 'Header':
      return request.headers.get(hash.name)
    case 'QueryParam':
      return new URLSearchParams(queryOf(request.target)).get(hash.name) ?? undefined
    case 'SourceAddress':
      // An IPv6 client changes its address within its network.
      return connection.remoteAddress && clientNetwork(connection.remoteAddress)
    case 'Cookie':
      return cookieOf(request.headers, hash.name) ?? makeCookie(hash, source)
  }
}

/** The value of a cookie; undefined if it is missing or empty. */
export function cookieOf(headers: HeaderList, name: string): string | undefined {
  for (const line of headers.getAll('cookie')) {
    for (const pair of line.split(';')) {
      const at = pair.indexOf('=')
      if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || undefined
    }
  }
  return undefined
}

function makeCookie({ name, ttlSeconds }: ConsistentHash, source: HashSource): string | undefined {
  if (!isHolder(source)) return undefined
  const known = newCookie.get(source)
  if (known?.name === name) return known.value
  const value = randomUUID()
  const age = ttlSeconds === undefined ? '' : `; Max-Age=${ttlSeconds}`
  const field = `${name}=${value}; Path=/${age}; HttpOnly; SameSite=Lax${source.connection.tls === undefined ? '' : '; Secure'}`
  newCookie.set(source, { name, value, field })
  return value
}

const isHolder = (source: HashSource): source is HashSource & SlotHolder => 'slots' in source

/** The `set-cookie` of a cookie that was made for the request; undefined: none. */
export const newCookieOf = (exchange: SlotHolder): string | undefined => newCookie.get(exchange)?.field

/** FNV-1a over the code units of a text: the same number in all workers and replicas. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return mix(hash)
}

/** The last step of MurmurHash3: each bit of the input changes half of those of the result. */
function mix(value: number): number {
  let hash = value ^ (value >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * The score of a member for a key (weighted rendezvous hashing, Thaler and Ravishankar): the member with the highest one is picked. Without a
 * member, only its keys move, to all others in proportion to their weights.
 */
export function rendezvousScore(key: number, member: number, weight = 1): number {
  // 52 bits, so that two members rarely have the same score.
  const high = mix(key ^ member)
  const low = mix(high ^ Math.imul(member, 0x9e3779b1))
  const uniform = (high * 0x100000 + (low >>> 12) + 1) / 0x10000000000001
  return -weight / Math.log(uniform)
}
