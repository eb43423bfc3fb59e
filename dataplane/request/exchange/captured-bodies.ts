import { defineSlot } from './slot.ts'

/** Bodies of an LLM request, or arguments and result of a tool of MCP, as the guards let them through, of bounded length. */
export interface CapturedBodies {
  /** The request as it was sent to the provider. */
  request?: string | undefined
  /** The response to the client; a stream as one buffered response. */
  response?: string | undefined
}

/** Bodies for the ledger, if it stores them. */
export const capturedBodies = defineSlot<CapturedBodies>('captured bodies', { isForked: false })

/** Bytes of the longest body that is captured, by the registry of a thread; no entry: none are. */
export const captureLimits = new WeakMap<object, number>()
/** The same for arguments and results of tools. */
export const toolCaptureLimits = new WeakMap<object, number>()
