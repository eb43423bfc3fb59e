import { DEFAULT_OUTPUT_TOKENS, type LlmDemand } from '../../../request/exchange/token-budgets.ts'
import { isRawNumber } from '../common/json.ts'
import { inside } from '../common/read.ts'
import { isPlainFormat, type ClientFormat, type JsonObject, type Units } from '../common/types.ts'
import { priceOf, type Price } from '../pricing/price.ts'
import { foldName, promptTokensOf } from './prompt.ts'

/** The members that limit the output in a format. */
const limitsOf: Partial<Readonly<Record<ClientFormat, readonly string[]>>> = {
  completions: ['max_completion_tokens', 'max_tokens'],
  messages: ['max_tokens'],
  responses: ['max_output_tokens'],
  gemini: ['maxOutputTokens', 'max_output_tokens'],
}
/** Members that limit the output in any format, with names as `foldName` returns them. */
const limits: ReadonlySet<string> = new Set([
  'maxcompletiontokens', 'maxtokens', 'maxoutputtokens', 'maxtokenstosample', 'maxnewtokens', 'maxgenlen', 'maxtokencount', 'maxdecodesteps', 'maxlength',
  'numpredict', 'npredict',
]) // prettier-ignore
const counts: ReadonlySet<string> = new Set([
  'n', 'bestof', 'candidatecount', 'numgenerations', 'numreturnsequences', 'numresults', 'numimages', 'numberofimages', 'samplecount',
]) // prettier-ignore
/** Members with parameters of their own: Gemini, Bedrock, Titan, Ollama, Hugging Face, Vertex. */
const nested: ReadonlySet<string> = new Set(['generationconfig', 'inferenceconfig', 'textgenerationconfig', 'options', 'parameters', 'samplingparams'])
/** Members with several prompts, of which each has answers of its own. */
const prompts: ReadonlySet<string> = new Set(['prompt', 'prompts', 'instances'])

/**
 * What a request may use (traffic.md §8.14); without a format, that of a Detect request. The client chose all of it, and servers ignore members that they
 * do not know. So only a limit in the format of the request lowers the default, and all others raise it.
 */
export function demandOf(body: JsonObject, model: string | undefined, price: Price | undefined, format?: ClientFormat, units?: Units): LlmDemand {
  const members = Object.entries(body)
  const parameters = members.flatMap(([name, value]) => (nested.has(foldName(name)) ? Object.entries(inside(value)) : []))
  const stated = greatest(Object.entries(pick(limitedBy(body, format), (format && limitsOf[format]) ?? [])), () => true)
  const others = greatest([...members, ...parameters], (name) => limits.has(name)) ?? 0
  const answers = greatest([...members, ...parameters], (name) => counts.has(name)) ?? 1
  const batch = members.map(([name, value]) => (prompts.has(foldName(name)) && Array.isArray(value) ? countPrompts(value) : 1))
  return {
    model,
    promptTokens: promptTokensOf(body, format !== undefined),
    // Some servers take 0 as no limit.
    maxTokens: format !== undefined && isPlainFormat(format) ? 0 : Math.max(stated || DEFAULT_OUTPUT_TOKENS, others),
    answers: Math.max(1, answers) * Math.max(1, ...batch),
    priceOf: price && ((input, output) => priceOf(input, output, price, units)),
  }
}

/** Whether the provider works on when the response has ended (`background` of the Responses API): its usage is not known then. */
export const runsInBackground = ({ background }: JsonObject): boolean => background !== undefined && background !== null && background !== false

/** A list of numbers is one prompt of tokens. */
const countPrompts = (list: readonly unknown[]): number => (list.some((item) => typeof item === 'number' || isRawNumber(item)) ? 1 : list.length)

/** The object with the limit. */
const limitedBy = (body: JsonObject, format: ClientFormat | undefined): JsonObject =>
  format === 'gemini' ? inside(body['generationConfig'] ?? body['generation_config']) : body

const pick = (body: JsonObject, names: readonly string[]): JsonObject => Object.fromEntries(names.map((name) => [name, body[name]]))

/** The greatest of some numbers, because providers differ in which one counts. Texts count, as some servers accept them. */
function greatest(members: readonly (readonly [name: string, value: unknown])[], isRead: (name: string) => boolean): number | undefined {
  let found: number | undefined
  for (const [name, value] of members) {
    if (!isRead(foldName(name))) continue
    const text = isRawNumber(value) ? value.rawJSON : value
    const number = typeof text === 'string' && text.trim() !== '' ? Number(text) : typeof text === 'number' ? text : Number.NaN
    if (number >= 0 && number > (found ?? -1)) found = number
  }
  return found
}
