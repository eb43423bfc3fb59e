/**
 * Number of records that a collector rejected from an accepted batch: `partial_success.rejected_…` of an Export…ServiceResponse, fields 1 of fields 1.
 * Decoded by hand, so that no protobuf library is loaded for it.
 */
export function readRejected(answer: Uint8Array): number {
  const partial = readField1(answer, 2)
  return typeof partial === 'object' ? Number(readField1(partial, 0) ?? 0) : 0
}

/** Value of field 1 with the given wire type; undefined if it is missing or the message is invalid. */
function readField1(message: Uint8Array, wireType: 0 | 2): Uint8Array | number | undefined {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++] ?? 0
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
    return Number.NaN
  }
  while (at < message.length) {
    const tag = varint()
    const value = varint()
    // These messages contain varints and bytes only.
    if (Number.isNaN(value) || (tag & 7) === 1 || (tag & 7) === 5) return undefined
    if ((tag & 7) !== 2) {
      if (tag >> 3 === 1 && wireType === 0) return value
      continue
    }
    if (tag >> 3 === 1 && wireType === 2) return message.subarray(at, at + value)
    at += value
  }
  return undefined
}
