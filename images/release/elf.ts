const HEADER_BYTES = 64
const PROGRAM_HEADER_BYTES = 56
const PT_LOAD = 1
const PT_NOTE = 4
const PT_PHDR = 6
const READABLE = 4
/** The largest page of a supported architecture: arm64 has 64 KiB. */
const PAGE = 0x1_0000

const roundUp = (value: number, unit: number): number => Math.ceil(value / unit) * unit

interface Segment {
  readonly type: number
  readonly flags: number
  readonly offset: number
  readonly address: number
  readonly fileBytes: number
  readonly memoryBytes: number
  readonly alignment: number
}

/**
 * Adds a note segment to an ELF64 little-endian program, where the program finds it by `dl_iterate_phdr`. The note is appended to the file with a new table of
 * program headers, because the old one has no free entries. The new segment has the distance between file offset and address of the first one: Linux before 5.18
 * computes the address of the table from it.
 *
 * @throws if the program is not such an ELF file
 */
export function addNote(program: Buffer, name: string, content: Buffer): Buffer {
  if (program.length < HEADER_BYTES || program.readUInt32BE(0) !== 0x7f45_4c46 || program[4] !== 2 || program[5] !== 1)
    throw new Error('the program is not a 64-bit little-endian ELF file')
  const segments = readSegments(program)
  const loaded = segments.filter(({ type }) => type === PT_LOAD)
  const [first] = loaded
  if (first === undefined) throw new Error('the ELF file has no loadable segment')
  const base = first.address - first.offset
  const end = Math.max(...loaded.map(({ address, memoryBytes }) => address + memoryBytes))
  const offset = roundUp(Math.max(program.length, end - base), PAGE)
  const address = base + offset

  const note = encodeNote(name, content)
  const tableBytes = (segments.length + 2) * PROGRAM_HEADER_BYTES
  const bytes = tableBytes + note.length
  const place = (type: number, from: number, length: number, alignment: number): Segment => ({
    type,
    flags: READABLE,
    offset: offset + from,
    address: address + from,
    fileBytes: length,
    memoryBytes: length,
    alignment,
  })
  const table = [
    ...segments.map((segment) => (segment.type === PT_PHDR ? place(PT_PHDR, 0, tableBytes, 8) : segment)),
    place(PT_LOAD, 0, bytes, PAGE),
    place(PT_NOTE, tableBytes, note.length, 4),
  ]
  const result = Buffer.concat([program, Buffer.alloc(offset - program.length), ...table.map(encodeSegment), note])
  result.writeBigUInt64LE(BigInt(offset), 32)
  result.writeUInt16LE(table.length, 56)
  return result
}

function readSegments(program: Buffer): readonly Segment[] {
  const start = Number(program.readBigUInt64LE(32))
  const read = (at: number): number => Number(program.readBigUInt64LE(at))
  return Array.from({ length: program.readUInt16LE(56) }, (_, index) => {
    const at = start + index * PROGRAM_HEADER_BYTES
    return {
      type: program.readUInt32LE(at),
      flags: program.readUInt32LE(at + 4),
      offset: read(at + 8),
      address: read(at + 16),
      fileBytes: read(at + 32),
      memoryBytes: read(at + 40),
      alignment: read(at + 48),
    }
  })
}

function encodeSegment({ type, flags, offset, address, fileBytes, memoryBytes, alignment }: Segment): Buffer {
  const header = Buffer.alloc(PROGRAM_HEADER_BYTES)
  header.writeUInt32LE(type, 0)
  header.writeUInt32LE(flags, 4)
  // The physical address is not used and equals the virtual one.
  for (const [index, value] of [offset, address, address, fileBytes, memoryBytes, alignment].entries()) header.writeBigUInt64LE(BigInt(value), 8 + index * 8)
  return header
}

function encodeNote(name: string, content: Buffer): Buffer {
  const label = Buffer.from(`${name}\0`)
  const sizes = Buffer.alloc(12)
  sizes.writeUInt32LE(label.length, 0)
  sizes.writeUInt32LE(content.length, 4)
  const pad = (part: Buffer): Buffer => Buffer.concat([part, Buffer.alloc(roundUp(part.length, 4) - part.length)])
  return Buffer.concat([sizes, pad(label), pad(content)])
}
