import { readRuntimeArn, runtimeHost } from '#api/arn.ts'

/** The endpoint of a runtime. */
export interface RuntimeEndpoint {
  readonly host: string
  readonly region: string
  /** Path and query of invocations. */
  readonly target: string
}

/** Derives the endpoint from an `agentRuntimeRef` (mcp.md §11). Returns an error text if the ARN is invalid. */
export function runtimeEndpoint(arn: string, qualifier: string | undefined): RuntimeEndpoint | string {
  const runtime = readRuntimeArn(arn)
  if (typeof runtime === 'string') return runtime
  const { region } = runtime
  const query = qualifier === undefined || qualifier === '' ? '' : `?qualifier=${encodeStrictly(qualifier)}`
  return {
    host: runtimeHost(runtime),
    region,
    target: `/runtimes/${encodeStrictly(arn)}/invocations${query}`,
  }
}

/** Percent-encodes everything except letters and digits, which is more than encodeURIComponent does. */
function encodeStrictly(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => (isAlphanumeric(byte) ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`))
    .join('')
}

const isAlphanumeric = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
