import { hash as digest, timingSafeEqual } from 'node:crypto'
import { compareSync } from 'bcryptjs'
import crypt from 'unix-crypt-td-js'
import { hashFormats } from '#api/credentials/htpasswd.ts'
import { hashApr1 } from './apr1.ts'

interface Format {
  readonly pattern: RegExp
  /** Rough milliseconds of a check, to compare hashes. */
  costOf(hash: string): number
  verify(password: string, hash: string): boolean
}

/** DES has no prefix, so it is last. */
const formats: readonly Format[] = [
  {
    pattern: hashFormats.apr1,
    costOf: () => 3,
    verify: (password, hash) => isEqual(hashApr1(Buffer.from(password), hash.split('$')[2] ?? ''), hash),
  },
  { pattern: hashFormats.bcrypt, costOf: (hash) => 0.25 * 2 ** Number(hash.split('$')[2]), verify: verifyBcrypt },
  { pattern: hashFormats.sha1, costOf: () => 0.01, verify: (password, hash) => isEqual(`{SHA}${digest('sha1', password, 'base64')}`, hash) },
  { pattern: hashFormats.des, costOf: () => 0.5, verify: (password, hash) => isEqual(crypt([...Buffer.from(password)], hash), hash) },
]

/** Whether a password matches a hash. Takes milliseconds, bcrypt up to hundreds: do not call it in the main thread. */
export function verifyPassword(password: string, hash: string): boolean {
  return formats.find(({ pattern }) => pattern.test(hash))?.verify(password, hash) ?? false
}

/** How long a check against a hash takes, in rough milliseconds. */
export function costOfHash(hash: string): number {
  return formats.find(({ pattern }) => pattern.test(hash))?.costOf(hash) ?? 0
}

function verifyBcrypt(password: string, hash: string): boolean {
  if (!hash.startsWith('$2x$')) return compareSync(password, hash)
  // $2x$ marks an implementation with a defect for bytes above 127. Below, all variants agree.
  return /^[\0-\x7f]*$/.test(password) && compareSync(password, hash.replace('$2x$', '$2b$'))
}

function isEqual(a: string, b: string): boolean {
  const [bytesA, bytesB] = [Buffer.from(a), Buffer.from(b)]
  return bytesA.length === bytesB.length && timingSafeEqual(bytesA, bytesB)
}
