import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { setBounded } from '../../runtime/bounded.ts'
import { seal, unseal, type SessionKeys } from '../../runtime/seal.ts'

/** What the cookies of a logged-in browser hold. Times are in seconds since 1970. */
export interface Session {
  readonly claims: Readonly<Record<string, unknown>>
  /** When the user logs in again, whatever happens. */
  readonly endsAt: number
  /** When the tokens expire: the session is renewed, or ends. */
  readonly renewsAt: number
  readonly refreshToken?: string | undefined
  readonly accessToken?: string | undefined
  readonly idToken?: string | undefined
}

/** What the browser keeps while the user is at the provider. */
export interface Login {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
  /** Path and query to return to. */
  readonly target: string
  readonly endsAt: number
}

const MAX_CONTENT_BYTES = 64 * 1024
const MAX_KNOWN = 1000

/** Encrypts and decrypts the cookies of one policy: its id is authenticated with them, and so is their purpose. */
export class Sealer {
  readonly #keys: SessionKeys
  readonly #id: string
  /** Sessions by their text: requests of one browser have the same. */
  readonly #known = new Map<string, Session>()

  constructor(keys: SessionKeys, id: string) {
    this.#keys = keys
    this.#id = id
  }

  sealSession(session: Session): string {
    return seal(this.#keys, `login session ${this.#id}`, deflateRawSync(JSON.stringify(session)))
  }

  session(text: string): Session | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const session = read(unseal(this.#keys, `login session ${this.#id}`, text)) as Session | undefined
    if (session === undefined) return undefined
    setBounded(this.#known, text, session, MAX_KNOWN)
    return session
  }

  sealLogin(login: Login): string {
    return seal(this.#keys, `login ${this.#id}`, deflateRawSync(JSON.stringify(login)))
  }

  login(text: string): Login | undefined {
    return read(unseal(this.#keys, `login ${this.#id}`, text)) as Login | undefined
  }
}

/** The JSON of a cookie; undefined if it is none. Only the gateway writes what decrypts. */
function read(bytes: Buffer | undefined): unknown {
  if (bytes === undefined) return undefined
  try {
    return JSON.parse(inflateRawSync(bytes, { maxOutputLength: MAX_CONTENT_BYTES }).toString())
  } catch {
    return undefined
  }
}

/** Tells cookies of several policies on one host apart. */
export const policyId = (issuer: string, clientId: string): string =>
  createHash('sha256')
    .update(JSON.stringify([issuer, clientId]))
    .digest('hex')
    .slice(0, 10)
