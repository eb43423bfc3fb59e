/** Where a runtime is hosted, from its ARN. */
export interface RuntimePlace {
  readonly host: string
  readonly region: string
  /** Path and query of its invocations. */
  readonly target: string
}

const SERVICE = 'bedrock-agentcore'
const ARN = /^arn:(aws|aws-cn|aws-us-gov|aws-iso|aws-iso-b):([^:]*):([a-z]{2}(?:-[a-z]+)+-\d+):(\d{12}):runtime\/([A-Za-z0-9][A-Za-z0-9_-]*)$/
/** Domains of partitions that are not the public one. */
const domains: Readonly<Record<string, string>> = { 'aws-cn': 'amazonaws.com.cn', 'aws-iso': 'c2s.ic.gov', 'aws-iso-b': 'sc2s.sgov.gov' }

/** Reads `agentRuntimeRef` (mcp.md §11). A text says what is wrong with it. */
export function placeOf(arn: string, qualifier: string | undefined): RuntimePlace | string {
  const [, partition = '', service, region] = ARN.exec(arn) ?? []
  if (region === undefined || service !== SERVICE) return `agentRuntimeRef "${arn}" is not arn:aws:${SERVICE}:<region>:<account>:runtime/<id>`
  const query = qualifier === undefined || qualifier === '' ? '' : `?qualifier=${encodeStrictly(qualifier)}`
  return { host: `${SERVICE}.${region}.${domains[partition] ?? 'amazonaws.com'}`, region, target: `/runtimes/${encodeStrictly(arn)}/invocations${query}` }
}

/** Everything but letters and digits, which is more than encodeURIComponent does. */
function encodeStrictly(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => (isAlphanumeric(byte) ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`))
    .join('')
}

const isAlphanumeric = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
