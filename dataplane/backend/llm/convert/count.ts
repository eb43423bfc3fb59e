import { printJson } from '../common/json.ts'
import { inside, objectOf, without } from '../common/read.ts'
import { FormatError, type Conversion, type JsonObject, type RequestMemo, type ResponseFacts } from '../common/types.ts'
import { requestIn } from '../formats/gemini/entry.ts'
import { readGeminiRequest } from '../formats/gemini/request.ts'
import { writeMessagesRequest } from '../formats/messages/write.ts'
import { fitChat } from '../rules/fit.ts'
import { rulesOf } from '../rules/index.ts'
import { fitGeminiCount } from '../rules/native-gemini.ts'
import { rejectStream } from './embeddings.ts'
import { translateError } from './errors.ts'
import { emptyFacts, readCount } from './facts.ts'

const DEFAULT_VERSION = '2023-06-01'

/** Token counting by an upstream with the Messages API (llm.md §7.14). */
export function passCount(): Conversion {
  return {
    from: 'tokenCount',
    to: 'messagesCount',
    isNative: true,
    request: (body, { model }) => ({ body, memo: memoOf(model), omitted: [] }),
    response(body) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      return { body: object, facts: { ...emptyFacts({ isCacheExcluded: true }, undefined), countTokens: readCount(object) } }
    },
    error: (status, body) => translateError('tokenCount', true, status, body),
    stream: rejectStream,
  }
}

/** The body of a count request to Bedrock, which counts that of an InvokeModel call. */
function invokeCount(body: JsonObject, anthropicVersion = DEFAULT_VERSION): JsonObject {
  const counted = { ...without(body, 'model'), max_tokens: 1, anthropic_version: anthropicVersion }
  return { input: { invokeModel: { body: Buffer.from(printJson(counted)).toString('base64') } } }
}

function countIn(body: unknown, member: string): { readonly tokens: number; readonly facts: ResponseFacts } {
  const tokens = readCount(inside(body))
  if (tokens === undefined) throw new FormatError('response', `failed to parse response: ${member} is missing`)
  return { tokens, facts: { ...emptyFacts({ isCacheExcluded: true }, undefined), countTokens: tokens } }
}

const memoOf = (model: string): RequestMemo => ({ model, isStreaming: false, toolNames: new Map() })

/** Token counting by Bedrock. */
export function translateCount(): Conversion {
  return {
    from: 'tokenCount',
    to: 'invokeCount',
    isNative: false,
    request: (body, { model, anthropicVersion }) => ({ body: invokeCount(body, anthropicVersion), memo: memoOf(model), omitted: [] }),
    response(body) {
      const { tokens, facts } = countIn(body, 'inputTokens')
      return { body: { input_tokens: tokens }, facts }
    },
    error: (status, body) => translateError('tokenCount', false, status, body),
    stream: rejectStream,
  }
}

/** Token counting of Gemini clients by Gemini. */
export function passGeminiCount(): Conversion {
  return {
    from: 'geminiCount',
    to: 'geminiCount',
    isNative: true,
    request: (body, { model }) => ({ body: fitGeminiCount(body, model), memo: memoOf(model), omitted: [] }),
    response(body) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      return { body: object, facts: { ...emptyFacts({ isCacheExcluded: true }, undefined), countTokens: readCount(object) } }
    },
    error: (status, body) => translateError('geminiCount', true, status, body),
    stream: rejectStream,
  }
}

/** Token counting of Gemini clients by Claude, as that of Messages clients. */
export function translateGeminiCount(to: 'messagesCount' | 'invokeCount'): Conversion {
  return {
    from: 'geminiCount',
    to,
    isNative: false,
    request(body, context) {
      const rules = rulesOf(context.target ?? 'anthropic', context.model)
      const { chat } = fitChat(readGeminiRequest({ ...requestIn(body), model: context.model }), rules)
      const counted = without(writeMessagesRequest(chat, context).body, 'max_tokens', 'stream')
      return { body: to === 'invokeCount' ? invokeCount(counted) : counted, memo: memoOf(context.model), omitted: chat.omitted }
    },
    response(body) {
      const { tokens, facts } = countIn(body, to === 'invokeCount' ? 'inputTokens' : 'input_tokens')
      return { body: { totalTokens: tokens }, facts }
    },
    error: (status, body) => translateError('geminiCount', false, status, body),
    stream: rejectStream,
  }
}
