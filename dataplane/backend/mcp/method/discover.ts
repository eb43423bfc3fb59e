import { capabilitiesOf } from '../message/capabilities.ts'
import { noTargets } from '../message/failure.ts'
import type { JsonObject } from '../message/json.ts'
import { Freshness, withoutTaskExtension } from '../message/modern.ts'
import type { Bridge } from '../run/bridge.ts'
import { checksResults, toFailure, type Run } from '../run/run.ts'
import type { Target } from '../target/target.ts'
import { mergeInstructions, optionalCapabilities } from './initialize.ts'

/** Capabilities that are described to clients. The others have no form in the revision. */
const KNOWN = ['tools', 'prompts', 'resources', 'completions', 'logging', 'experimental', 'extensions'] as const

/** Capabilities and instructions of all targets, from their results of `server/discover` or `initialize` (mcp.md §13.2). Rejects with the error for the client. */
export async function discover(run: Run, bridge: Bridge): Promise<JsonObject> {
  const { config } = run
  const failures: Error[] = []
  const results = new Map<Target, JsonObject>()
  await Promise.all(
    config.targets.map(async (target) => {
      try {
        results.set(target, await bridge.describe(run, target))
      } catch (error) {
        const failure = toFailure(run, target, error)
        if (!config.isFailOpen) throw failure
        failures.push(failure)
      }
    }),
  )
  const targets = config.targets.filter((target) => results.has(target))
  const [sole] = targets
  if (sole === undefined) throw failures[0] ?? noTargets()
  const all = targets.map((target) => offered(run, target, results.get(target) ?? {}))
  const freshness = new Freshness()
  for (const result of all) freshness.add(result)
  const fresh = freshness.members(config.targets.length)
  if (!config.isMultiplexing) return { ...describeOne(all[0] ?? {}), ...fresh }
  return {
    ...fresh,
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      ...optionalCapabilities(all),
    },
    instructions: mergeInstructions(run, targets, all),
  }
}

/** The result without tasks, if clients may not use those of the target. */
const offered = (run: Run, target: Target, result: JsonObject): JsonObject =>
  checksResults(run, target) ? { ...result, capabilities: withoutTaskExtension(capabilitiesOf(result)) } : result

function describeOne(result: JsonObject): JsonObject {
  const announced = capabilitiesOf(result)
  const capabilities: JsonObject = {}
  for (const name of KNOWN) if (announced[name] !== undefined) capabilities[name] = announced[name]
  return { capabilities, ...(typeof result['instructions'] === 'string' && { instructions: result['instructions'] }) }
}
