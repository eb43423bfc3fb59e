import { describe, expect, test } from '@jest/globals'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { BufferBody, readBody } from '../../http/body.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { testExchange } from '../../testing/exchange.ts'
import { compileDecompression } from './index.ts'

const text = Buffer.from('to be or not to be '.repeat(1000))
const encoders = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync, deflate: deflateSync }
const policy = compileDecompression({})

describe('decompression', () => {
  test.each(Object.entries(encoders))('removes %s, and what described the coded bytes', async (coding, encode) => {
    const body = encode(text)
    const exchange = testExchange(
      { method: 'POST', body: new BufferBody(body) },
      { 'content-encoding': coding, 'content-length': String(body.length), 'content-digest': 'x', 'content-type': 'text/plain' },
    )
    policy.sides?.request?.(exchange)
    expect(exchange.request.headers.raw).toEqual(['content-type', 'text/plain'])
    expect((await readBody(exchange.request.body, 1_000_000)).bytes).toEqual(text)
  })

  test('removes several codings, and leaves other bodies as they are', async () => {
    const twice = testExchange({ body: new BufferBody(brotliCompressSync(gzipSync(text))) }, { 'content-encoding': 'gzip, br' })
    policy.sides?.request?.(twice)
    expect((await readBody(twice.request.body, 1_000_000)).bytes).toEqual(text)
    const plain = testExchange({ body: new BufferBody('x') }, { 'content-encoding': 'identity', 'content-length': '1' })
    const { body } = plain.request
    policy.sides?.request?.(plain)
    expect(plain.request.body).toBe(body)
  })

  test('rejects an unknown coding before the upstream is called, and names those that are known', async () => {
    const { response, isForwarded } = await mountPolicies([policy]).request('http://a/', { method: 'POST', headers: { 'content-encoding': 'gzip' } })
    expect([response.status, isForwarded]).toEqual([200, true])
    const exchange = testExchange({ body: new BufferBody('x') }, { 'content-encoding': 'gzip, lzw' })
    expect(() => policy.sides?.request?.(exchange)).toThrow(
      expect.objectContaining({ code: 'CONTENT_CODING', headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } }),
    )
  })

  test('a response that came before the excess stays', () => {
    const exchange = testExchange({ body: new BufferBody(gzipSync(text)) }, { 'content-encoding': 'gzip' })
    const sides = compileDecompression({ maxSize: 10 }).sides
    const left = sides?.request?.(exchange)
    exchange.response = { status: 200, headers: exchange.request.headers, body: undefined, upgraded: undefined }
    expect(() => sides?.response?.(exchange, left)).not.toThrow()
  })
})
