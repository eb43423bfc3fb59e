/** One resource that a data plane refused. */
export interface NackedResource {
  /** `<kind>/<key>`. */
  readonly key: string
  /** `<path in the message>: <what is wrong>`. */
  readonly error: string
}

/** A data plane refused (part of) a response; what was good of it is applied, and its last good version of the rest stays. */
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
