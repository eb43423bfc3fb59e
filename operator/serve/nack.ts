import { readSamples, type RolloutSample } from '#api/rollout/samples.ts'

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

/** What a data plane reports that only it can find. */
export interface DataplaneReport {
  readonly plugins: readonly RefusedPlugin[]
  /** MCP targets whose tools are held until they are approved: `<namespace>/<backend>/<target>`. */
  readonly heldTools: readonly string[]
  /** What it measured in the steps of rollouts. */
  readonly rollouts: readonly RolloutSample[]
}

export const EMPTY_REPORT: DataplaneReport = { plugins: [], heldTools: [], rollouts: [] }

/** Bounds of a report: data planes send no more. */
const MAX_REPORT_LENGTH = 256 * 1024
const MAX_ITEMS = 64
const MAX_PROBLEM_LENGTH = 1000
/** Three names of Kubernetes, and slashes. */
const MAX_TARGET_LENGTH = 1000

/** Reads the report `{"plugins": [{plugin, problem}], "heldTools": [target], "rollouts": [sample]}` of a data plane; older ones lack the last ones. Undefined if it is none. */
export function parseReport(message: string): DataplaneReport | undefined {
  if (message.length > MAX_REPORT_LENGTH) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(message)
  } catch {
    return undefined
  }
  const {
    plugins,
    heldTools = [],
    rollouts = [],
  } = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as {
    readonly plugins?: unknown
    readonly heldTools?: unknown
    readonly rollouts?: unknown
  }
  if (!Array.isArray(plugins) || !Array.isArray(heldTools) || !Array.isArray(rollouts)) return undefined
  return {
    plugins: plugins
      .slice(0, MAX_ITEMS)
      .filter((item): item is RefusedPlugin => typeof item?.plugin === 'string' && typeof item?.problem === 'string')
      .map(({ plugin, problem }) => ({ plugin, problem: toText(problem, MAX_PROBLEM_LENGTH) })),
    heldTools: heldTools
      .slice(0, MAX_ITEMS)
      .filter((item) => typeof item === 'string')
      .map((item) => toText(item, MAX_TARGET_LENGTH)),
    rollouts: readSamples(rollouts.slice(0, MAX_ITEMS)),
  }
}

const toText = (value: string, maxLength: number): string => value.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, maxLength)

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
