import type { ClientRequest, ClientResponse, ClientTls } from '../client.ts'
import type { Dataplane } from '../program/dataplane.ts'
import type { EchoRequest } from '../upstream/echo.ts'
import type { ConditionEvent } from '../program/operator.ts'

/** What an example's `expect.ts` works with. Ports are named as the manifests write them; the runner has replaced them by free ones. */
export interface ExampleRun {
  /** A copy of the example, which may be edited. */
  readonly directory: string
  readonly dataplane: Dataplane
  /** The port that stands in for one of the manifests. */
  port(written: number): number
  upstream(name: string): { readonly requests: readonly EchoRequest[] }
  send(written: number, request?: Omit<ClientRequest, 'port'>): Promise<ClientResponse>
  /** Trust in the example's authority. */
  tls(sni: string): ClientTls
  /** A certificate of `run.ts`, to show as a client. */
  keyPair(name: string): { cert: string; key: string }
  /** What the operator has complained about. */
  conditions(): readonly ConditionEvent[]
}

/** Expectations by sentence. */
export type Expectations = Readonly<Record<string, (run: ExampleRun) => Promise<void>>>

/** Gives the type; used as `export default expectations({...})`. */
export function expectations(cases: Expectations): Expectations {
  return cases
}
