import type { Block, Chat, OutputFormat, Tool, ToolChoice, Turn } from '../../common/neutral.ts'
import { printJson } from '../../common/json.ts'
import { anyNumber, filledText, inside, listOf, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { isStrictSchema } from '../../common/tools.ts'
import { FormatError, type JsonObject } from '../../common/types.ts'
import { isUsed, unsupported } from '../../common/unsupported.ts'
import { member, unwrapSignature } from './members.ts'
import { fromGoogleSchema } from './schemas.ts'

/** Members of a request that are carried or rejected; others are left out. */
const carried = names('model,stream,contents,systemInstruction,tools,toolConfig,generationConfig,cachedContent')
const carriedConfig = names(
  'maxOutputTokens,temperature,topP,topK,stopSequences,candidateCount,responseMimeType,responseSchema,responseJsonSchema,responseModalities,' +
    'responseLogprobs,logprobs,thinkingConfig',
)
/** Values of `thinkingLevel`. */
const EFFORTS = new Set(['minimal', 'low', 'medium', 'high'])

/** A name in camel case and in snake case. */
function names(list: string): ReadonlySet<string> {
  return new Set(list.split(',').flatMap((name) => [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]))
}

/** Reads a generateContent request (llm.md §7.16). Throws a FormatError for what no other format can express. */
export function readGeminiRequest(body: JsonObject): Chat {
  if (isUsed(member(body, 'cachedContent'))) throw unsupported('cachedContent', 'it is stored at Google; send the content, or use a model of Google')
  const config = inside(member(body, 'generationConfig'))
  const omitted = [
    ...Object.keys(body).filter((field) => !carried.has(field) && isUsed(body[field])),
    ...Object.keys(config)
      .filter((field) => !carriedConfig.has(field) && isUsed(config[field]))
      .map((field) => `generationConfig.${field}`),
  ]
  checkConfig(config)
  const calling = inside(member(inside(member(body, 'toolConfig')), 'functionCallingConfig'))
  const allowed = listOf(member(calling, 'allowedFunctionNames')).filter((name) => typeof name === 'string')
  const tools = objectsOf(body['tools']).flatMap((tool, at) => readTools(tool, `tools[${at}]`, omitted))
  const thinking = inside(member(config, 'thinkingConfig'))
  const budget = numberOf(member(thinking, 'thinkingBudget'))
  return {
    origin: 'gemini',
    system: objectsOf(inside(member(body, 'systemInstruction'))['parts']).map(({ text }, at) => {
      if (typeof text !== 'string') throw unsupported(`systemInstruction.parts[${at}]`, 'the system prompt may hold text only')
      return { text }
    }),
    isSystemPlain: false,
    turns: new TurnReader(omitted).read(body['contents']),
    tools: allowed.length > 0 ? tools.filter(({ name }) => allowed.includes(name)) : tools,
    toolChoice: readToolChoice(calling['mode'], allowed),
    isParallel: undefined,
    maxTokens: anyNumber(member(config, 'maxOutputTokens')),
    temperature: anyNumber(config['temperature']),
    topP: anyNumber(member(config, 'topP')),
    topK: anyNumber(member(config, 'topK')),
    stop: listOf(member(config, 'stopSequences')).filter((word) => typeof word === 'string'),
    isStreaming: body['stream'] === true,
    user: undefined,
    effort: readEffort(thinking, budget),
    thinkingBudget: budget !== undefined && budget > 0 ? budget : undefined,
    thinking: undefined,
    format: readFormat(config),
    metadata: undefined,
    omitted,
  }
}

function checkConfig(config: JsonObject): void {
  const place = 'generationConfig'
  if ((numberOf(member(config, 'candidateCount')) ?? 1) > 1) throw unsupported(`${place}.candidateCount`, 'this provider returns one response; send 1')
  if (isUsed(member(config, 'responseLogprobs')) || isUsed(config['logprobs']))
    throw unsupported(`${place}.responseLogprobs`, 'log probabilities are not translated')
  const modalities = listOf(member(config, 'responseModalities')).map((one) => String(one).toUpperCase())
  if (modalities.some((one) => one !== 'TEXT' && one !== 'MODALITY_UNSPECIFIED'))
    throw unsupported(`${place}.responseModalities`, 'this provider returns text only')
}

/** Thoughts without a level or a budget are thinking whose depth the model chooses. */
function readEffort(thinking: JsonObject, budget: number | undefined): string | undefined {
  const level = textOf(member(thinking, 'thinkingLevel'))?.toLowerCase()
  if (level !== undefined && EFFORTS.has(level)) return level
  if (budget === 0) return 'none'
  if (budget !== undefined && budget > 0) return budget <= 1024 ? 'low' : budget <= 8192 ? 'medium' : 'high'
  return budget === -1 || member(thinking, 'includeThoughts') === true ? 'medium' : undefined
}

function readFormat(config: JsonObject): OutputFormat | undefined {
  const type = filledText(member(config, 'responseMimeType'))
  if (type !== undefined && type !== 'application/json' && type !== 'text/plain')
    throw unsupported('generationConfig.responseMimeType', 'this provider returns text/plain or application/json')
  const google = objectOf(member(config, 'responseSchema'))
  const schema = objectOf(member(config, 'responseJsonSchema')) ?? (google && fromGoogleSchema(google))
  if (schema === undefined) return type === 'application/json' ? { type: 'object' } : undefined
  return { type: 'schema', schema, ...(isStrictSchema(schema) && { isStrict: true }) }
}

function readToolChoice(mode: unknown, allowed: readonly string[]): ToolChoice | undefined {
  const [name] = allowed
  switch (typeof mode === 'string' ? mode.toUpperCase() : undefined) {
    case 'ANY':
      return name !== undefined && allowed.length === 1 ? { type: 'tool', name } : { type: 'any' }
    case 'NONE':
      return { type: 'none' }
    case 'AUTO':
    case 'VALIDATED':
      return { type: 'auto' }
    default:
      return undefined
  }
}

/** The functions of the client. Tools that Google runs are left out. */
function readTools(tool: JsonObject, place: string, omitted: string[]): Tool[] {
  const declared = member(tool, 'functionDeclarations')
  for (const key of Object.keys(tool)) if (tool[key] !== declared && tool[key] !== null) omitted.push(`${place}.${key}`)
  return objectsOf(declared).map((declaration) => {
    const google = objectOf(declaration['parameters'])
    const schema = objectOf(member(declaration, 'parametersJsonSchema')) ?? (google && fromGoogleSchema(google))
    return { name: textOf(declaration['name']) ?? '', description: textOf(declaration['description']), schema }
  })
}

interface OpenCall {
  readonly id: string
  readonly name: string
}

/** Reads the contents of a request. Gemini's calls need no ids: those without get one by their number, the same in each request. */
class TurnReader {
  readonly #omitted: string[]
  readonly #open: OpenCall[] = []
  #calls = 0

  constructor(omitted: string[]) {
    this.#omitted = omitted
  }

  read(contents: unknown): Turn[] {
    const turns: { role: 'user' | 'assistant'; blocks: Block[] }[] = []
    for (const [at, content] of listOf(contents).entries()) {
      const place = `contents[${at}]`
      const given = objectOf(content)
      if (given === undefined) throw new FormatError('invalid', `failed to parse request: ${place} must be an object`)
      const role = given['role'] === 'model' ? 'assistant' : 'user'
      const blocks = objectsOf(given['parts']).flatMap((part, nth) => this.#readPart(part, `${place}.parts[${nth}]`))
      const last = turns.at(-1)
      // SDKs keep each piece of a stream as a content of its own.
      if (role === 'assistant' && last?.role === 'assistant') for (const block of blocks) addBlock(last.blocks, block)
      else {
        const joined: Block[] = []
        for (const block of blocks)
          if (role === 'assistant') addBlock(joined, block)
          else joined.push(block)
        turns.push({ role, blocks: joined })
      }
    }
    return turns
  }

  #readPart(part: JsonObject, place: string): Block[] {
    const signature = textOf(member(part, 'thoughtSignature'))
    const own = signature === undefined ? undefined : unwrapSignature(signature)
    const text = textOf(part['text'])
    if (part['thought'] === true) return [{ type: 'thinking', text: text ?? '', signature: own ?? '' }]
    if (text !== undefined) return text === '' ? [] : [{ type: 'text', text }]
    const call = objectOf(member(part, 'functionCall'))
    if (call !== undefined) return [this.#readCall(call, own === undefined ? signature : undefined)]
    const response = objectOf(member(part, 'functionResponse'))
    if (response !== undefined) return [this.#readResponse(response, place)]
    const inline = objectOf(member(part, 'inlineData'))
    if (inline !== undefined) return [readMedia(inline, place)]
    const file = objectOf(member(part, 'fileData'))
    if (file !== undefined) return [readFile(file, place)]
    if (member(part, 'executableCode') !== undefined || member(part, 'codeExecutionResult') !== undefined) {
      this.#omitted.push(place)
      return []
    }
    if (Object.keys(part).length === 0) return []
    throw unsupported(place, `a part with ${Object.keys(part).join(', ').slice(0, 100)} cannot be sent to this provider`)
  }

  #readCall(call: JsonObject, thought: string | undefined): Block {
    const name = textOf(call['name']) ?? ''
    const id = filledText(call['id']) ?? `call_${name.replaceAll(/\W/g, '').slice(0, 24)}_${this.#calls}`
    this.#calls++
    this.#open.push({ id, name })
    return { type: 'toolUse', id, name, input: call['args'] ?? {}, ...(thought !== undefined && { thought }) }
  }

  /** A response belongs to the call with its id, else to the first open one of its function. */
  #readResponse(response: JsonObject, place: string): Block {
    const given = filledText(response['id'])
    const name = textOf(response['name']) ?? ''
    const matching = given === undefined ? -1 : this.#open.findIndex(({ id }) => id === given)
    const named = matching === -1 ? this.#open.findIndex((call) => call.name === name) : matching
    const [call] = this.#open.splice(Math.max(named, 0), 1)
    const media = objectsOf(response['parts']).flatMap((part, at) => {
      const inline = objectOf(member(part, 'inlineData'))
      return inline === undefined ? [] : [readMedia(inline, `${place}.functionResponse.parts[${at}]`)]
    })
    const { text, isError } = readResult(response['response'])
    return {
      type: 'toolResult',
      id: call?.id ?? given ?? `call_${name}`,
      content: [{ type: 'text', text }, ...media],
      isPlain: media.length === 0,
      ...(isError && { isError }),
    }
  }
}

/** Adjacent pieces of text or thinking are one. */
function addBlock(blocks: Block[], block: Block): void {
  const last = blocks.at(-1)
  if (block.type === 'thinking' && last?.type === 'thinking' && last.signature === '') blocks[blocks.length - 1] = { ...block, text: last.text + block.text }
  else if (block.type === 'text' && last?.type === 'text') blocks[blocks.length - 1] = { ...last, text: last.text + block.text }
  else blocks.push(block)
}

/** The result of a function: SDKs put it into `result` or `output`, and errors into `error`. */
function readResult(response: unknown): { readonly text: string; readonly isError: boolean } {
  const members = inside(response)
  const [key, ...others] = Object.keys(members)
  const isWrapped = key !== undefined && others.length === 0 && ['result', 'output', 'error'].includes(key)
  const value = isWrapped ? members[key] : response
  return { text: typeof value === 'string' ? value : printJson(value ?? {}), isError: isWrapped && key === 'error' }
}

/** SDKs write base64 for URLs. */
const plainBase64 = (data: string): string => (/[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data)

function readMedia(inline: JsonObject, at: string): Extract<Block, { type: 'image' | 'document' }> {
  const mediaType = textOf(member(inline, 'mimeType')) ?? ''
  const data = plainBase64(textOf(inline['data']) ?? '')
  if (/^image\//i.test(mediaType)) return { type: 'image', mediaType, data, at }
  if (/^(?:audio|video)\//i.test(mediaType)) throw unsupported(at, `${mediaType} cannot be sent to this provider`)
  return { type: 'document', mediaType, filename: filledText(member(inline, 'displayName')), data, at }
}

function readFile(file: JsonObject, at: string): Block {
  const url = textOf(member(file, 'fileUri')) ?? ''
  const mediaType = textOf(member(file, 'mimeType')) ?? ''
  if (/^https?:\/\//i.test(url) && /^image\//i.test(mediaType)) return { type: 'imageUrl', url, at }
  throw unsupported(at, 'a file must be sent as inlineData; this provider cannot read files of Google')
}
