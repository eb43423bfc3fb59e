import { hash } from 'node:crypto'

const ROUNDS = 1000
const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Bytes of the digest that are encoded as 4 characters each, highest first. The 16th byte is encoded as the last 2. */
const groups = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
] as const

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** Apache's variant of MD5-crypt, `$apr1$<salt>$<22 characters>`, as written by htpasswd -m. The salt has 1 to 8 characters. */
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

/** Password, magic and salt, then a byte of an inner digest for each byte of the password, then a byte for each bit of its length. */
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

/** Encodes 6 bits per character, least significant first. */
function sixBits(value: number, count: number): string {
  let text = ''
  for (let index = 0; index < count; index++) text += ALPHABET[(value >> (6 * index)) & 63] ?? ''
  return text
}
