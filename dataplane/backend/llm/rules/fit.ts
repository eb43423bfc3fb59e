import type { Block, Chat, OutputFormat, Tool, ToolChoice, ToolResult, Turn } from '../common/neutral.ts'
import { isObject } from '../common/json.ts'
import { numberOf, textOf, without } from '../common/read.ts'
import { NO_THOUGHT } from '../common/thoughts.ts'
import type { JsonObject } from '../common/types.ts'
import { unsupported } from '../common/unsupported.ts'
import { CallIds } from './ids.ts'
import { fitMarks } from './marks.ts'
import { checkImage, imageType } from './media.ts'
import { ToolNames } from './names.ts'
import { BEGIN, CONTINUE, PREFILL } from './prefill.ts'
import { closeSchema } from './schemas/closed.ts'
import { fitSchema } from './schemas/index.ts'
import { planReasoningEffort, planThinking } from './thinking.ts'
import type { TargetRules } from './types.ts'
import { fitUser } from './users.ts'

/** A chat as its target accepts it. */
export interface FittedChat {
  readonly chat: Chat
  /** Names of tools in the request -> of the client, only if they differ. */
  readonly toolNames: ReadonlyMap<string, string>
}

/** Changes a chat so that its target accepts it (llm.md §7.15). The same chat gives the same result, so that prompt caches hit. */
export function fitChat(chat: Chat, rules: TargetRules): FittedChat {
  const calls = chat.turns.flatMap(({ blocks }) => blocks.flatMap((block) => (block.type === 'toolUse' ? [block.name] : [])))
  const others = chat.toolChoice?.type === 'tool' ? [...calls, chat.toolChoice.name] : calls
  const names = new ToolNames(
    chat.tools.map(({ name }) => name),
    others,
    rules.names,
  )
  const { system, turns } = fitTurns(chat, rules, names)
  const isContinued = needsUser(turns, rules)
  const isClaude = rules.roles.isApart
  const plan = isClaude
    ? planThinking({ ...chat, turns }, rules.reasoning)
    : { maxTokens: chat.maxTokens, thinking: chat.thinking, effort: planReasoningEffort(chat, rules.reasoning) }
  const isReasoning = isClaude ? isThinking(plan.thinking?.['type']) : plan.effort !== undefined && plan.effort !== 'none'
  const sampling = fitSampling(chat, rules, isReasoning)
  const tools = chat.tools.map((tool) => fitTool(tool, rules, names))
  const choice = chat.toolChoice && isOffered(chat.toolChoice, chat.tools) ? chat.toolChoice : undefined
  const toolChoice = choice && fitChoice(choice, rules, names, plan.thinking?.['type'] === 'enabled')
  const isFree = toolChoice?.type !== choice?.type
  const fitted = {
    ...chat,
    ...plan,
    ...sampling,
    omitted: [...chat.omitted, ...findDropped(chat, sampling), ...(isFree ? [CHOICE_PLACES[chat.origin]] : []), ...(isContinued ? [PREFILL] : [])],
    system,
    isSystemPlain: chat.isSystemPlain && system === chat.system,
    turns: isContinued ? [...turns, spoken(CONTINUE)] : turns,
    tools,
    // Options of tools are rejected without tools (Upsonic/Upsonic#323, writer/writer-framework#1013).
    isParallel: tools.length > 0 ? chat.isParallel : undefined,
    ...userOf(chat, rules.user),
    format: chat.format && fitFormat(chat.format, chat.origin, rules),
    toolChoice,
  }
  return { chat: fitMarks(fitted, rules.cache), toolNames: names.restored }
}

/** Whether there is a tool to choose: those that the provider would run itself were left out. */
const isOffered = (choice: ToolChoice, tools: readonly Tool[]): boolean =>
  choice.type === 'tool' ? tools.some(({ name }) => name === choice.name) : tools.length > 0

/** The user of the client, in the field or in the metadata of its format. */
function userOf({ user, metadata }: Chat, rule: TargetRules['user']): Pick<Chat, 'user' | 'metadata'> {
  const named = textOf(metadata?.['user_id'])
  return {
    user: user === undefined ? undefined : fitUser(user, rule),
    metadata: named === undefined ? metadata : { ...metadata, user_id: fitUser(named, rule) },
  }
}

const spoken = (text: string): Turn => ({ role: 'user', blocks: [{ type: 'text', text }], isPlain: true })

/** Whether a message of the user must follow the last one of the assistant. Calls without results are not continued. */
function needsUser(turns: readonly Turn[], { roles }: TargetRules): boolean {
  const last = turns.at(-1)
  return roles.prefill === 'rejected' && last?.role === 'assistant' && !last.blocks.some(({ type }) => type === 'toolUse')
}

/** The fields of the client that its target does not have or rejects. */
function findDropped(chat: Chat, sampling: Pick<Chat, 'temperature' | 'topP' | 'topK' | 'stop'>): string[] {
  const dropped: string[] = []
  const drop = (name: string, ofGemini: string): void => void dropped.push(chat.origin === 'gemini' ? `generationConfig.${ofGemini}` : name)
  if (sampling.temperature === undefined && isChosen('temperature', chat.temperature)) drop('temperature', 'temperature')
  if (sampling.topP === undefined && isChosen('top_p', chat.topP)) drop('top_p', 'topP')
  if (chat.topK !== undefined && sampling.topK === undefined) drop('top_k', 'topK')
  if (chat.stop.length > sampling.stop.length) drop(chat.origin === 'messages' ? 'stop_sequences' : 'stop', 'stopSequences')
  return dropped
}

export const isThinking = (type: unknown): boolean => type === 'enabled' || type === 'adaptive'

function fitTool(tool: Tool, { schema: rule }: TargetRules, names: ToolNames): Tool {
  const { isStrict, ...rest } = tool
  const schema = fitSchema(tool.schema, rule)
  const isKept = isStrict !== undefined && rule.hasStrict
  return {
    ...rest,
    name: names.safe(tool.name),
    schema: schema !== undefined && isKept && isStrict && rule.isClosed ? closeSchema(schema) : schema,
    ...(isKept && { isStrict }),
  }
}

/** Where the format of the response is, for errors. */
const FORMAT_PLACES: Readonly<Record<Chat['origin'], string>> = {
  completions: 'response_format',
  messages: 'output_config.format',
  responses: 'text.format',
  gemini: 'generationConfig.responseMimeType',
}

/** The schema of the response. Claude follows closed schemas only. */
function fitFormat(format: OutputFormat, origin: Chat['origin'], { schema: rule }: TargetRules): OutputFormat {
  if (!rule.isClosed) return format
  if (format.type === 'object') throw unsupported(FORMAT_PLACES[origin], 'this provider returns JSON by a schema only; send one')
  return isObject(format.schema) ? { ...format, schema: closeSchema(format.schema) } : format
}

/** Whether a tool can be forced. `hasBudget`: the request has thinking with a budget. */
export function canForce({ forcesTools }: TargetRules['reasoning'], hasBudget: boolean): boolean {
  return forcesTools === 'always' || (forcesTools === 'withoutBudget' && !hasBudget)
}

/** Where a client forces a tool. */
const CHOICE_PLACES: Readonly<Record<Chat['origin'], string>> = {
  completions: 'tool_choice',
  messages: 'tool_choice',
  responses: 'tool_choice',
  gemini: 'toolConfig.functionCallingConfig',
}

function fitChoice(choice: ToolChoice, { reasoning }: TargetRules, names: ToolNames, hasBudget: boolean): ToolChoice {
  if (choice.type === 'auto' || choice.type === 'none') return choice
  if (!canForce(reasoning, hasBudget)) return { type: 'auto' }
  return choice.type === 'tool' ? { type: 'tool', name: names.safe(choice.name) } : choice
}

/** Sampling parameters, each with the default of the APIs. */
const samplingDefaults: Readonly<Record<string, number | undefined>> = { temperature: 1, top_p: 1, top_k: undefined, presence_penalty: 0, frequency_penalty: 0 }

/** Whether a sampling parameter changes the response: to leave out a default, which models without the parameter reject too, changes nothing. */
const isChosen = (field: string, value: unknown): boolean => value !== undefined && value !== null && (numberOf(value) ?? Infinity) !== samplingDefaults[field]

/** The sampling parameters that a target accepts. */
function fitNumbers<T>(
  { temperature, topP, topK }: { readonly temperature: T; readonly topP: T; readonly topK: T },
  sampling: TargetRules['sampling'],
  isReasoning: boolean,
): { readonly temperature: T | number | undefined; readonly topP: T | undefined; readonly topK: T | undefined } {
  if (isFixed(sampling, isReasoning)) return { temperature: undefined, topP: undefined, topK: undefined }
  return {
    temperature: (numberOf(temperature) ?? 0) > sampling.maxTemperature ? sampling.maxTemperature : temperature,
    topP: temperature !== undefined && !sampling.takesBoth ? undefined : topP,
    topK: sampling.topK === 'sent' ? topK : undefined,
  }
}

const isFixed = (sampling: TargetRules['sampling'], isReasoning: boolean): boolean =>
  sampling.isFixed === 'always' || (sampling.isFixed === 'reasoning' && isReasoning)

/** A native request with the sampling parameters that its target accepts, and the fields that it lost; the same body if it keeps all. */
export function fitNativeSampling(
  body: JsonObject,
  sampling: TargetRules['sampling'],
  isReasoning: boolean,
): { readonly body: JsonObject; readonly omitted: readonly string[] } {
  const { temperature, top_p: topP, top_k: topK } = body
  const kept = fitNumbers({ temperature, topP, topK }, sampling.topK === 'native' ? { ...sampling, topK: 'sent' } : sampling, isReasoning)
  const left: JsonObject = { temperature: kept.temperature, top_p: kept.topP, top_k: kept.topK }
  const isAllFixed = isFixed(sampling, isReasoning)
  const gone = Object.keys(samplingDefaults).filter((field) => body[field] !== undefined && (field in left ? left[field] === undefined : isAllFixed))
  const fitted = gone.length > 0 ? without(body, ...gone) : body
  return {
    body: kept.temperature === temperature || kept.temperature === undefined ? fitted : { ...fitted, temperature: kept.temperature },
    omitted: gone.filter((field) => isChosen(field, body[field])),
  }
}

function fitSampling(chat: Chat, { sampling, stops }: TargetRules, isReasoning: boolean): Pick<Chat, 'temperature' | 'topP' | 'topK' | 'stop'> {
  const { stop } = chat
  const words = stops.takesBlank ? stop : stop.filter((word) => /\S/.test(word))
  return { ...fitNumbers(chat, sampling, isReasoning), stop: words.length > stops.max ? words.slice(0, stops.max) : words }
}

type Text = Chat['system'][number]

/** Fits the blocks of all turns and puts instructions and results where the target wants them. */
function fitTurns(chat: Chat, rules: TargetRules, names: ToolNames): Pick<Chat, 'system' | 'turns'> {
  const { roles, ids: idRule } = rules
  const ids = new CallIds(idRule)
  const leading: Text[] = []
  const turns: Turn[] = []
  for (const turn of chat.turns) {
    const fitted = turn.blocks.flatMap((block) => fitBlock(block, rules, names, ids) ?? [])
    const blocks = rules.thoughts === 'demanded' ? withThought(fitted) : fitted
    if (blocks.length === 0 && (rules.blanks.isDropped || turn.blocks.length > 0)) continue
    const isInstruction = turn.role === 'system' || turn.role === 'developer'
    if (!isInstruction) turns.push({ ...turn, blocks })
    else if (!roles.isApart) turns.push({ ...turn, role: roles.hasDeveloper ? turn.role : 'system', blocks })
    else if (turns.length === 0) leading.push(...blocks.filter((block) => block.type === 'text'))
    else turns.push({ role: roles.late === 'user' ? 'user' : 'system', blocks })
  }
  const isInstructed = chat.system.length + leading.length > 0 || turns.length > 0
  if (roles.needsTurn && isInstructed && !turns.some(({ role }) => role === 'user' || role === 'assistant')) turns.push(spoken(BEGIN))
  const ordered = endWithText(roles.isMerged ? mergeTurns(turns) : turns, rules.blanks)
  if (roles.startsWithUser && ordered[0]?.role === 'assistant') ordered.unshift(spoken(BEGIN))
  return { system: leading.length === 0 ? chat.system : [...chat.system, ...leading], turns: ordered }
}

/** The turns without white space at the end of a last one of the assistant. */
function endWithText(turns: Turn[], { takesEnd }: TargetRules['blanks']): Turn[] {
  const last = turns.at(-1)
  const block = last?.blocks.at(-1)
  if (takesEnd || last?.role !== 'assistant' || block?.type !== 'text' || !/\s$/.test(block.text)) return turns
  return [...turns.slice(0, -1), { ...last, blocks: [...last.blocks.slice(0, -1), { ...block, text: block.text.trimEnd() }] }]
}

/** Gemini demands a thought signature at the first call of each step, and accepts a filler for calls of other models. */
function withThought(blocks: Block[]): Block[] {
  const at = blocks.findIndex(({ type }) => type === 'toolUse')
  const call = blocks[at]
  return call?.type === 'toolUse' && call.thought === undefined ? blocks.with(at, { ...call, thought: NO_THOUGHT }) : blocks
}

/** Merges consecutive turns of one role. In a turn of the user, results are first, and instructions between a call and its result follow the result. */
function mergeTurns(turns: readonly Turn[]): Turn[] {
  const merged: { role: Turn['role']; blocks: Block[] }[] = []
  let late: Turn | undefined
  for (const turn of turns) {
    let last = merged.at(-1)
    if (turn.role === 'system') {
      // An instruction is a message of its own only behind one of the user.
      if (last?.role === 'user') late = { role: 'system', blocks: [...(late?.blocks ?? []), ...turn.blocks] }
      else merged.push({ role: 'user', blocks: [...turn.blocks] })
      continue
    }
    if (late !== undefined && (turn.role === 'assistant' || !turn.blocks.some(({ type }) => type === 'toolResult'))) {
      merged.push({ role: 'system', blocks: [...late.blocks] })
      late = undefined
      last = merged.at(-1)
    }
    if (last?.role === turn.role) last.blocks.push(...turn.blocks)
    else merged.push({ role: turn.role, blocks: [...turn.blocks] })
  }
  if (late !== undefined) merged.push({ role: 'system', blocks: [...late.blocks] })
  return merged.map(({ role, blocks }) => ({ role, blocks: role === 'user' ? resultsFirst(blocks) : blocks }))
}

function resultsFirst(blocks: Block[]): readonly Block[] {
  const firstOther = blocks.findIndex(({ type }) => type !== 'toolResult')
  if (firstOther === -1 || !blocks.some(({ type }, at) => type === 'toolResult' && at > firstOther)) return blocks
  return [...blocks.filter(({ type }) => type === 'toolResult'), ...blocks.filter(({ type }) => type !== 'toolResult')]
}

function fitBlock(block: Block, rules: TargetRules, names: ToolNames, ids: CallIds): Block | undefined {
  switch (block.type) {
    case 'text':
      return rules.blanks.isDropped && isBlank(block.text) ? undefined : block
    case 'image':
    case 'imageUrl':
    case 'document':
      return fitMedia(block, rules.media)
    case 'thinking':
      return rules.reasoning.history === 'text' || (rules.reasoning.history === 'signed' && !isBlank(block.signature)) ? block : undefined
    case 'redacted':
      return rules.reasoning.history === 'signed' ? block : undefined
    case 'toolUse': {
      const { thought, ...rest } = block
      return { ...rest, id: ids.call(block.id), name: names.safe(block.name), ...(thought !== undefined && rules.thoughts !== 'none' && { thought }) }
    }
    case 'toolResult':
      return fitResult(block, rules, ids)
    default:
      return block
  }
}

function fitResult(block: ToolResult, { blanks, media }: TargetRules, ids: CallIds): ToolResult {
  const id = ids.result(block.id)
  const content = block.content.flatMap((part): Block[] => {
    if (part.type === 'text') return blanks.isDropped && isBlank(part.text) ? [] : [part]
    return part.type === 'image' || part.type === 'imageUrl' || part.type === 'document' ? [fitMedia(part, media)] : [part]
  })
  if (content.length > 0 || blanks.result === undefined) return { ...block, id, content, isPlain: block.isPlain && content.length > 0 }
  return { ...block, id, content: [{ type: 'text', text: blanks.result }], isPlain: true }
}

const isBlank = (text: string): boolean => !/\S/.test(text)

/** Media as the target reads them. Throws a FormatError for others, with the place in the client's body. */
function fitMedia(block: Extract<Block, { type: 'image' | 'imageUrl' | 'document' }>, media: TargetRules['media']): Block {
  switch (block.type) {
    case 'image': {
      const mediaType = imageType(block.mediaType)
      checkImage(mediaType, block.at, media)
      return { ...block, mediaType }
    }
    case 'imageUrl':
      if (!media.hasImageUrls) throw unsupported(block.at, 'an image must be a base64 data URL, this provider does not fetch images')
      return block
    case 'document':
      if (media.documents === 'pdf' && block.mediaType !== 'application/pdf' && !isText(block.mediaType))
        throw unsupported(block.at, `this provider reads PDF and text files, not ${block.mediaType ?? 'a file without type'}`)
      return block
  }
}

const isText = (mediaType: string | undefined): boolean => mediaType?.startsWith('text/') === true || mediaType === 'application/json'
