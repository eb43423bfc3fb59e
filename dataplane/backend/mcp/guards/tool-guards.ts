import type { McpToolGuards } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { compileEntry, runEntries, type Entry, type CountedPhase } from '../../llm/guards/entries.ts'
import type { GuardConfig } from '../../llm/guards/service.ts'
import { McpFailure } from '../message/failure.ts'
import type { JsonObject } from '../message/json.ts'
import { INTERNAL_ERROR, type RpcMessage } from '../message/rpc.ts'
import { ToolSubject } from './subject.ts'

/** A call that a guard rejected; the client receives `result`. */
interface RejectedCall {
  readonly result: JsonObject
}

/** The guards of the tools of one target (mcp.md §4.8). Methods reject with a McpFailure if a guard cannot be evaluated. */
export interface ToolGuards {
  /** Undefined if results are not checked. */
  readonly checkOutput: ((message: RpcMessage, exchange: Exchange) => Promise<RpcMessage>) | undefined
  /** Returns the arguments to send, or the result of a call that is rejected. */
  checkInput(args: unknown, exchange: Exchange): Promise<{ readonly arguments: unknown } | RejectedCall>
}

/** Compiles `mcp.toolGuards`. */
export function compileToolGuards({ input = [], output = [] }: McpToolGuards, config: GuardConfig): ToolGuards {
  // As for prompts: in both phases, the action of a regex guard is honoured.
  const compile = (entry: NonNullable<McpToolGuards['input']>[number]): Entry => compileEntry(entry, 'Request', config)
  const [inputs, outputs] = [input.map(compile), output.map(compile)]
  const run = async (entries: readonly Entry[], subject: ToolSubject, phase: CountedPhase): Promise<JsonObject | undefined> => {
    try {
      const rejection = await runEntries(entries, subject, config.state.registry, phase)
      return rejection && errorResult(rejection.body)
    } catch (error) {
      if (!(error instanceof ProxyError) || error.code !== 'GUARD_FAILED') throw error
      const { cause = error } = error
      throw McpFailure.rpc(INTERNAL_ERROR, `a guard of the ${phase === 'ToolInput' ? 'arguments' : 'result'} could not be evaluated`, {
        cause,
        detail: `a guard failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      })
    }
  }
  return {
    async checkInput(args, exchange) {
      if (inputs.length === 0 || args === undefined) return { arguments: args }
      const subject = new ToolSubject('Request', { arguments: args }, exchange)
      const result = await run(inputs, subject, 'ToolInput')
      return result === undefined ? { arguments: subject.body['arguments'] } : { result }
    },
    checkOutput:
      outputs.length === 0
        ? undefined
        : async (message, exchange) => {
            const subject = new ToolSubject('Response', message, exchange)
            const result = await run(outputs, subject, 'ToolOutput')
            if (result === undefined) return subject.body
            const { error: _, ...envelope } = message
            return { ...envelope, result }
          },
  }
}

/** A result that reports a failure of the tool. Models read its text. */
const errorResult = (text: string): JsonObject => ({ content: [{ type: 'text', text }], isError: true })
