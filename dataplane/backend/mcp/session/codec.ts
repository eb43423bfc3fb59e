import { randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { isSessionId } from '../message/headers.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject } from '../message/json.ts'
import type { SessionClient } from '../message/modern.ts'
import { INTERNAL_ERROR } from '../message/rpc.ts'
import type { LinkState } from '../upstream/link.ts'
import { seal, unseal, type SessionKeys } from '../../../runtime/seal.ts'

/** Content of a session id. Any replica can resume the session with it. */
export interface SessionContent {
  readonly links: ReadonlyMap<string, LinkState>
  /** The user that the session belongs to, see `principal.ts`; undefined if the client was anonymous. */
  readonly principal: string | undefined
  /** What the client said about itself; stored for targets without sessions only. */
  readonly client?: SessionClient | undefined
}

const NONCE_BYTES = 12
/** Servers limit the head of a request to 16 KiB (traffic.md §10), ours included; other headers have a quarter of it. */
const MAX_ID_CHARS = 12 * 1024
/** Ids of versions before could be longer. */
const MAX_READ_CHARS = 64 * 1024
/** First byte of compressed content. Content of versions before is JSON, which begins with another. */
const COMPRESSED = 1
const MAX_CONTENT_BYTES = 256 * 1024

/**
 * The id of a session of `backend`. The backend is authenticated with it, so the id is invalid on another backend (mcp.md §5.1). Throws a McpFailure if the
 * id is longer than clients can send: a session without the ids of some targets would not work.
 */
export function encodeSession(keys: SessionKeys, backend: string, { links, principal, client }: SessionContent): string {
  const states = [...links].map(([name, { sessionId, endpoint, offers, version, isMissing }]) =>
    withoutEnd([name, sessionId, endpoint, offers, isMissing ? 1 : undefined, version]),
  )
  // Ids of two sessions must differ, also if a target has no session ids. Encryption has a nonce.
  const nonce = keys.length === 0 ? randomBytes(NONCE_BYTES).toString('base64url') : undefined
  const fields = withoutEnd([states, principal, storable(client), nonce, keys.length === 0 ? backend : undefined])
  const id = seal(keys, backend, Buffer.concat([Buffer.of(COMPRESSED), deflateRawSync(JSON.stringify(fields))]))
  if (id.length <= MAX_ID_CHARS) return id
  const longest = [...links].toSorted(([, a], [, b]) => (b.sessionId?.length ?? 0) - (a.sessionId?.length ?? 0))[0]
  const message = `the session id has ${id.length} characters, at most ${MAX_ID_CHARS} are sent`
  const detail = `${message}: the longest session id of a target is that of ${longest?.[0]}, ${longest?.[1].sessionId?.length ?? 0} characters`
  throw McpFailure.rpc(INTERNAL_ERROR, `${message}; the session ids of the servers are too long`, { status: 500, detail })
}

/** Absent members at the end need no place. */
const withoutEnd = (fields: readonly unknown[]): readonly unknown[] => fields.slice(0, fields.findLastIndex((field) => field !== undefined) + 1)

/** Undefined if the id is not that of a session of `backend`. */
export function decodeSession(keys: SessionKeys, backend: string, id: string): SessionContent | undefined {
  if (id.length > MAX_READ_CHARS) return undefined
  const bytes = unseal(keys, backend, id)
  if (bytes === undefined) return undefined
  try {
    const content = bytes[0] === COMPRESSED ? expand(inflateRawSync(bytes.subarray(1), { maxOutputLength: MAX_CONTENT_BYTES })) : JSON.parse(bytes.toString())
    if (!isObject(content) || content['t'] !== 'mcp' || !Array.isArray(content['s'])) return undefined
    if (keys.length === 0 && content['k'] !== backend) return undefined
    const links = new Map(content['s'].map((state: StoredLink) => [String(state.t), toState(state)]))
    const client = readClient(content['c'])
    return { links, principal: typeof content['u'] === 'string' ? content['u'] : undefined, ...(client && { client }) }
  } catch {
    return undefined
  }
}

/** Arrays as the objects of versions before. Absent members that others follow are null. Throws if the text is no such array. */
function expand(text: Buffer): unknown {
  const [states, u, c, , k] = JSON.parse(text.toString()) as unknown[]
  const s = (states as unknown[][]).map(([name, sessionId, endpoint, offers, isMissing, version]) => ({
    t: name,
    s: sessionId,
    b: endpoint,
    o: offers,
    x: isMissing ?? undefined,
    v: version,
  }))
  return { t: 'mcp', s, u, c, k }
}

interface StoredLink {
  readonly t: unknown
  readonly s?: unknown
  readonly b?: unknown
  readonly o?: unknown
  readonly x?: unknown
  readonly v?: unknown
}

/** A protocol revision, which becomes a header. */
const VERSION = /^\d{4}-\d{2}-\d{2}$/

const storable = (client: SessionClient | undefined): object | undefined => client && { c: client.capabilities, i: client.info }

function readClient(stored: unknown): SessionClient | undefined {
  if (!isObject(stored) || !isObject(stored['c'])) return undefined
  return { capabilities: stored['c'], info: isObject(stored['i']) ? stored['i'] : undefined }
}

/** Throws if the target's session id is not a header value: without keys, ids can be forged. */
function toState({ s, b, o, x, v }: StoredLink): LinkState {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  if (typeof s === 'string' && !isSessionId(s)) throw new Error('the session id of a target is invalid')
  return { sessionId: text(s), endpoint: text(b), offers: text(o), isMissing: x !== undefined, ...(typeof v === 'string' && VERSION.test(v) && { version: v }) }
}
