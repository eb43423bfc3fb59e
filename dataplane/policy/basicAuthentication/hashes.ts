import { hash as digest, timingSafeEqual } from 'node:crypto'
import { compareSync } from 'bcryptjs'
import crypt from 'unix-crypt-td-js'
import { hashApr1 } from './apr1.ts'

interface Format {
  readonly pattern: RegExp
  verify(password: string, hash: string): boolean
}

/** What htpasswd writes (traffic.md §8.4). DES is last, being what is left; a raw password fits none, or no password fits it. */
const formats: readonly Format[] = [
  {
    pattern: /^\$apr1\$[^$]{1,8}\$[./0-9A-Za-z]{22}$/,
    verify: (password, hash) => isEqual(hashApr1(Buffer.from(password), hash.split('$')[2] ?? ''), hash),
  },
  // A cost of 16 takes seconds; more would stand in everyone's way.
  { pattern: /^\$2[abxy]\$(?:0[4-9]|1[0-6])\$[./0-9A-Za-z]{53}$/, verify: verifyBcrypt },
  { pattern: /^\{SHA\}[A-Za-z0-9+/]{27}=$/, verify: (password, hash) => isEqual(`{SHA}${digest('sha1', password, 'base64')}`, hash) },
  { pattern: /^[./0-9A-Za-z]{13}$/, verify: (password, hash) => isEqual(crypt([...Buffer.from(password)], hash), hash) },
]

export function isKnownFormat(hash: string): boolean {
  return formats.some(({ pattern }) => pattern.test(hash))
}

/** Takes milliseconds, with bcrypt tens or hundreds of them: not for the thread that carries traffic. */
export function verifyPassword(password: string, hash: string): boolean {
  return formats.find(({ pattern }) => pattern.test(hash))?.verify(password, hash) ?? false
}

function verifyBcrypt(password: string, hash: string): boolean {
  if (!hash.startsWith('$2x$')) return compareSync(password, hash)
  // 2x marks hashes of an implementation that got bytes above 127 wrong; below, all variants agree.
  return /^[\0-\x7f]*$/.test(password) && compareSync(password, hash.replace('$2x$', '$2b$'))
}

function isEqual(a: string, b: string): boolean {
  const [bytesA, bytesB] = [Buffer.from(a), Buffer.from(b)]
  return bytesA.length === bytesB.length && timingSafeEqual(bytesA, bytesB)
}
