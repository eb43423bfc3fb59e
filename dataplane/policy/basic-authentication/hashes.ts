import { hash as digest, timingSafeEqual } from 'node:crypto'
import { compareSync } from 'bcryptjs'
import crypt from 'unix-crypt-td-js'
import { hashFormats } from '#api/credentials/htpasswd.ts'
import { hashApr1 } from './apr1.ts'

interface Format {
  readonly pattern: RegExp
  verify(password: string, hash: string): boolean
}

/** DES is last, being what is left. */
const formats: readonly Format[] = [
  {
    pattern: hashFormats.apr1,
    verify: (password, hash) => isEqual(hashApr1(Buffer.from(password), hash.split('$')[2] ?? ''), hash),
  },
  { pattern: hashFormats.bcrypt, verify: verifyBcrypt },
  { pattern: hashFormats.sha1, verify: (password, hash) => isEqual(`{SHA}${digest('sha1', password, 'base64')}`, hash) },
  { pattern: hashFormats.des, verify: (password, hash) => isEqual(crypt([...Buffer.from(password)], hash), hash) },
]

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
