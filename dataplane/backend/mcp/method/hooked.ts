import { isObject, type JsonObject } from '../message/json.ts'
import type { Reply } from '../message/reply.ts'
import type { RpcRequest } from '../message/rpc.ts'
import type { Run } from '../run/run.ts'
import type { CheckAnswer } from '../run/single.ts'
import type { Target } from '../target/target.ts'
import { outputCheck, replyWith } from './guarded.ts'
import { readTool } from './lists.ts'

/** The arguments of a call after the hooks of plugins, or the reply to a call that a plugin rejects. */
export async function hookCall(
  run: Run,
  target: Target,
  request: RpcRequest,
  { tool, args }: { readonly tool: string; readonly args: unknown },
): Promise<{ readonly arguments: unknown } | { readonly reply: Reply }> {
  const hooked = await run.hooks?.call({ server: target.name, tool }, args)
  if (hooked === undefined) return { arguments: args }
  return 'result' in hooked ? { reply: replyWith(run, request, hooked.result) } : hooked
}

/** Checks and changes the result of a call of the tool `name`: guards of its target, then hooks of plugins. Undefined if there are none. */
export function resultCheck(run: Run, target: Target, name: string): CheckAnswer | undefined {
  const guarded = outputCheck(run, target, name)
  const { hooks } = run
  if (hooks?.changesResults !== true) return guarded
  const readSchema = async (): Promise<JsonObject | undefined> => {
    const schema = (await readTool(run, target, name))?.['outputSchema']
    return isObject(schema) ? schema : undefined
  }
  return async (message, exchange) =>
    hooks.result({ server: target.name, tool: name }, guarded === undefined ? message : await guarded(message, exchange), readSchema)
}
