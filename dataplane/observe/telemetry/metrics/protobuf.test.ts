import { expect, test } from '@jest/globals'
import { createRegistry } from './registry.ts'

/** Fields of a message by number, as written: varints and doubles as numbers, the rest as bytes. */
function decode(bytes: Buffer): Map<number, (number | Buffer)[]> {
  const fields = new Map<number, (number | Buffer)[]>()
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    let value: number | Buffer
    if ((tag & 7) === 0) value = varint()
    else if ((tag & 7) === 1) value = bytes.readDoubleLE((at += 8) - 8)
    else {
      const length = varint()
      value = bytes.subarray(at, (at += length))
    }
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value])
  }
  return fields
}

/** Messages behind their lengths. */
function split(bytes: Buffer): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    let length = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0
      length += (byte & 0x7f) * scale
      if (byte < 0x80) break
    }
    found.push(bytes.subarray(at, (at += length)))
  }
  return found
}

test('families are encoded as delimited Prometheus messages', () => {
  const registry = createRegistry()
  registry.info('proxy_build_info', 'The build.', { tag: '1.0' })
  registry.counter('proxy_things_total', 'Things.', ['kind', 'place']).series('a', 'ä"').value = 7.5
  const histogram = registry.histogram('proxy_seconds', 'Seconds.', [0.5, 1]).series()
  for (const value of [0.1, 0.7, 0.8, 3]) histogram.observe(value)
  registry.gauge('proxy_nobody', 'Without series.', ['x'])

  const text = (value: unknown): string => String(value)
  const message = (value: unknown): ReturnType<typeof decode> => decode(value as Buffer)
  const families = split(Buffer.concat([...registry.exposeProtobuf()])).map(decode)
  expect(families.map((family) => [text(family.get(1)), text(family.get(2)), family.get(3)?.[0]])).toEqual([
    ['proxy_build_info', 'The build.', 1],
    ['proxy_things_total', 'Things.', 0],
    ['proxy_seconds', 'Seconds.', 4],
  ])
  const [info, things, seconds] = families.map((family) => message(family.get(4)?.[0]))
  expect(message(info?.get(2)?.[0]).get(1)).toEqual([1])
  expect(things?.get(1)?.map((label) => [text(message(label).get(1)), text(message(label).get(2))])).toEqual([
    ['kind', 'a'],
    ['place', 'ä"'],
  ])
  expect(message(things?.get(3)?.[0]).get(1)).toEqual([7.5])
  const measured = message(seconds?.get(7)?.[0])
  expect([measured.get(1), measured.get(2)?.[0]]).toEqual([[4], expect.closeTo(4.6)])
  expect(measured.get(3)?.map((bucket) => [message(bucket).get(1)?.[0], message(bucket).get(2)?.[0]])).toEqual([
    [1, 0.5],
    [3, 1],
    [4, Infinity],
  ])
})
