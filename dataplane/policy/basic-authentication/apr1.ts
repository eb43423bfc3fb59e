import { hash } from 'node:crypto'

const ROUNDS = 1000
const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Bytes of the digest that make 4 characters each, highest first; the 16th byte makes the last 2. */
const groups = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
] as const

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** Apache's variant of MD5-crypt: `$apr1$<salt>$<22 characters>`, as htpasswd -m writes it. The salt is 1 to 8 characters. */
export function hashApr1(password: Uint8Array, salt: string): string {
  const saltBytes = Buffer.from(salt, 'latin1')
  let digest = md5(...firstInput(password, saltBytes))
  for (let round = 0; round < ROUNDS; round++) {
    const isOdd = round % 2 === 1
    const parts: Uint8Array[] = [isOdd ? password : digest]
    if (round % 3 !== 0) parts.push(saltBytes)
    if (round % 7 !== 0) parts.push(password)
    parts.push(isOdd ? digest : password)
    digest = md5(...parts)
  }
  return `$apr1$${salt}$${encode(digest)}`
}

/** Password, magic, salt; then one byte of an inner digest for each of the password; then one byte for each bit of its length. */
function firstInput(password: Uint8Array, salt: Uint8Array): Uint8Array[] {
  const inner = md5(password, salt, password)
  const parts: Uint8Array[] = [password, Buffer.from('$apr1$'), salt]
  for (let left = password.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(16, left)))
  const zero = Buffer.alloc(1)
  for (let bits = password.length; bits > 0; bits >>= 1) parts.push(bits % 2 === 1 ? zero : password.subarray(0, 1))
  return parts
}

function encode(digest: Buffer): string {
  const byte = (index: number): number => digest[index] ?? 0
  const groupTexts = groups.map(([high, middle, low]) => sixBits((byte(high) << 16) | (byte(middle) << 8) | byte(low), 4))
  return groupTexts.join('') + sixBits(byte(11), 2)
}

/** Least significant first. */
function sixBits(value: number, count: number): string {
  let text = ''
  for (let index = 0; index < count; index++) text += ALPHABET[(value >> (6 * index)) & 63] ?? ''
  return text
}
