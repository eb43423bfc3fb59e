import { constants, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

/** A key pair of a test's identity provider. */
export interface SigningKey {
  readonly kid: string
  readonly privateKey: KeyObject
  /** Public key as an entry of a key set (RFC 7517). */
  readonly jwk: Readonly<Record<string, unknown>>
}

const makers = {
  RSA: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  Ed25519: () => generateKeyPairSync('ed25519'),
} as const

export function makeSigningKey(kid: string, type: keyof typeof makers = 'P-256', members: Readonly<Record<string, unknown>> = {}): SigningKey {
  const { publicKey, privateKey } = makers[type]()
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, ...members } }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token in compact form (RFC 7515), signed with node:crypto only, so that it is independent of the library under test. */
export function makeToken(key: SigningKey, claims: object, header: Readonly<Record<string, unknown>> & { readonly alg?: string } = {}): string {
  const { alg = 'ES256' } = header
  const text = `${encode({ alg, kid: key.kid, ...header })}.${encode(claims)}`
  return `${text}.${signText(alg, text, key.privateKey).toString('base64url')}`
}

function signText(alg: string, text: string, key: KeyObject): Buffer {
  if (alg === 'EdDSA') return sign(null, Buffer.from(text), key)
  const digest = `sha${alg.slice(2)}`
  if (alg.startsWith('ES')) return sign(digest, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
  const padding = alg.startsWith('PS') ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : {}
  return sign(digest, Buffer.from(text), { key, ...padding })
}
