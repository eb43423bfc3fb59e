/** One resource that a data plane rejected. */
export interface NackedResource {
  /** `<kind>/<key>`. */
  readonly key: string
  /** `<path in the message>: <problem>`. */
  readonly error: string
}

/** A plugin that a data plane cannot load; an older version may still run. */
export interface RefusedPlugin {
  /** `<namespace>/<policy>/<plugin>`. */
  readonly plugin: string
  /** One line, with file, line and column if it is an error of the source. */
  readonly problem: string
}

/** Bounds of a report: data planes send no more. */
const MAX_REPORT_LENGTH = 256 * 1024
const MAX_REFUSED = 64
const MAX_PROBLEM_LENGTH = 1000

/** Reads the report `{"plugins": [{plugin, problem}]}` of a data plane. Undefined if it is none. */
export function parseRefusedPlugins(message: string): readonly RefusedPlugin[] | undefined {
  if (message.length > MAX_REPORT_LENGTH) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(message)
  } catch {
    return undefined
  }
  const list: unknown = typeof parsed === 'object' && parsed !== null && 'plugins' in parsed ? parsed.plugins : undefined
  if (!Array.isArray(list)) return undefined
  return list
    .slice(0, MAX_REFUSED)
    .filter((item): item is RefusedPlugin => typeof item?.plugin === 'string' && typeof item?.problem === 'string')
    .map(({ plugin, problem }) => ({ plugin, problem: problem.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, MAX_PROBLEM_LENGTH) }))
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
