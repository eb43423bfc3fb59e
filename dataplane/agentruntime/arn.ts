import { readRuntimeArn, RUNTIME_SERVICE } from '#api/arn.ts'

/** Where a runtime is hosted, from its ARN. */
export interface RuntimePlace {
  readonly host: string
  readonly region: string
  /** Path and query of its invocations. */
  readonly target: string
}

/** Domains of partitions that are not the public one. */
const domains: Readonly<Record<string, string>> = { 'aws-cn': 'amazonaws.com.cn', 'aws-iso': 'c2s.ic.gov', 'aws-iso-b': 'sc2s.sgov.gov' }

/** Where `agentRuntimeRef` is called (mcp.md §11). A text says what is wrong with it. */
export function placeOf(arn: string, qualifier: string | undefined): RuntimePlace | string {
  const runtime = readRuntimeArn(arn)
  if (typeof runtime === 'string') return runtime
  const { partition, region } = runtime
  const query = qualifier === undefined || qualifier === '' ? '' : `?qualifier=${encodeStrictly(qualifier)}`
  return {
    host: `${RUNTIME_SERVICE}.${region}.${domains[partition] ?? 'amazonaws.com'}`,
    region,
    target: `/runtimes/${encodeStrictly(arn)}/invocations${query}`,
  }
}

/** Everything but letters and digits, which is more than encodeURIComponent does. */
function encodeStrictly(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => (isAlphanumeric(byte) ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`))
    .join('')
}

const isAlphanumeric = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
