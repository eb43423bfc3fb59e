import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { encodeField, encodeName, encodeValue, HpackDecoder } from './hpack.ts'
import { decodeHuffman } from './huffman.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const decode = (decoder: HpackDecoder, block: Buffer, limit = 1 << 20): string[] => decoder.decode(block, 0, block.length, limit)

describe('HPACK decoder', () => {
  // RFC 7541 Appendix C.3 and C.4: the same three requests, without and with Huffman code.
  const requests = [
    [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com'],
    [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'www.example.com', 'cache-control', 'no-cache'],
    [':method', 'GET', ':scheme', 'https', ':path', '/index.html', ':authority', 'www.example.com', 'custom-key', 'custom-value'],
  ]
  test.each([
    ['literals', ['828684410f7777772e6578616d706c652e636f6d', '828684be58086e6f2d6361636865', '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565']],
    ['Huffman code', ['828684418cf1e3c2e5f23a6ba0ab90f4ff', '828684be5886a8eb10649cbf', '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf']],
  ])('decodes the requests of RFC 7541 with %s', (_, blocks) => {
    const decoder = new HpackDecoder()
    expect(blocks.map((block) => decode(decoder, hex(block)))).toEqual(requests)
  })

  test('evicts the oldest fields of a full table', () => {
    const decoder = new HpackDecoder()
    const field = (name: string, size: number): Buffer => Buffer.from(`\x40${encodeName(name).slice(1)}${encodeValue('v'.repeat(size))}`, 'latin1')
    // Each field has 1000 bytes and more: the fourth evicts the first.
    for (const name of ['a', 'b', 'c', 'd', 'e']) decode(decoder, field(name, 1000))
    const indexed = (index: number): string | undefined => decode(decoder, Buffer.from([0x80 | (61 + index)]))[0]
    expect([indexed(1), indexed(2), indexed(3)]).toEqual(['e', 'd', 'c'])
    expect(() => indexed(4)).toThrow('HPACK index beyond the table')
    // A field larger than the table empties it.
    decode(decoder, field('f', 5000))
    expect(() => indexed(1)).toThrow('HPACK index beyond the table')
  })

  test('a size update shrinks the table', () => {
    const decoder = new HpackDecoder()
    decode(decoder, hex('400161 0162'))
    expect(decode(decoder, hex('be'))).toEqual(['a', 'b'])
    expect(() => decode(decoder, hex('20 be'))).toThrow('HPACK index beyond the table')
  })

  test.each([
    ['index 0', '80', 'HPACK index 0'],
    ['an index that was never inserted', 'be', 'HPACK index beyond the table'],
    ['an integer of too many bytes', 'ffffffffffff01', 'invalid HPACK integer'],
    ['an integer that does not end', 'ff80', 'invalid HPACK integer'],
    ['a string that does not end', '40016105', 'HPACK block ends within a string'],
    ['a field without a value', '400161', 'HPACK block ends within a field'],
    ['a size update after a field', '8220', 'HPACK table size update after a field'],
    ['three size updates', '202020', 'HPACK table size update after a field'],
    ['a size update beyond the limit', '3fe21f', 'HPACK table size beyond the limit'],
    ['padding with a zero bit', '00016181 00', 'invalid Huffman code'],
    ['padding of eight bits', '00016182 1fff', 'invalid Huffman code'],
    ['EOS in a string', '00016184 ffffffff', 'invalid Huffman code'],
  ])('rejects %s', (_, block, message) => {
    expect(() => decode(new HpackDecoder(), hex(block))).toThrow(message)
  })

  test.each([
    ['an upper-case name', 'X-A', 'b'],
    ['an empty name', '', 'b'],
    ['a space in a name', 'x a', 'b'],
    ['a line feed in a value', 'x-a', 'b\nc'],
    ['a NUL in a value', 'x-a', '\0'],
    ['a space before a value', 'x-a', ' b'],
    ['a tab after a value', 'x-a', 'b\t'],
  ])('reports %s as malformed, also when it is taken from the table', (_, name, value) => {
    const decoder = new HpackDecoder()
    decode(decoder, Buffer.from(`\x40${String.fromCharCode(name.length)}${name}${encodeValue(value)}`, 'latin1'))
    expect(decoder.problem).toBe('malformed')
    decode(decoder, hex('82'))
    expect(decoder.problem).toBeUndefined()
    decode(decoder, hex('be'))
    expect(decoder.problem).toBe('malformed')
  })

  test('stops to collect fields beyond the limit, but keeps the table', () => {
    const decoder = new HpackDecoder()
    const large = Buffer.from(`\x40\x01a${encodeValue('v'.repeat(4000))}`, 'latin1')
    const bomb = Buffer.concat([large, Buffer.alloc(16_000, 0xbe), hex('400162 0163')])
    // 16,000 references to a field of 4,000 bytes would be 64 MB.
    expect(decode(decoder, bomb, 16_384)).toHaveLength(8)
    expect(decoder.problem).toBe('too large')
    expect(decode(decoder, hex('be'))).toEqual(['b', 'c'])
  })

  test('decodes what the encoder encodes', () => {
    const name = fc.stringMatching(/^[a-z0-9-]{1,200}$/)
    const value = fc.stringMatching(/^(?:[!-~\xa1-\xff](?:[ -~]{0,300}[!-~])?)?$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 20 }), (fields) => {
        const block = Buffer.from(fields.map((field) => encodeField(...field)).join(''), 'latin1')
        const decoder = new HpackDecoder()
        expect([decode(decoder, block), decoder.problem]).toEqual([fields.flat(), undefined])
      }),
    )
  })
})

describe('Huffman code', () => {
  // Values of RFC 7541 Appendix B and C; server/http2/codec.test.ts decodes every byte that nghttp2 encodes.
  test('decodes short and long codes', () => {
    expect(decodeHuffman(hex('fff8'), 0, 2)).toBeUndefined()
    expect(decodeHuffman(hex('ffc7'), 0, 2)).toBe('\0')
    expect(decodeHuffman(hex('fffffff3'), 0, 4)).toBe('\n')
    expect(decodeHuffman(hex('9d29ad171863c78f0b97c8e9ae82ae43d3'), 0, 17)).toBe('https://www.example.com')
    expect(decodeHuffman(hex('94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007'), 0, 45)).toBe(
      'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
    )
  })

  test('decodes any bytes without an exception', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => void decodeHuffman(Buffer.from(bytes), 0, bytes.length)))
  })
})
