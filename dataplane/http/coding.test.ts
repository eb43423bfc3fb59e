import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { BufferBody, readBody } from './body.ts'
import { BodyHold, BodyBudget } from './budget.ts'
import { CodingError, contentCoding, decodeBody, decodeBytes, decodePrefix, describeNewBody, encodeBytes } from './coding.ts'
import { HeaderList } from './headers.ts'

const encoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  'x-gzip': (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  'deflate, raw': (bytes) => deflateRawSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  zstd: (bytes) => zstdCompressSync(bytes),
}
/** `deflate, raw` is a name of this test only. */
const fieldOf = (names: readonly string[]): string => names.map((name) => name.split(',')[0]).join(', ')
const encode = (bytes: Buffer, names: readonly string[]): Buffer => names.reduce((coded, name) => encoders[name]?.(coded) ?? coded, bytes)

const anyCodings = fc.array(fc.constantFrom(...Object.keys(encoders), 'identity'), { maxLength: 4 })

describe('content codings', () => {
  test('any content under any stack of codings is decoded to itself, in one piece and in pieces of any size', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), anyCodings, fc.integer({ min: 1, max: 700 }), async (content, names, size) => {
        const bytes = Buffer.from(content)
        const coded = encode(bytes, names)
        const field = fieldOf(names)
        expect(await decodeBytes(coded, field, 5000)).toEqual(bytes)
        const pieces = Array.from({ length: Math.ceil(coded.length / size) }, (_, i) => coded.subarray(i * size, (i + 1) * size))
        expect((await readBody(decodeBody(new BufferBody(pieces), field), Infinity)).bytes).toEqual(bytes)
      }),
      { numRuns: 60 },
    )
  })

  test('what is encoded for a client is decoded to itself', async () => {
    for (const field of ['gzip', 'deflate', 'br', 'zstd', 'gzip, br'])
      expect((await decodeBytes(await encodeBytes(Buffer.from('text'), field), field, 10)).toString()).toBe('text')
  })

  test('a prefix of coded content gives a prefix of the content, never other bytes', async () => {
    const content = Buffer.from(Array.from({ length: 3000 }, (_, i) => `${i * 7919}`).join())
    for (const [name, encodeOne] of Object.entries(encoders)) {
      const coded = encodeOne(content)
      const { bytes, isComplete } = await decodePrefix(coded.subarray(0, coded.length / 2), fieldOf([name]), { limitBytes: 1e6, isWhole: false })
      expect([name, isComplete, bytes.equals(content.subarray(0, bytes.length))]).toEqual([name, false, true])
    }
  })

  test.each(Object.keys(encoders))('%s: content beyond the limit is not decoded', async (name) => {
    const coded = encoders[name]?.(Buffer.alloc(100_000, 'abcdefg')) ?? Buffer.alloc(0)
    const { bytes, isComplete } = await decodePrefix(coded, fieldOf([name]), { limitBytes: 1000 })
    expect([bytes.length, isComplete]).toEqual([1000, false])
    await expect(decodeBytes(coded, fieldOf([name]), 1000)).rejects.toThrow('body exceeds 1000 bytes')
  })

  test.each(Object.keys(encoders))('%s: cut and corrupt content is an error, and so are bytes after its end', async (name) => {
    const coded = encoders[name]?.(Buffer.from('content of some length')) ?? Buffer.alloc(0)
    const field = fieldOf([name])
    const broken = [coded.subarray(0, -3), Buffer.concat([coded, Buffer.from('more')]), Buffer.from('no such content')]
    for (const bytes of broken) await expect(decodeBytes(bytes, field, 1e6)).rejects.toBeInstanceOf(CodingError)
  })

  test('content that expands more than deflate can is an error, although its length is within the limit', async () => {
    for (const name of ['br', 'zstd']) {
      const coded = encoders[name]?.(Buffer.alloc(8 * 1024 * 1024)) ?? Buffer.alloc(0)
      await expect(decodeBytes(coded, name, 16 * 1024 * 1024)).rejects.toThrow('expands more than 1100 times')
    }
    expect(await decodeBytes(gzipSync(Buffer.alloc(8 * 1024 * 1024)), 'gzip', 16 * 1024 * 1024)).toHaveLength(8 * 1024 * 1024)
  })

  test.each(['compress', 'gzip, lzma', 'gzip;q=1', '__proto__', 'gzip, gzip, gzip, gzip, gzip'])('%s is not supported', async (field) => {
    await expect(decodeBytes(Buffer.from('x'), field, 10)).rejects.toMatchObject({ isUnknown: true })
  })

  test('decoded bytes count for the budget of buffered bodies', async () => {
    const budget = new BodyBudget()
    budget.limitBytes = 1000
    const hold = new BodyHold(() => new Error('too many bytes'), budget)
    await expect(decodePrefix(gzipSync(Buffer.alloc(100_000)), 'gzip', { limitBytes: 1e6, hold })).rejects.toThrow('too many bytes')
  })

  test('content without bytes needs no decoding', async () => {
    expect(await decodeBytes(Buffer.alloc(0), 'gzip, br', 10)).toHaveLength(0)
  })

  test('fields on several lines are one list', () => {
    expect(contentCoding(new HeaderList(['content-encoding', 'gzip', 'content-encoding', 'br']))).toBe('gzip, br')
    expect(contentCoding(new HeaderList(['content-encoding', 'identity']))).toBeUndefined()
  })

  test('a replaced body loses what described the old one, and its entity tag becomes weak', () => {
    const fields = ['content-encoding', 'gzip', 'content-length', '3', 'content-digest', 'sha-256=:x:', 'etag', '"a"', 'content-type', 'text/plain']
    const headers = new HeaderList([...fields])
    describeNewBody(headers)
    expect(headers.raw).toEqual(['etag', 'W/"a"', 'content-type', 'text/plain'])
    const own = new HeaderList([...fields])
    describeNewBody(own, new Set(['content-encoding', 'etag']))
    expect(own.raw).toEqual(['content-encoding', 'gzip', 'etag', '"a"', 'content-type', 'text/plain'])
  })
})
