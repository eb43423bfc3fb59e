import { fromJson, HeaderView, Ip, Timestamp, UriText, type Stored } from '#api/cel/index.ts'
import type { ExpressionSample } from '#api/management/expressions.ts'
import { viewEnv } from '../../request/expression/view.ts'

const MAX_LEVELS = 64
/** Variables that the fields of a sample describe; the others are null unless the sample sets them. */
const NULLABLE = ['jwt', 'apiKey', 'basicAuth', 'extauthz', 'extproc', 'metadata', 'mcpGuardrails', 'llm', 'mcp', 'a2a', 'llmRequest', 'backend']

/** A sample that cannot be evaluated: the message names the field. */
export class SampleError extends Error {}

/** The context of an evaluation with the values of a sample. Throws a SampleError. */
export function buildSampleContext(sample: ExpressionSample): Record<string, Stored> {
  const { method, version, headers, body, source, response, variables } = sample
  const url = parseUrl(sample.url)
  const address = Ip.parse(source.address)
  if (address === undefined) throw new SampleError(`sample.source.address: ${JSON.stringify(source.address)} is not an IP address`)
  if (!isShallow(variables, MAX_LEVELS)) throw new SampleError(`sample.variables: has more than ${MAX_LEVELS} levels`)
  const bytes = Buffer.from(body)
  const target = url.pathname + url.search
  const values = fromJson(variables) as Record<string, Stored>
  return {
    ...Object.fromEntries(NULLABLE.map((name) => [name, null])),
    request: {
      method,
      path: url.pathname,
      pathAndQuery: new UriText(target),
      uri: new UriText(`${url.protocol}//${url.host}${target}`),
      host: url.host,
      scheme: url.protocol.slice(0, -1),
      version,
      headers: viewHeaders(headers),
      body: bytes,
      bodyPrefix: bytes,
      startTime: Timestamp.fromMs(Date.now()),
    },
    response: response === null ? undefined : viewResponse(response),
    source: { address, port: source.port, rawAddress: address, rawPort: source.port },
    destination: { address: Ip.parse('127.0.0.1'), port: url.protocol === 'https:' ? 443 : 80, hostname: url.hostname },
    proxy: {},
    env: viewEnv(process.env),
    ...values,
  }
}

function parseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new SampleError(`sample.url: ${JSON.stringify(text)} is not an http or https URL`)
  return url
}

function viewResponse({ code, headers, body }: NonNullable<ExpressionSample['response']>): Record<string, Stored> {
  const bytes = Buffer.from(body)
  return { code, headers: viewHeaders(headers), body: bytes, bodyPrefix: bytes }
}

function viewHeaders(headers: readonly (readonly [string, string])[]): HeaderView {
  return new HeaderView({ raw: headers.flatMap(([name, value]) => [name.toLowerCase(), value]) })
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1))
}
