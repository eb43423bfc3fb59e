interface Range {
  readonly first: bigint
  readonly last: bigint
  readonly country: string
}

const toNumber = (groups: readonly string[], radix: 10 | 16, bits: bigint): bigint =>
  groups.reduce((sum, group) => (sum << bits) | BigInt(Number.parseInt(group, radix)), 0n)

/** An address as a number of 128 bits; IPv4 addresses are those of `::ffff:0:0/96`. */
export function parseAddress(text: string): bigint {
  if (!text.includes(':')) return (0xffffn << 32n) | toNumber(text.split('.'), 10, 8n)
  const [head = '', tail] = text.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return toNumber([...before, ...zeros, ...after], 16, 16n)
}

/** Reads lines `first,last,country`, sorted by address. */
export function parseRanges(text: string): Range[] {
  const ranges: Range[] = []
  for (const line of text.split('\n')) {
    const [first, last, country] = line.trim().split(',')
    if (first === undefined || last === undefined || country === undefined) continue
    ranges.push({ first: parseAddress(first), last: parseAddress(last), country })
  }
  return ranges.sort((one, other) => (one.first < other.first ? -1 : 1))
}

/** The country of an address; undefined: no range contains it. */
export function countryOf(ranges: readonly Range[], address: bigint): string | undefined {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle]?.first ?? 0n) <= address) low = middle + 1
    else high = middle
  }
  const range = ranges[low - 1]
  return range !== undefined && address <= range.last ? range.country : undefined
}
