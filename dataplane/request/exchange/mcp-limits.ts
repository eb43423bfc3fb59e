import type { SlotHolder } from './slot.ts'
import { defineSlot } from './slot.ts'

/** When an MCP backend charges a limit: for each message with a method, or for a request that uses an item of a kind. */
export type McpStage = 'message' | 'tool' | 'prompt' | 'resource'

/** Counts the messages of an MCP request for one limiter. Created per request by a rate limit policy whose expressions read `mcp`. */
export interface McpLimit {
  /** Called when the variables of the stage are set. Throws a ProxyError to reject: RATE_LIMIT with the x-ratelimit headers, or another one if the limiter cannot be reached. */
  charge(stage: McpStage): void | Promise<void>
}

const limits = defineSlot<McpLimit[]>('mcpLimits')

/** Adds a limit to the request; charged after the existing ones. Other backends than MCP ignore it (traffic.md §8.9). */
export function addMcpLimit(exchange: SlotHolder, limit: McpLimit): void {
  const known = limits.get(exchange)
  if (known === undefined) limits.set(exchange, [limit])
  else known.push(limit)
}

/** Charges the limits of a request. Rejects with a ProxyError if one is exhausted; those before it have been charged. Undefined if there are none. */
export function chargeMcpLimits(exchange: SlotHolder, stage: McpStage): Promise<void> | undefined {
  const known = limits.get(exchange)
  return known && chargeAll(known, stage)
}

async function chargeAll(known: readonly McpLimit[], stage: McpStage): Promise<void> {
  for (const limit of known) await limit.charge(stage)
}
