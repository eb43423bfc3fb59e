import { inside, objectOf, objectsOf, textOf, without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { fitNativeSampling } from './fit.ts'
import { CallIds } from './ids.ts'
import { withList, withText } from './lists.ts'
import { fitImageUrl } from './media.ts'
import { isReasoning, type FittedBody } from './native-completions.ts'
import { ToolNames } from './names.ts'
import { fitSchema } from './schemas/index.ts'
import type { TargetRules } from './types.ts'
import { fitUser } from './users.ts'

/** Fits a Responses request: sampling, tools, and names, ids and members of the items. */
export function fitResponses(body: JsonObject, rules: TargetRules): FittedBody {
  const names = namesOf(body, rules)
  const rename = (name: string): string => names.safe(name)
  const ids = new CallIds(rules.ids)
  const { body: sampled, omitted } = fitNativeSampling(body, rules.sampling, isReasoning(textOf(inside(body['reasoning'])['effort'])))
  let fitted = withText(sampled, 'user', (user) => fitUser(user, rules.user))
  fitted = withList(fitted, 'tools', (tool) => fitTool(tool, rename, rules))
  fitted = withList(fitted, 'input', (item) => fitItem(item, rename, ids))
  const choice = objectOf(body['tool_choice'])
  if (choice?.['type'] === 'function') {
    const named = withText(choice, 'name', rename)
    if (named !== choice) fitted = { ...fitted, tool_choice: named }
  }
  return { body: fitted, toolNames: names.restored, omitted }
}

const isFunction = ({ type }: JsonObject): boolean => type === 'function' || type === 'custom'

/** Names in a namespace are its own. */
function namesOf(body: JsonObject, rules: TargetRules): ToolNames {
  const named = (item: JsonObject): string[] => {
    const name = textOf(item['name'])
    return name === undefined ? [] : [name]
  }
  const tools = objectsOf(body['tools']).flatMap((tool) =>
    isFunction(tool) ? named(tool) : tool['type'] === 'namespace' ? objectsOf(tool['tools']).flatMap(named) : [],
  )
  const calls = objectsOf(body['input']).flatMap((item) => (isCall(item) ? named(item) : []))
  return new ToolNames(tools, [...calls, ...named(inside(body['tool_choice']))], rules.names)
}

function fitTool(tool: JsonObject, rename: (name: string) => string, rules: TargetRules): JsonObject {
  if (tool['type'] === 'namespace') return withList(tool, 'tools', (one) => fitTool(one, rename, rules))
  if (!isFunction(tool)) return tool
  const named = withText(tool, 'name', rename)
  const given = objectOf(tool['parameters'])
  const fitted = fitSchema(given, rules.schema)
  return fitted === given ? named : { ...named, parameters: fitted }
}

const isCall = ({ type }: JsonObject): boolean => type === 'function_call' || type === 'custom_tool_call'
const isResult = ({ type }: JsonObject): boolean => type === 'function_call_output' || type === 'custom_tool_call_output'

function fitItem(item: JsonObject, rename: (name: string) => string, ids: CallIds): JsonObject | undefined {
  if (item['type'] === 'reasoning') return isForeign(item) ? undefined : item
  if (isCall(item)) {
    const called = withText(withText(item, 'name', rename), 'call_id', (id) => ids.call(id))
    // The id of the item is optional, and must be one of OpenAI (nodetool-ai/nodetool#4252).
    return /^(?:fc|ctc)/.test(textOf(called['id']) ?? 'fc') ? called : without(called, 'id')
  }
  if (isResult(item))
    return withList(
      withText(item, 'call_id', (id) => ids.result(id)),
      'output',
      fitPart,
    )
  return withList(item, 'content', fitPart)
}

const fitPart = (part: JsonObject): JsonObject => withText(part, 'image_url', fitImageUrl)

/** Reasoning that the gateway wrote for another provider: OpenAI knows neither its id nor its content (openai/codex#8145). */
function isForeign({ id, encrypted_content: content }: JsonObject): boolean {
  return textOf(content)?.startsWith('signature:') === true || /^rs_[0-9a-f]{16}$/.test(textOf(id) ?? '')
}
