import { printJson } from '../common/json.ts'
import { inside, objectOf, without } from '../common/read.ts'
import { FormatError, type Conversion } from '../common/types.ts'
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
    request: (body, { model }) => ({ body, memo: { model, isStreaming: false, toolNames: new Map() }, omitted: [] }),
    response(body) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      return { body: object, facts: { ...emptyFacts({ isCacheExcluded: true }, undefined), countTokens: readCount(object) } }
    },
    error: (status, body) => translateError('tokenCount', true, status, body),
    stream: rejectStream,
  }
}

/** Token counting by Bedrock, which counts the body of an InvokeModel call. */
export function translateCount(): Conversion {
  return {
    from: 'tokenCount',
    to: 'invokeCount',
    isNative: false,
    request(body, { model, anthropicVersion }) {
      const counted = { ...without(body, 'model'), max_tokens: 1, anthropic_version: anthropicVersion ?? DEFAULT_VERSION }
      const encoded = Buffer.from(printJson(counted)).toString('base64')
      return { body: { input: { invokeModel: { body: encoded } } }, memo: { model, isStreaming: false, toolNames: new Map() }, omitted: [] }
    },
    response(body) {
      const tokens = readCount(inside(body))
      if (tokens === undefined) throw new FormatError('response', 'failed to parse response: inputTokens is missing')
      return { body: { input_tokens: tokens }, facts: { ...emptyFacts({ isCacheExcluded: true }, undefined), countTokens: tokens } }
    },
    error: (status, body) => translateError('tokenCount', false, status, body),
    stream: rejectStream,
  }
}
