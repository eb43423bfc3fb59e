/** One resource that a data plane rejected. */
export interface NackedResource {
  /** `<kind>/<key>`. */
  readonly key: string
  /** `<path in the message>: <problem>`. */
  readonly error: string
}

/** A data plane rejected a response or part of it. It applies the valid part, and keeps its last valid version of the rest. */
export interface Nack {
  /** `<namespace>~<safe gateway name>`. */
  readonly role: string | undefined
  readonly nodeId: string
  readonly typeUrl: string
  readonly nonce: string
  /** As received. */
  readonly message: string
  /** Parsed from `message`; empty when it is not our data plane's JSON. */
  readonly resources: readonly NackedResource[]
}
