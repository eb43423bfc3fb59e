import { compact, inside, listOf, objectOf, objectsOf, textOf, without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { canForce, fitNativeSampling, isThinking } from './fit.ts'
import { CallIds } from './ids.ts'
import { mapList, withList, withMember, withText } from './lists.ts'
import { limitMarks } from './marks.ts'
import { imageType } from './media.ts'
import type { FittedBody } from './native-completions.ts'
import { ToolNames } from './names.ts'
import { CONTINUE, PREFILL } from './prefill.ts'
import { closeSchema } from './schemas/closed.ts'
import { fitSchema } from './schemas/index.ts'
import { fitThinking } from './thinking.ts'
import type { TargetRules } from './types.ts'
import { fitUser } from './users.ts'

/** Fits thinking, sampling, tools, cache breakpoints and messages of a Messages request to Claude. */
export function fitMessages(body: JsonObject, rules: TargetRules): FittedBody {
  const { reasoning, sampling } = rules
  const config = objectOf(body['output_config'])
  const effort = textOf(config?.['effort'])
  const given = objectOf(body['thinking'])
  const planned = fitThinking({ thinking: given, effort, maxTokens: body['max_tokens'] }, reasoning)
  const changes: Record<string, unknown> = {}
  if (planned.thinking !== given) changes['thinking'] = planned.thinking
  const format = rules.schema.isClosed ? closeFormat(objectOf(config?.['format'])) : config?.['format']
  if (planned.effort !== effort || format !== config?.['format']) changes['output_config'] = filled(compact({ ...config, effort: planned.effort, format }))
  const thinking = planned.thinking?.['type']
  const { body: sampled, omitted: dropped } = fitNativeSampling(body, sampling, isThinking(thinking))
  const choice = inside(body['tool_choice'])
  const isFree = (choice['type'] === 'any' || choice['type'] === 'tool') && !canForce(reasoning, thinking === 'enabled')
  if (isFree) changes['tool_choice'] = { ...without(choice, 'name'), type: 'auto' }
  const names = namesOf(body, rules)
  const rename = (name: string): string => names.safe(name)
  const fitted = Object.keys(changes).length > 0 ? compact({ ...sampled, ...changes }) : sampled
  const offered = withList(fitted, 'tools', (tool) => fitTool(tool, rules, rename))
  const chosen = withMember(offered, 'tool_choice', (one) => withText(one, 'name', rename))
  const known = withMember(chosen, 'metadata', (metadata) => withText(metadata, 'user_id', (user) => fitUser(user, rules.user)))
  const { body: complete, omitted } = continued(fitTurns(known, rules, rename), rules)
  return { body: limitMarks(complete, rules.cache), toolNames: names.restored, omitted: [...dropped, ...(isFree ? ['tool_choice'] : []), ...omitted] }
}

/** The names of the client's tools, of calls and of the choice. */
function namesOf(body: JsonObject, rules: TargetRules): ToolNames {
  const named = ({ name }: JsonObject): string[] => (typeof name === 'string' ? [name] : [])
  const calls = objectsOf(body['messages']).flatMap(({ content }) =>
    objectsOf(content)
      .filter(({ type }) => type === 'tool_use')
      .flatMap(named),
  )
  return new ToolNames(objectsOf(body['tools']).flatMap(named), [...calls, ...named(inside(body['tool_choice']))], rules.names)
}

/** A message of the user behind a last one of the assistant, for models that continue none. */
function continued(body: JsonObject, { roles }: TargetRules): Pick<FittedBody, 'body' | 'omitted'> {
  const messages = objectsOf(body['messages'])
  const last = messages.at(-1)
  if (roles.prefill !== 'rejected' || last?.['role'] !== 'assistant' || objectsOf(last['content']).some(({ type }) => type === 'tool_use'))
    return { body, omitted: [] }
  return { body: { ...body, messages: [...messages, { role: 'user', content: CONTINUE }] }, omitted: [PREFILL] }
}

/** The format of a response by a schema, which has to be closed. */
function closeFormat(format: JsonObject | undefined): JsonObject | undefined {
  const schema = objectOf(format?.['schema'])
  if (schema === undefined) return format
  const closed = closeSchema(schema)
  return closed === schema ? format : { ...format, schema: closed }
}

const filled = (object: JsonObject): JsonObject | undefined => (Object.keys(object).length > 0 ? object : undefined)

/** A tool of the client; those of the provider have a type. */
function fitTool(tool: JsonObject, { schema }: TargetRules, rename: (name: string) => string): JsonObject {
  const type = tool['type']
  if (type !== undefined && type !== null && type !== 'custom') return tool
  const given = objectOf(tool['input_schema'])
  const typed = fitSchema(given, schema)
  const fitted = typed !== undefined && tool['strict'] === true && schema.isClosed ? closeSchema(typed) : typed
  const named = withText(tool, 'name', rename)
  return fitted === given ? named : { ...named, input_schema: fitted }
}

/** Fits the ids of the messages, leaves out thinking without signature and empty text, and puts instructions where the model accepts them. */
function fitTurns(body: JsonObject, rules: TargetRules, rename: (name: string) => string): JsonObject {
  const ids = new CallIds(rules.ids)
  const messages = mapList(body['messages'], (message) => {
    const content = mapList(message['content'], (block) => fitBlock(block, ids, rename))
    if (typeof content === 'string' ? !/\S/.test(content) : Array.isArray(content) && content.length === 0) return undefined
    return content === message['content'] ? message : { ...message, content }
  })
  const ended = endWithText(messages, rules.blanks)
  const isPlaced = !objectsOf(ended).some(({ role }, at) => role === 'system' && (at === 0 || rules.roles.late === 'user'))
  if (isPlaced) return ended === body['messages'] ? body : { ...body, messages: ended }
  return { ...body, ...placeInstructions(body['system'], objectsOf(ended), rules) }
}

/** The messages without white space at the end of a last one of the assistant (langchain-ai/langchain#35071). */
function endWithText(messages: unknown, { takesEnd }: TargetRules['blanks']): unknown {
  const last = Array.isArray(messages) ? objectOf(messages.at(-1)) : undefined
  if (takesEnd || last?.['role'] !== 'assistant') return messages
  const blocks = listOf(last['content'])
  const block = objectOf(blocks.at(-1))
  const text = textOf(last['content']) ?? (block?.['type'] === 'text' ? textOf(block['text']) : undefined)
  if (text === undefined || !/\s$/.test(text)) return messages
  const content = block === undefined ? text.trimEnd() : [...blocks.slice(0, -1), { ...block, text: text.trimEnd() }]
  return [...listOf(messages).slice(0, -1), { ...last, content }]
}

/** Leading instructions become a part of the system prompt, later ones text of the user, behind the results of a call. */
function placeInstructions(system: unknown, messages: readonly JsonObject[], { roles }: TargetRules): JsonObject {
  const leading: unknown[] = []
  const placed: JsonObject[] = []
  let late: unknown[] = []
  const flush = (): void => {
    if (late.length > 0) placed.push({ role: 'user', content: late })
    late = []
  }
  for (const message of messages) {
    const blocks = blocksOf(message['content'])
    if (message['role'] !== 'system') {
      const hasResults = objectsOf(blocks).some(({ type }) => type === 'tool_result')
      if (hasResults && late.length > 0) {
        placed.push({ ...message, content: [...blocks, ...late] })
        late = []
      } else {
        flush()
        placed.push(message)
      }
    } else if (placed.length === 0) leading.push(...blocks)
    else if (roles.late === 'user') late.push(...blocks)
    else placed.push(message)
  }
  flush()
  return leading.length === 0 ? { messages: placed } : { system: [...blocksOf(system), ...leading], messages: placed }
}

/** A content or system prompt as a list of blocks. */
function blocksOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : listOf(content)
}

function fitBlock(block: JsonObject, ids: CallIds, rename: (name: string) => string): JsonObject | undefined {
  switch (block['type']) {
    case 'text':
      return /\S/.test(textOf(block['text']) ?? '-') ? block : undefined
    case 'image':
      return fitImage(block)
    case 'thinking':
      return /\S/.test(textOf(block['signature']) ?? '') ? block : undefined
    case 'tool_use': {
      const named = withText(withText(block, 'name', rename), 'id', (id) => ids.call(id))
      // Arguments that are no object came from another provider (llm.md §7.1).
      return named['input'] === undefined || objectOf(named['input']) !== undefined ? named : { ...named, input: {} }
    }
    case 'tool_result':
      return withList(
        withText(block, 'tool_use_id', (id) => ids.result(id)),
        'content',
        fitPart,
      )
    default:
      return block
  }
}

/** A part of a result, which has no breakpoint of its own (caozhiyuan/copilot-api#241). */
function fitPart(part: JsonObject): JsonObject | undefined {
  const plain = without(part, 'cache_control')
  return plain['type'] === 'text' && !/\S/.test(textOf(plain['text']) ?? '-') ? undefined : fitImage(plain)
}

const fitImage = (block: JsonObject): JsonObject =>
  block['type'] === 'image' ? withMember(block, 'source', (source) => withText(source, 'media_type', imageType)) : block
