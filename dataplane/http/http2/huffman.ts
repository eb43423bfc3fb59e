/**
 * Lengths in bits of the codes of all bytes, then of EOS (RFC 7541 Appendix B). The code is canonical: codes of one length are consecutive numbers
 * in the order of their symbols, so the lengths define it.
 */
const lengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
  10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
  8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
  23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26,
  27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
  27, 27, 26, 30,
]

const EOS = 256
const MAX_BITS = 30
/** Codes up to this length are found by one table look-up; they are those of all common characters. */
const FAST_BITS = 9

/** For the next FAST_BITS bits: length << 8 | symbol; 0: the code is longer. */
const fast = new Uint16Array(1 << FAST_BITS)
/** Symbols in the order of their codes, and for each length the first code, the number of codes, and the index of the first symbol. */
const symbols: number[] = []
const firstCode = new Uint32Array(MAX_BITS + 1)
const codeCount = new Uint32Array(MAX_BITS + 1)
const firstIndex = new Uint32Array(MAX_BITS + 1)

function buildTables(): void {
  let code = 0
  for (let bits = 1; bits <= MAX_BITS; bits++) {
    code *= 2
    firstCode[bits] = code
    firstIndex[bits] = symbols.length
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (lengths[symbol] !== bits) continue
      symbols.push(symbol)
      if (bits <= FAST_BITS) fast.fill((bits << 8) | symbol, code << (FAST_BITS - bits), (code + 1) << (FAST_BITS - bits))
      code++
    }
    codeCount[bits] = code - (firstCode[bits] ?? 0)
  }
}
buildTables()

let scratch = Buffer.allocUnsafeSlow(4096)

/** Decodes a Huffman-coded string to Latin-1 text. Returns undefined if the code is invalid: EOS, or padding that is not up to 7 one bits. */
export function decodeHuffman(bytes: Buffer, from: number, to: number): string | undefined {
  // The shortest code has 5 bits.
  const maxLength = Math.ceil(((to - from) * 8) / 5)
  if (maxLength > scratch.length) scratch = Buffer.allocUnsafeSlow(maxLength * 2)
  const out = scratch
  let written = 0
  let pending = 0
  let bits = 0
  let at = from
  for (;;) {
    while (bits < FAST_BITS && at < to) {
      pending = ((pending << 8) | (bytes[at++] ?? 0)) & 0xff_ffff
      bits += 8
    }
    if (bits < FAST_BITS) break
    const entry = fast[(pending >> (bits - FAST_BITS)) & 0x1ff] ?? 0
    if (entry !== 0) {
      out[written++] = entry & 255
      bits -= entry >> 8
      continue
    }
    const start = at * 8 - bits
    const long = decodeLong(bytes, start, to * 8)
    if (long === -1) return isPadding(bytes, start, to * 8) ? out.toString('latin1', 0, written) : undefined
    out[written++] = long & 255
    const next = start + (long >> 8)
    at = (next + 7) >> 3
    bits = at * 8 - next
    pending = (bytes[at - 1] ?? 0) & ((1 << bits) - 1)
  }
  // Fewer bits than the table needs: fill up with ones, like padding.
  while (bits > 0) {
    const entry = fast[((pending << (FAST_BITS - bits)) | ((1 << (FAST_BITS - bits)) - 1)) & 0x1ff] ?? 0
    const used = entry >> 8
    if (entry === 0 || used > bits) break
    out[written++] = entry & 255
    bits -= used
  }
  return isPadding(bytes, to * 8 - bits, to * 8) ? out.toString('latin1', 0, written) : undefined
}

/** Decodes a code that is longer than FAST_BITS. Positions are in bits. Returns length << 8 | symbol; -1: no code, or EOS. */
function decodeLong(bytes: Buffer, from: number, to: number): number {
  let code = 0
  for (let bits = 1; bits <= MAX_BITS && from + bits <= to; bits++) {
    const at = from + bits - 1
    code = code * 2 + (((bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1)
    const offset = code - (firstCode[bits] ?? 0)
    if (offset < 0 || offset >= (codeCount[bits] ?? 0)) continue
    const symbol = symbols[(firstIndex[bits] ?? 0) + offset] ?? EOS
    return symbol === EOS ? -1 : (bits << 8) | symbol
  }
  return -1
}

/** Whether the rest is valid padding: at most 7 bits, all ones (RFC 7541 §5.2). */
function isPadding(bytes: Buffer, from: number, to: number): boolean {
  const bits = to - from
  if (bits > 7) return false
  const mask = (1 << bits) - 1
  return bits === 0 || ((bytes[(to >> 3) - 1] ?? 0) & mask) === mask
}
