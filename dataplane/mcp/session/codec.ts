import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto'
import { isObject } from '../message/json.ts'
import type { LinkState } from '../upstream/link.ts'

/** Keys that session ids are encrypted with: the first writes, all read (rotation). None: ids are readable, for development only. */
export type SessionKeys = readonly Buffer[]

/** What a session id holds: with it any replica can go on. */
export interface SessionContent {
  readonly links: ReadonlyMap<string, LinkState>
}

/** Wrong value of the environment: names the variable and the fix. */
class SessionKeyError extends Error {}

export function readSessionKeys(env: Readonly<Record<string, string | undefined>>): SessionKeys {
  return ['SESSION_KEY', 'SESSION_KEY_PREVIOUS'].flatMap((name) => {
    const text = env[name]?.trim() ?? ''
    if (text === '') return []
    if (!/^[0-9a-fA-F]{64}$/.test(text)) throw new SessionKeyError(`${name} is not 64 hexadecimal digits: make one with openssl rand -hex 32`)
    return [Buffer.from(text, 'hex')]
  })
}

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Longer ones are not ours: 32 targets with session ids of 1024 characters do not get there. */
const MAX_ID_CHARS = 64 * 1024

/** The id of a session of `backend`, which is authenticated with it: an id is worth nothing on another backend (mcp.md §5.1). */
export function encodeSession(keys: SessionKeys, backend: string, links: ReadonlyMap<string, LinkState>): string {
  const states = [...links].map(([name, { sessionId, endpoint, offers, isMissing }]) => ({
    t: name,
    s: sessionId,
    b: endpoint,
    o: offers,
    x: isMissing ? 1 : undefined,
  }))
  // Two sessions must not have the same id, also where an upstream tells them not apart.
  const isUnique = states.every(({ s }) => s !== undefined)
  const content = JSON.stringify({ t: 'mcp', s: states, r: isUnique ? undefined : randomUUID(), k: keys.length === 0 ? backend : undefined })
  const [key] = keys
  if (key === undefined) return Buffer.from(content).toString('base64url')
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  cipher.setAAD(Buffer.from(backend))
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]).toString('base64')
}

/** Undefined: it is not the id of a session of that backend. */
export function decodeSession(keys: SessionKeys, backend: string, id: string): SessionContent | undefined {
  if (id.length > MAX_ID_CHARS) return undefined
  const text = keys.length === 0 ? decodePlain(id) : decrypt(keys, backend, id)
  if (text === undefined) return undefined
  try {
    const content = JSON.parse(text) as unknown
    if (!isObject(content) || content['t'] !== 'mcp' || !Array.isArray(content['s'])) return undefined
    if (keys.length === 0 && content['k'] !== backend) return undefined
    return { links: new Map(content['s'].map((state: StoredLink) => [String(state.t), toState(state)])) }
  } catch {
    return undefined
  }
}

interface StoredLink {
  readonly t: unknown
  readonly s?: unknown
  readonly b?: unknown
  readonly o?: unknown
  readonly x?: unknown
}

function toState({ s, b, o, x }: StoredLink): LinkState {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  return { sessionId: text(s), endpoint: text(b), offers: text(o), isMissing: x !== undefined }
}

/** One session has one id: other ways to write the same bytes are refused, or a deleted id could come back. */
function decodePlain(id: string): string | undefined {
  const bytes = Buffer.from(id, 'base64url')
  return bytes.toString('base64url') === id ? bytes.toString() : undefined
}

function decrypt(keys: SessionKeys, backend: string, id: string): string | undefined {
  const bytes = Buffer.from(id, 'base64')
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== id) return undefined
  for (const key of keys) {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(backend))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString()
    } catch {
      // The next key may be the one.
    }
  }
  return undefined
}
