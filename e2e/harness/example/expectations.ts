import type { ClientRequest, ClientResponse, ClientTls } from '../client.ts'
import type { Dataplane } from '../program/dataplane.ts'
import type { EchoRequest } from '../upstream/echo.ts'
import type { ConditionEvent } from '../program/operator.ts'

/** The running example that an `expect.ts` tests. Ports are those of the manifests; the runner maps them to free ones. */
export interface ExampleRun {
  /** A copy of the example, which tests may edit. */
  readonly directory: string
  readonly dataplane: Dataplane
  /** The free port that replaces a port of the manifests. */
  port(written: number): number
  upstream(name: string): { readonly requests: readonly EchoRequest[] }
  send(written: number, request?: Omit<ClientRequest, 'port'>): Promise<ClientResponse>
  /** TLS settings that trust the example's authority. */
  tls(sni: string): ClientTls
  /** A certificate of `run.ts`, for use as client certificate. */
  keyPair(name: string): { cert: string; key: string }
  /** Conditions that the operator reported. */
  conditions(): readonly ConditionEvent[]
}

/** Test functions by title. */
export type Expectations = Readonly<Record<string, (run: ExampleRun) => Promise<void>>>

/** Types its argument: `export default expectations({...})`. */
export function expectations(cases: Expectations): Expectations {
  return cases
}
