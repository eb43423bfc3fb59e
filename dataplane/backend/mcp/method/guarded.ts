import { BufferBody } from '../../../http/body.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { streamOf, type Reply } from '../message/reply.ts'
import { resultText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Run } from '../run/run.ts'
import type { CheckAnswer } from '../run/single.ts'
import { fitMasked } from '../schema/fit.ts'
import type { Target } from '../target/target.ts'
import { readTool } from './lists.ts'

/** Shown in place of structured content that cannot be masked. */
const HIDDEN = 'The structured result is not shown: with its values masked, it does not match the output schema of the tool.'

/** The arguments of a call after the guards of its target, or the reply to a call that they reject. */
export async function checkInput(
  run: Run,
  { guards }: Target,
  request: RpcRequest,
  args: unknown,
): Promise<{ readonly arguments: unknown } | { readonly reply: Reply }> {
  if (guards === undefined) return { arguments: args }
  const checked = await guards.checkInput(args, run.exchange)
  if ('arguments' in checked) return checked
  run.onRejection?.()
  return { reply: replyWith(run, request, checked.result) }
}

/** The reply to a call that is not sent. */
export function replyWith(run: Run, { id }: RpcRequest, result: JsonObject): Reply {
  run.onAnswer?.({ jsonrpc: '2.0', id, result })
  const text = resultText(id, result)
  return run.config.isMultiplexing ? streamOf([text]) : { kind: 'message', body: new BufferBody(text) }
}

/** Checks the result of a call of the tool `name` with the guards of its target; undefined if there are none. */
export function outputCheck(run: Run, target: Target, name: string): CheckAnswer | undefined {
  const check = target.guards?.checkOutput
  if (check === undefined) return undefined
  return async (message, exchange) => {
    const checked = await check(message, exchange)
    const [before, after] = [structuredIn(message), structuredIn(checked)]
    if (isRejected(message, checked)) run.onRejection?.()
    if (before === undefined || after === undefined || before === after) return checked
    return fitResult(run, target, name, { checked, before, after })
  }
}

/** The structured content of a result that clients compare with the output schema. */
function structuredIn({ result }: RpcMessage): JsonObject | undefined {
  if (!isObject(result) || result['isError'] === true) return undefined
  return isObject(result['structuredContent']) ? result['structuredContent'] : undefined
}

const isErrorResult = ({ result }: RpcMessage): boolean => isObject(result) && result['isError'] === true

const isRejected = (message: RpcMessage, checked: RpcMessage): boolean => isErrorResult(checked) && !isErrorResult(message)

interface Masked {
  readonly checked: RpcMessage
  readonly before: JsonObject
  readonly after: JsonObject
}

/** Adapts masked structured content to the output schema of the tool (mcp.md §4.8). */
async function fitResult(run: Run, target: Target, name: string, { checked, before, after }: Masked): Promise<RpcMessage> {
  const schema = (await readTool(run, target, name).catch(() => undefined))?.['outputSchema']
  if (!isObject(schema)) return checked
  const fitted = await runWhileConnected(fitMasked(schema, before, after), run.exchange)
  const { structuredContent: _, ...result } = checked.result as JsonObject
  if (fitted !== undefined) return { ...checked, result: { ...result, structuredContent: fitted.value } }
  const content = Array.isArray(result['content']) ? (result['content'] as unknown[]) : []
  return { ...checked, result: { ...result, content: [...content, { type: 'text', text: HIDDEN }], isError: true } }
}
