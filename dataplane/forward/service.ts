import type { Backend, BackendFull } from '#gen/config/types.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import type { Destinations } from '../destination/destinations.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { ResponseHead } from '../http/message.ts'
import type { PolicyState } from '../policy/state.ts'
import type { CallPlan } from './call-plan.ts'

/** A ProxyBackend that is more than one place to send a request to: it answers by itself and calls what it needs (LLM, MCP, agent runtime). */
export interface BackendService {
  /** Answers a request; the body of the answer may still be flowing. Rejects with a ProxyError. Retries are its own: `plan.retry` says how. */
  handle(exchange: Exchange, plan: CallPlan): Promise<ResponseHead>
  /** Takes a version of its config. What it learned of parts that stay, and sessions, outlive it. */
  update(config: ServiceConfig): void
  /** No new request will come; those in flight go on. */
  close(): void
  /** False: none of its parts transforms requests or responses, so chains need no step for that. Absent: one may. */
  readonly mayTransform?: boolean
}

/** What a service is made of. */
export interface ServiceConfig {
  readonly backend: Backend
  /** Policies from Gateway to rule, then those attached to the backend; weakest first. `backend.policies` is stronger than all of them. */
  readonly sections: readonly BackendFull[]
  /** The part of `sections` from Gateway to rule, merged: `outer` of the backend's parts. */
  readonly outer: BackendFull | undefined
  /** Policies attached to one part by its name (`sectionName`), weakest first; stronger than `sections`, weaker than what is written on the backend. */
  readonly sectionsOf: (part: string) => readonly BackendFull[]
  readonly snapshot: ConfigSnapshot
  readonly destinations: Destinations
  readonly state: PolicyState
}

/** Where a rule finds the service of a backend over config versions. */
export interface ServiceSlot {
  /** Undefined while the backend is a plain destination, or gone. */
  current: BackendService | undefined
}
