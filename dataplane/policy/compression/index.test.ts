import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { brotliDecompressSync, constants, gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Compression } from '#gen/config/types.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { preferredCoding } from '../../http/coding.ts'
import { EncodedBody, type ContentCoding } from '../../http/encoded.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { ManualBody } from '../../testing/body.ts'
import { testExchange } from '../../testing/exchange.ts'
import { compileCompression } from './index.ts'

const page = Buffer.from('<p>to be or not to be</p>'.repeat(100))
const decoders = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync }

/** Decodes what has arrived of a stream. */
const decodePart: Readonly<Record<ContentCoding, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }),
  br: (bytes) => brotliDecompressSync(bytes, { finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (bytes) => zstdDecompressSync(bytes, { finishFlush: constants.ZSTD_e_flush }),
}

interface Case {
  readonly policy?: Compression
  readonly request?: Partial<RequestHead>
  /** Null: no header. */
  readonly accept?: string | null
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body
}

function respond({ policy = {}, request = {}, accept = 'gzip', status = 200, headers = {}, body = new BufferBody(page) }: Case = {}): ResponseHead {
  const exchange = testExchange(request, accept === null ? {} : { 'accept-encoding': accept })
  const all = { 'content-type': 'text/html; charset=utf-8', ...(body.length !== undefined && { 'content-length': String(body.length) }), ...headers }
  const response: ResponseHead = { status, headers: HeaderList.from(Object.entries(all)), body, upgraded: undefined }
  exchange.response = response
  compileCompression(policy).sides?.response?.(exchange, undefined)
  return response
}

const codingOf = (one: Case): string | undefined => respond(one).headers.get('content-encoding')

describe('compression', () => {
  test.each(Object.entries(decoders))('sends %s that decodes to the same bytes', async (coding, decode) => {
    const { headers, body } = respond({ accept: coding, headers: { etag: '"v1"', 'content-md5': 'x', 'accept-ranges': 'bytes' } })
    expect(Object.fromEntries(headers)).toEqual({
      'content-type': 'text/html; charset=utf-8',
      etag: 'W/"v1"',
      vary: 'Accept-Encoding',
      'content-encoding': coding,
    })
    const { bytes } = await readBody(body, 1_000_000)
    expect(bytes.length).toBeLessThan(page.length / 5)
    expect(decode(bytes)).toEqual(page)
  })

  test.each<[string, Case]>([
    ['HEAD', { request: { method: 'HEAD' } }],
    ...[204, 205, 206, 304].map((status): [string, Case] => [`status ${status}`, { status }]),
    ['a content coding', { headers: { 'content-encoding': 'br' } }],
    ['a range', { headers: { 'content-range': 'bytes 0-1/2' } }],
    ['no-transform', { headers: { 'cache-control': 'public, No-Transform' } }],
    ['gRPC, though it is listed', { policy: { contentTypes: ['application/*', 'application/grpc'] }, headers: { 'content-type': 'application/grpc+proto' } }],
    ['another type', { headers: { 'content-type': 'image/png' } }],
    ['no type', { headers: { 'content-type': '' } }],
    ['an event stream', { policy: { contentTypes: ['text/*'] }, headers: { 'content-type': 'text/event-stream' } }],
    ['a short body', { body: new BufferBody('x'.repeat(1023)) }],
  ])('leaves a response as it is: %s', (_, one) => {
    const { headers } = respond(one)
    expect([headers.get('content-encoding'), headers.has('vary')]).toEqual([one.headers?.['content-encoding'], false])
  })

  test('varies for clients that accept no coding, too', () => {
    for (const accept of [null, 'identity', 'gzip;q=0', 'deflate']) {
      const { headers, body } = respond({ accept })
      expect([headers.get('content-encoding'), headers.get('vary'), headers.get('content-length'), body?.length]).toEqual([
        undefined,
        'Accept-Encoding',
        String(page.length),
        page.length,
      ])
    }
    expect(respond({ headers: { vary: 'Origin, accept-encoding' } }).headers.getAll('vary')).toEqual(['Origin, accept-encoding'])
  })

  test.each<[string, string | undefined]>([
    ['gzip, br', 'br'],
    ['gzip;q=1.0, br;q=0.9', 'gzip'],
    ['*', 'zstd'],
    ['*;q=0.5, gzip', 'gzip'],
    ['zstd;q=0, *', 'br'],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['identity;q=0, *;q=0', undefined],
    ['X-GZIP', 'gzip'],
    ['gzip;q=2, br;q=x, zstd;q=', undefined],
    [' , gzip ; Q=0.001 ,', 'gzip'],
    ['', undefined],
  ])('selects the coding of "%s"', (accept, expected) => expect(codingOf({ accept })).toBe(expected))

  test('prefers the order of the policy among codings of equal weight, and selects none that it does not offer', () => {
    expect(codingOf({ policy: { algorithms: ['gzip', 'br'] }, accept: 'br, zstd, gzip' })).toBe('gzip')
    expect(codingOf({ policy: { algorithms: ['br'] }, accept: 'gzip, zstd' })).toBeUndefined()
    const item = fc
      .tuple(fc.constantFrom('gzip', 'br', 'zstd', 'deflate', '*', 'identity', 'x'), fc.constantFrom('', ';q=0', ';q=0.3', ';q=1', ';q=9'))
      .map((pair) => pair.join(''))
    fc.assert(
      fc.property(fc.array(item, { maxLength: 6 }), (items) => {
        const coding = preferredCoding(items.join(','), ['br', 'gzip'])
        expect(['br', 'gzip', undefined]).toContain(coding)
        if (coding !== undefined)
          expect(items.some((one) => (one.startsWith(coding) || one.startsWith('*')) && !one.endsWith(';q=0') && !one.endsWith(';q=9'))).toBe(true)
      }),
    )
  })

  test('compresses event streams that are listed', () => {
    const one = { policy: { contentTypes: ['text/event-stream'] }, headers: { 'content-type': 'text/event-stream' }, body: new ManualBody() }
    expect(codingOf(one)).toBe('gzip')
  })
})

describe('a body that is compressed as it streams', () => {
  test.each(Object.keys(decoders) as ContentCoding[])('is flushed after each part: %s', async (coding) => {
    const source = new ManualBody()
    const body = new EncodedBody(source, coding)
    const parts: Buffer[] = []
    let onPart = (): void => undefined
    body.start({
      onData(chunk) {
        parts.push(chunk)
        onPart()
      },
      onEnd() {},
      onError(error) {
        throw error
      },
    })
    const decode = (): string => {
      try {
        return decodePart[coding](Buffer.concat(parts)).toString()
      } catch {
        return ''
      }
    }
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      const arrived = new Promise<void>((resolve) => (onPart = () => decode().endsWith(text) && resolve()))
      source.push(text)
      await arrived
    }
    expect(decode()).toBe('data: 1\n\ndata: 2\n\n')
    body.cancel()
  })

  test('keeps its trailers, and its bytes whatever the pauses', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 8 }),
        fc.constantFrom(...(Object.keys(decoders) as ContentCoding[])),
        async (chunks, coding) => {
          const trailers = new HeaderList(['x-trailer', '1'])
          const body = new EncodedBody(
            new BufferBody(
              chunks.map((chunk) => Buffer.from(chunk)),
              trailers,
            ),
            coding,
          )
          body.pause()
          setImmediate(() => body.resume())
          const read = await readBody(body, 1_000_000)
          expect(decoders[coding](read.bytes)).toEqual(Buffer.concat(chunks))
          expect(read.trailers).toBe(trailers)
        },
      ),
      { numRuns: 30 },
    )
  })

  test('fails with its source, and stops it when the client disconnects', async () => {
    const [broken, abandoned] = [new ManualBody(), new ManualBody()]
    const reading = readBody(new EncodedBody(broken, 'gzip'), 1000)
    broken.fail(new Error('reset'))
    await expect(reading).rejects.toThrow('reset')
    const body = new EncodedBody(abandoned, 'br')
    body.start({ onData() {}, onEnd() {}, onError() {} })
    body.cancel()
    expect(abandoned.asked).toEqual(['start', 'cancel'])
  })
})
