/** Parts of the ARN of an agent runtime of Amazon Bedrock AgentCore. */
export interface RuntimeArn {
  readonly partition: string
  readonly region: string
}

/** Service part of these ARNs; also the service name in request signatures. */
const RUNTIME_SERVICE = 'bedrock-agentcore'
/** Domains of AWS partitions other than the public one. */
const domains: Readonly<Record<string, string>> = { 'aws-cn': 'amazonaws.com.cn', 'aws-iso': 'c2s.ic.gov', 'aws-iso-b': 'sc2s.sgov.gov' }
const RUNTIME = /^arn:(aws|aws-cn|aws-us-gov|aws-iso|aws-iso-b):([^:]*):([a-z]{2}(?:-[a-z]+)+-\d+):(\d{12}):runtime\/([A-Za-z0-9][A-Za-z0-9_-]*)$/

/** Parses `agentRuntimeRef` (mcp.md §11). Returns the error as text. */
export function readRuntimeArn(arn: string): RuntimeArn | string {
  const [, partition = '', service, region] = RUNTIME.exec(arn) ?? []
  if (region === undefined || service !== RUNTIME_SERVICE) return `agentRuntimeRef "${arn}" is not arn:aws:${RUNTIME_SERVICE}:<region>:<account>:runtime/<id>`
  return { partition, region }
}

/** The host of the endpoint of a runtime. */
export const runtimeHost = ({ partition, region }: RuntimeArn): string => `${RUNTIME_SERVICE}.${region}.${domains[partition] ?? 'amazonaws.com'}`
